"""What a user is shown: steps and notices, kept so that a test can read them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mitigate.progress import LOG, Step, listening


class Page(logging.Handler):
    """A listener of mitigate.progress, and a handler of its logger."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.begun: list[Step] = []
        self.steps: list[tuple[str, str, float, float]] = []
        self.notices: list[str] = []

    def __call__(self, step: Step) -> None:
        if step not in self.begun:
            self.begun.append(step)
        if not step.ended:
            self.steps.append((step.name, step.unit, step.total, step.done))

    def emit(self, record: logging.LogRecord) -> None:
        self.notices.append(record.getMessage())


@contextmanager
def shown() -> Iterator[Page]:
    """The steps and notices of the block."""
    page = Page()
    LOG.addHandler(page)
    try:
        with listening(page):
            yield page
    finally:
        LOG.removeHandler(page)
