"""What reading a block gives besides its statements: the names that its final yield defines."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pypto_egg.ir.expr import Expr
from pypto_egg.ir.stmt import Block
from pypto_egg.ir.types import Type
from pypto_egg.source import Span
from pypto_egg.text import annotate
from pypto_egg.text.reader import Reader


@dataclass(frozen=True, slots=True)
class YieldTarget:
    """One name on the left of a final `pl.yield_`, with its annotation and yielded value."""

    name: str
    annotation: ast.expr | None
    value: Expr
    span: Span

    def result_type(self, reader: Reader) -> Type:
        if self.annotation is None:
            return self.value.type
        return annotate.annotated_result(reader, self.annotation, self.value, self.name)


@dataclass(frozen=True, slots=True)
class BlockText:
    """A block that was read: its statements, how it ends, and what its yield defines."""

    stmts: Block
    targets: tuple[YieldTarget, ...] = ()
    yields: bool = False
    end: Span | None = None
