"""Names of emitted variables, in PyPTO's own scheme.

PyPTO reserves the double underscore: a name is a plain identifier without it, or
`base__role` with an optional `_v<number>` (PyPTO language reference, auto names). So a second
`x__tile` is `x__tile_v1`, and a second `x_mat` is `x_mat_1`.
"""

from __future__ import annotations

from collections.abc import Iterable

# Roles that PyPTO's own scheme knows; other roles make plain names.
_RESERVED = ("tile", "tmp", "out", "store", "iter", "rv", "phi", "idx", "ssa")


def base_of(name: str) -> str:
    """The source name that an emitted name was made from."""
    return name.split("__", 1)[0].rstrip("_")


class Names:
    """Hands out names that are not in use."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, base: str, role: str) -> str:
        """A new name for the role that a value derived from `base` plays."""
        stem = base_of(base) or "t"
        name = f"{stem}__{role}" if role in _RESERVED else f"{stem}_{role}"
        return self.unique(name)

    def unique(self, name: str) -> str:
        """`name` itself if it is free, else a numbered variant of it."""
        candidate, number = name, self._next.get(name, 0)
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_v{number}" if "__" in name else f"{name}_{number}"
        self._next[name] = number
        self._taken.add(candidate)
        return candidate
