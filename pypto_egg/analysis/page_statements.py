"""The statements of one page of a batched product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto_egg.errors import NzError
from pypto_egg.ir.dtype import INDEX
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import BinOp, Call, ConstInt, Expr, TupleExpr, Var, dims_of, tuple_of
from pypto_egg.ir.fold import Dim, fold, provably_equal
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.stmt import Assign, For, Stmt, Yield
from pypto_egg.ir.types import TensorType, tensor_type
from pypto_egg.ops.registry import make_call

PRODUCTS = {"tensor.matmul": (0, 1), "tensor.matmul_acc": (1, 2)}
"""Product -> the positions of its factors."""


def batched_product(stmt: Stmt) -> Call | None:
    """The product of rank 3 or more that a statement makes."""
    value = stmt.value if isinstance(stmt, Assign) else None
    if not isinstance(value, Call) or value.op not in PRODUCTS:
        return None
    return value if rank_of(value) > 2 else None


def rank_of(value: Expr) -> int:
    """The rank of a tensor; 0 for other values."""
    return value.type.rank if isinstance(value.type, TensorType) else 0


def batch_of(value: Expr) -> tuple[Dim, ...]:
    """The extents of a tensor but the last two."""
    assert isinstance(value.type, TensorType)
    return value.type.shape[:-2]


def is_create(stmt: Assign) -> bool:
    """Whether a statement makes a tensor without values."""
    return isinstance(stmt.value, Call) and stmt.value.op == "tensor.create"


class Page:
    """The statements of one page.

    Args:
        in_memory: whether a tensor is a window of global memory, which may lose axes at once.
        index: the number of the page.
        lead: the batch extents of the results.
    """

    def __init__(
        self, names: VersionNames, in_memory: Callable[[Var], bool], index: Var,
        lead: tuple[Dim, ...],
    ) -> None:  # fmt: skip
        self.names = names
        self.in_memory = in_memory
        self.at: tuple[Dim, ...] = _coordinates(index, lead)
        self.parts: dict[Var, Var] = {}

    def statement(self, stmt: Stmt, out: list[Stmt]) -> None:
        """Write the page of a statement, and keep which part is whose."""
        if isinstance(stmt, For):
            out.append(self._loop(stmt))
        elif isinstance(stmt, Yield):
            out.append(replace(stmt, values=tuple(self.parts[value] for value in _vars(stmt))))
        elif isinstance(stmt, Assign) and batched_product(stmt):
            self._product(stmt, out)
        elif isinstance(stmt, Assign) and is_create(stmt) and rank_of(stmt.var) > 2:
            self._made(stmt, make_call("tensor.create", self._created(stmt), _kwargs(stmt)), out)
        else:
            out.append(stmt)

    def _loop(self, loop: For) -> For:
        inits = tuple(self._part(init, None) for init in loop.inits)
        for var in (*loop.iter_args, *loop.results):
            assert isinstance(var.type, TensorType)
            kind = tensor_type(var.type.shape[-2:], var.type.dtype)
            self.parts[var] = Var(self.names.fresh(var.name, "part"), kind)
        body: list[Stmt] = []
        for stmt in loop.body:
            self.statement(stmt, body)
        return replace(
            loop, inits=inits, body=tuple(body),
            iter_args=tuple(self.parts[var] for var in loop.iter_args),
            results=tuple(self.parts[var] for var in loop.results),
        )  # fmt: skip

    def _created(self, stmt: Assign) -> tuple[Expr, ...]:
        assert isinstance(stmt.value, Call)
        return tuple_of(dims_of(stmt.value.args[0])[-2:]), *stmt.value.args[1:]

    def _product(self, stmt: Assign, out: list[Stmt]) -> None:
        call = stmt.value
        assert isinstance(call, Call)
        if call.op == "tensor.matmul_acc" and call.args[0] not in self.parts:
            raise _no_page(call, stmt)
        args = tuple(self._part(arg, out) if rank_of(arg) > 2 else arg for arg in call.args)
        self._made(stmt, make_call(call.op, args, _kwargs(stmt), attrs=call.attrs), out)

    def _made(self, stmt: Assign, call: Call, out: list[Stmt]) -> None:
        part = Var(self.names.fresh(stmt.var.name, "part"), call.type, stmt.var.span)
        self.parts[stmt.var] = part
        out.append(Assign(part, replace(call, span=stmt.span), span=stmt.span))

    def _part(self, value: Expr, out: list[Stmt] | None) -> Expr:
        """The page of a value: made here already, or a window of it."""
        assert isinstance(value, Var)
        if value in self.parts:
            return self.parts[value]
        assert out is not None
        lead = batch_of(value)
        at = tuple(
            0 if provably_equal(extent, 1) else start
            for extent, start in zip(lead, self.at[len(self.at) - len(lead) :], strict=True)
        )
        assert isinstance(value.type, TensorType)
        shape = (*(1 for _ in lead), *value.type.shape[-2:])
        window = (value, tuple_of(shape), tuple_of((*at, 0, 0)))
        if self.in_memory(value):
            dropped = TupleExpr(tuple(ConstInt(axis) for axis in range(len(lead))))
            return self._named(
                value, make_call("tensor.slice", (*window, TupleExpr(()), dropped)), out
            )
        plane = self._named(value, make_call("tensor.slice", window), out)
        return self._named(value, make_call("tensor.reshape", (plane, tuple_of(shape[-2:]))), out)

    def _named(self, value: Var, call: Call, out: list[Stmt]) -> Var:
        part = Var(self.names.fresh(value.name, "page"), call.type)
        out.append(Assign(part, call))
        return part


def _vars(stmt: Yield) -> list[Var]:
    return [value for value in stmt.values if isinstance(value, Var)]


def _kwargs(stmt: Assign) -> dict[str, object]:
    assert isinstance(stmt.value, Call)
    return dict(stmt.value.kwargs)


def _no_page(call: Call, stmt: Assign) -> NzError:
    packed = next(
        arg
        for arg in call.args[1:3]
        if isinstance(arg.type, TensorType) and arg.type.layout is TensorLayout.NZ
    )
    total, name = call.args[0], packed.name if isinstance(packed, Var) else "(unnamed)"
    shown = f"'{total.name}'" if isinstance(total, Var) else "a value"
    return NzError(
        f"NZ tensor '{name}' is multiplied page by page, and the pages of {shown}, to which its "
        "product is added, are not sums of their own: something else makes or reads them, or "
        "writes memory in between",
        span=call.span or stmt.span,
        hint="loop over the leading axes around the sum, and take one panel at a time, "
        "w[e, r0:r1, c0:c1]",
    )


def _coordinates(index: Var, lead: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The batch coordinates of page number `index`, row-major."""
    rest: Expr = index
    out: list[Dim] = []
    for extent in reversed(lead[1:]):
        size = extent if isinstance(extent, Expr) else ConstInt(extent, INDEX)
        out.append(fold(BinOp("%", rest, size, INDEX)))
        rest = fold(BinOp("//", rest, size, INDEX))
    return (rest, *reversed(out))
