"""The page of the service: one HTML file without build step or outside assets, in the look of the reports."""

import secrets
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate.serve.allowed_jobs import GROUPS

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "report")  # of the second its style


def page(*, needs_token: bool) -> tuple[str, str]:
    """The page, and its content policy: only its own script runs, and sends requests to this service only; it may
    frame pages of runs."""
    nonce = secrets.token_urlsafe(16)
    made = Environment(
        loader=FileSystemLoader([str(folder) for folder in FOLDERS]), autoescape=True, undefined=StrictUndefined
    )
    html = made.get_template("service.html.jinja").render(nonce=nonce, needs_token=needs_token, groups=GROUPS)
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html, policy
