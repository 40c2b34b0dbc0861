"""How far a long stage is, said now and then."""

import time

from mitigate.recipes.showing import say

EVERY = 20.0  # seconds between two lines


class Progress:
    """Says what share is done, how fast it goes, and how long it still takes. What was finished before it began counts
    for the share and not for the pace."""

    def __init__(self, stage: str, unit: str) -> None:
        self.stage = stage
        self.unit = unit
        self.started = self.said = time.monotonic()
        self.before: float | None = None
        self.count = 0

    def at(self, share: float, count: int) -> None:
        """A piece of so many was done, which ends at this share of the whole."""
        now = time.monotonic()
        self.count += count
        if self.before is None:
            self.before = share  # the first piece tells nothing of the pace: it may come after many finished ones
            self.started, self.count = now, 0
        elif now - self.said > EVERY and share > self.before:
            elapsed = now - self.started
            left = elapsed * (1 - share) / (share - self.before)
            pace = self.count / elapsed
            say(f"  {self.stage:<12}{share:>17.0%}    {pace:,.0f} {self.unit}/s, about {_minutes(left)} left")
            self.said = now


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
