"""Deadlines: points of `time.monotonic()`, None for no end."""

from __future__ import annotations

import time

Deadline = float | None


def passed(deadline: Deadline) -> bool:
    """Whether the time is over."""
    return deadline is not None and time.monotonic() > deadline


def seconds_left(deadline: Deadline) -> float | None:
    """Seconds until the deadline, negative after it; None: no end."""
    return None if deadline is None else deadline - time.monotonic()


def share(deadline: Deadline, part: float) -> Deadline:
    """The point at which that part of the time left will have passed."""
    if deadline is None:
        return None
    now = time.monotonic()
    return now + part * max(0.0, deadline - now)
