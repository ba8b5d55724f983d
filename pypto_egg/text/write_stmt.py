"""Statements as PyPTO prints them (PyPTO language reference, 9 and 10)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.errors import InternalError
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import ConstInt, Expr, Var
from pypto_egg.ir.stmt import (
    Assign,
    Block,
    Break,
    Continue,
    Eval,
    For,
    If,
    Return,
    Scope,
    Stmt,
    While,
    Yield,
)
from pypto_egg.text.style import Style
from pypto_egg.text.write_expr import write_expr
from pypto_egg.text.write_type import write_type
from pypto_egg.text.write_value import write_attributes, write_value

INDENT = "    "


@dataclass(slots=True)
class BlockWriter:
    """Collects the lines of a function body."""

    style: Style
    lines: list[str] = field(default_factory=list)

    def line(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text)

    def block(self, depth: int, block: Block, results: tuple[Var, ...] = ()) -> None:
        """The statements of a block; a final yield defines `results`."""
        if not block:
            self.line(depth, "pass")
        for index, stmt in enumerate(block):
            self._stmt(depth, stmt, results if index == len(block) - 1 else ())

    def _stmt(self, depth: int, stmt: Stmt, results: tuple[Var, ...]) -> None:
        for comment in stmt.comments:
            for line in comment.splitlines() or [""]:
                self.line(depth, f"# {line.strip()}".rstrip())
        match stmt:
            case Assign():
                target = self._defined(stmt.var)
                self.line(depth, f"{target} = {self._expr(stmt.value)}")
            case Eval():
                self.line(depth, self._expr(stmt.value))
            case Return():
                self.line(depth, f"return {self._list(stmt.values)}".rstrip())
            case Yield():
                self.line(depth, self._yield(stmt, results))
            case For():
                self.line(depth, f"{self._for_header(stmt)}:")
                self.block(depth + 1, stmt.body, stmt.results)
            case While():
                self._while(depth, stmt)
            case If():
                self._if(depth, stmt)
            case Scope():
                self._scope(depth, stmt, results)
            case Break():
                self.line(depth, "break")
            case Continue():
                self.line(depth, "continue")
            case _:
                raise InternalError(f"{type(stmt).__name__} has no spelling in the language")

    def _expr(self, value: Expr) -> str:
        return write_expr(self.style, value)

    def _list(self, values: tuple[Expr, ...]) -> str:
        return ", ".join(self._expr(value) for value in values)

    def _tuple(self, values: tuple[Expr, ...]) -> str:
        comma = "," if len(values) == 1 else ""
        return f"({self._list(values)}{comma})"

    def _defined(self, var: Var) -> str:
        name = self.style.name(var)
        return name if self.style.concise else f"{name}: {write_type(self.style, var.type)}"

    def _yield(self, stmt: Yield, results: tuple[Var, ...]) -> str:
        call = f"{self.style.prefix}.yield_({self._list(stmt.values)})"
        if not results:
            return call
        if len(results) == 1:
            return f"{self._defined(results[0])} = {call}"
        return f"{', '.join(self.style.name(var) for var in results)} = {call}"

    def _for_header(self, stmt: For) -> str:
        if stmt.kind is LoopKind.unroll and stmt.iter_args:
            raise InternalError("a pl.unroll loop with carries has no spelling in the language")
        target = self.style.name(stmt.var)
        if stmt.iter_args:
            target += f", {self._tuple(stmt.iter_args)}"
        parts = self._bounds(stmt)
        attrs = dict(stmt.attrs)
        trailing = attrs.pop("attrs", ())
        parts += [f"{name}={write_value(self.style, value)}" for name, value in attrs.items()]
        if stmt.iter_args:
            parts.append(f"init_values={self._tuple(stmt.inits)}")
        if trailing:
            assert isinstance(trailing, tuple)
            parts.append(f"attrs={write_attributes(self.style, trailing)}")
        return f"for {target} in {self.style.prefix}.{stmt.kind.value}({', '.join(parts)})"

    def _bounds(self, stmt: For) -> list[str]:
        """The bounds that a reader cannot fill in: start unless 0, step unless 1."""
        if stmt.kind is LoopKind.spmd:
            return [self._expr(stmt.stop)]
        has_step = stmt.step != ConstInt(1)
        has_start = has_step or stmt.start != ConstInt(0)
        bounds = [stmt.start] if has_start else []
        bounds += [stmt.stop, stmt.step] if has_step else [stmt.stop]
        return [self._expr(bound) for bound in bounds]

    def _while(self, depth: int, stmt: While) -> None:
        if not stmt.iter_args:
            self.line(depth, f"while {self._expr(stmt.cond)}:")
            self.block(depth + 1, stmt.body)
            return
        pl = self.style.prefix
        inits = self._tuple(stmt.inits)
        self.line(depth, f"for {self._tuple(stmt.iter_args)} in {pl}.while_(init_values={inits}):")
        self.line(depth + 1, f"{pl}.cond({self._expr(stmt.cond)})")
        if stmt.body:
            self.block(depth + 1, stmt.body, stmt.results)

    def _if(self, depth: int, stmt: If) -> None:
        self.line(depth, f"if {self._expr(stmt.cond)}:")
        self.block(depth + 1, stmt.then, stmt.results)
        if stmt.orelse:
            self.line(depth, "else:")
            self.block(depth + 1, stmt.orelse, stmt.results)

    def _scope(self, depth: int, stmt: Scope, results: tuple[Var, ...]) -> None:
        args = [write_value(self.style, arg) for arg in stmt.args]
        args += [f"{name}={write_value(self.style, value)}" for name, value in stmt.kwargs]
        call = f"{self.style.prefix}.{stmt.kind}({', '.join(args)})"
        if stmt.kind == "split_aiv":
            self._split(depth, stmt, call)
            return
        task = f" as {self.style.name(stmt.var)}" if stmt.var is not None else ""
        self.line(depth, f"with {call}{task}:")
        self.block(depth + 1, stmt.body, results)

    def _split(self, depth: int, stmt: Scope, call: str) -> None:
        """A lane split is a loop over lanes; its shards leave out the split they inherit."""
        assert stmt.var is not None
        self.line(depth, f"for {self.style.name(stmt.var)} in {call}:")
        outer = self.style
        self.style = replace(outer, in_split=True)
        self.block(depth + 1, stmt.body)
        self.style = outer
