"""A listener that keeps the steps it is given, so that a test can read what was reported."""

from mitigate.progress import Step


class Steps:
    """A listener of mitigate.progress."""

    def __init__(self) -> None:
        self.begun: list[Step] = []

    def begin(self, step: Step) -> None:
        self.begun.append(step)

    def at(self, step: Step) -> None: ...
    def end(self, step: Step) -> None: ...
