"""Names for the versions of a variable that a pass over the IR makes."""

from __future__ import annotations

from itertools import count

from pypto_egg.ir.program import Function
from pypto_egg.ir.visit import definitions


class VersionNames:
    """Hands out `base__role_v<number>`, PyPTO's own form, so that no name of a function is reused.

    The base is what stands before the first double underscore (PyPTO language reference, auto
    names); numbers start at 1.
    """

    def __init__(self, function: Function) -> None:
        self._taken = {var.name for var in definitions(function)}

    def fresh(self, name: str, role: str) -> str:
        """A new name for a variable that plays `role` for the variable called `name`."""
        stem = f"{name.split('__', 1)[0]}__{role}_v"
        found = next(new for n in count(1) if (new := f"{stem}{n}") not in self._taken)
        self._taken.add(found)
        return found
