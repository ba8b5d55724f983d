"""The e-graph read out once, as plain nodes and classes; nothing after it touches egglog.

This is the only user of egglog's serialiser, which the high-level API marks as private.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pypto_egg.egraph.bulk import RELATION_PREFIX
from pypto_egg.errors import InternalError


@dataclass(frozen=True, slots=True)
class Node:
    """An e-node: the name of its constructor (`egg_fn`) and the e-classes of its children."""

    op: str
    children: tuple[str, ...]


class Snapshot:
    """E-classes by id, in a fixed order, and readers for the values inside them."""

    def __init__(self, egraph: Any) -> None:
        serialized = egraph._serialize(
            max_functions=None, max_calls_per_function=None, split_primitive_outputs=False
        )
        raw = json.loads(serialized.to_json())["nodes"]
        self.classes: dict[str, list[Node]] = {}
        self._literals: dict[str, str] = {}
        for identity, entry in raw.items():
            kind, _, name = identity.split("-", 2)
            cls = entry["eclass"]
            if kind == "primitive" and not entry["children"]:
                self._literals[cls] = entry["op"]
            children = tuple(raw[child]["eclass"] for child in entry["children"])
            op = "vec" if kind == "primitive" else name.removeprefix(RELATION_PREFIX)
            self.classes.setdefault(cls, []).append(Node(op, children))

    def nodes(self, cls: str, op: str) -> list[Node]:
        """The nodes of a class made by one constructor."""
        return [node for node in self.classes.get(cls, ()) if node.op == op]

    def rows(self, op: str) -> list[tuple[str, Node]]:
        """All nodes (class, node) of one constructor or relation."""
        return [(c, n) for c, nodes in self.classes.items() for n in nodes if n.op == op]

    def string(self, cls: str) -> str:
        """The value of a String class."""
        return str(json.loads(self._literals[cls]))

    def integer(self, cls: str) -> int:
        """The value of an i64 class."""
        return int(self._literals[cls])

    def index(self, cls: str) -> int | str:
        """An index: its value if it is a constant, else the key of its expression."""
        for node in self.nodes(cls, "index"):
            return self.integer(node.children[0])
        for node in self.nodes(cls, "index.sym"):
            return self.string(node.children[0])
        raise InternalError(f"index class {cls} has neither a value nor a key")

    def indices(self, cls: str) -> tuple[int | str, ...]:
        """A vector of indices."""
        for node in self.classes[cls]:
            if node.op == "vec":
                return tuple(self.index(child) for child in node.children)
        raise InternalError(f"class {cls} is not a vector")
