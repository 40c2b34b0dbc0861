"""Transformers' own progress bars, which it shows for every model it loads or saves, however small."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from transformers.utils import logging


@contextmanager
def no_bars() -> Iterator[None]:
    """Context in which transformers shows no progress bars; the hub's client shows those of downloads as before. The
    previous settings return at its end."""
    shown, downloads_shown = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.disable_progress_bar()  # the hub's too
    if downloads_shown:
        enable_progress_bars()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # the hub's too
            if not downloads_shown:
                disable_progress_bars()
