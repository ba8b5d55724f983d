"""What holds for all tests: no example of a property is timed, for machines are busy at times."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
