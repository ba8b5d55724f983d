"""Random well-typed tensor statements in PyPTO text.

Every choice is taken through one function `pick(options)`, so that the same generator serves a
seeded sample and a property test, which then shrinks towards the first options.

Values stay in a tame range (exponentials only of negated absolute values, reciprocals only of
values of at least one), so that a difference between two programs is never an overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Pick = Callable[[Sequence[Any]], Any]
Shape = tuple[int, ...]

ROWS = (16, 1, 5, 8, 17, 32, 40)
COLS = (32, 16, 8, 24, 64, 100)
DEPTHS = (32, 16, 64)
FLOATS = ("FP32", "FP16", "BF16")
INDEX = "pl.Scalar[pl.INDEX]"


@dataclass(frozen=True)
class Value:
    """A tensor in scope; `root` is the parameter whose memory it names, or "" if computed."""

    name: str
    shape: Shape
    dtype: str
    root: str = ""

    @property
    def type(self) -> str:
        return tensor(self.shape, self.dtype)


def tensor(shape: Sequence[int], dtype: str) -> str:
    return f"pl.Tensor[[{', '.join(map(str, shape))}], pl.{dtype}]"


@dataclass
class Values:
    """The statements of one block, and what later ones may use.

    Args:
        params: the parameters that statements asked for; scalars have an empty shape.
        indices: the loop variables in force: name, trip count, rows of one trip's window.
        reordered: views of memory that only reads go through: transposed and reshaped ones.
        narrowed: values of which only a part is valid; they may be returned, and nothing else.
    """

    pick: Pick
    params: dict[str, Value] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    scalars: list[tuple[str, str]] = field(default_factory=list)
    indices: list[tuple[str, int, int]] = field(default_factory=list)
    reordered: set[str] = field(default_factory=set)
    narrowed: list[Value] = field(default_factory=list)
    depth: int = 0
    count: int = 0

    # --- names and operands --------------------------------------------------------------------

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def let(self, expr: str, shape: Shape, dtype: str, root: str = "") -> Value:
        value = Value(self.fresh(), shape, dtype, root)
        self.line(f"{value.name} = {expr}")
        self.values.append(value)
        return value

    def hidden(self, expr: str, shape: Shape, dtype: str) -> Value:
        """A value that no later statement picks."""
        value = self.let(expr, shape, dtype)
        self.values.remove(value)
        return value

    def param(self, shape: Shape, dtype: str) -> Value:
        name = self.fresh("x")
        value = Value(name, shape, dtype, name)
        self.params[name] = value
        self.values.append(value)
        return value

    def operand(self, shape: Shape, dtype: str) -> Value:
        """A value of this type in scope, or a new parameter."""
        found = [v for v in self.values if (v.shape, v.dtype) == (shape, dtype)]
        return self.pick([*reversed(found), None]) or self.param(shape, dtype)

    def any_value(self, want: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value that `want` holds for, rather a recent one; else any new parameter."""
        found = [v for v in self.values if want(v)]
        if not found:
            return self.param((self.pick(ROWS), self.pick(COLS)), self.pick(FLOATS))
        return self.pick([*reversed(found[-4:] if self.pick((True, True, False)) else found)])

    # --- elements ------------------------------------------------------------------------------

    def unary(self) -> None:
        x = self.any_value()
        op = self.pick(("neg", "abs", "exp", "sqrt", "recip"))
        if op in ("exp", "sqrt", "recip"):
            x = self.let(f"pl.abs({x.name})", x.shape, x.dtype)
        if op == "exp":
            x = self.let(f"pl.neg({x.name})", x.shape, x.dtype)
        if op == "recip":
            x = self.let(f"pl.add({x.name}, pl.const(1.0, pl.{x.dtype}))", x.shape, x.dtype)
        self.let(f"pl.{op}({x.name})", x.shape, x.dtype)

    def with_scalar(self) -> None:
        """A tensor and a constant, or a scalar that was read."""
        x = self.any_value()
        read = [name for name, dtype in self.scalars if dtype == x.dtype]
        scalar = self.pick([*reversed(read), None])
        if scalar is not None:
            op = self.pick(("add", "sub", "maximum", "minimum"))
        else:
            op = self.pick(("add", "mul", "sub", "div", "maximum", "minimum"))
            scalar = f"pl.const({self.pick((0.5, 1.5, -0.25))}, pl.{x.dtype})"
        self.let(f"pl.{op}({x.name}, {scalar})", x.shape, x.dtype)

    def binary(self) -> None:
        x = self.any_value()
        y = self.operand(x.shape, x.dtype)
        op = self.pick(("add", "sub", "mul", "maximum", "minimum"))
        self.let(f"pl.{op}({x.name}, {y.name})", x.shape, x.dtype)

    def broadcast(self) -> None:
        x = self.any_value(lambda v: 1 not in v.shape)
        if 1 in x.shape:
            return
        narrow = self.pick(((x.shape[0], 1), (1, x.shape[1])))
        y = self.operand(narrow, x.dtype)
        op = self.pick(("sub", "add", "mul", "maximum"))
        pair = self.pick((f"{x.name}, {y.name}", f"{y.name}, {x.name}"))
        self.let(f"pl.{op}({pair})", x.shape, x.dtype)

    def expand(self) -> None:
        x = self.any_value(lambda v: 1 not in v.shape and v.dtype != "BF16")
        if 1 in x.shape or x.dtype == "BF16":
            return
        side, narrow = self.pick((("row", (x.shape[0], 1)), ("col", (1, x.shape[1]))))
        y = self.operand(narrow, x.dtype)
        op = self.pick(("sub", "mul", "add", "max"))
        self.let(f"pl.tensor.{side}_expand_{op}({x.name}, {y.name})", x.shape, x.dtype)

    def reduce(self) -> None:
        x = self.any_value(lambda v: v.dtype == "FP32")
        if x.dtype != "FP32":
            x = self.let(f"pl.cast({x.name}, pl.FP32)", x.shape, "FP32")
        axis = self.pick(("row", "col"))
        shape = (x.shape[0], 1) if axis == "row" else (1, x.shape[1])
        self.let(f"pl.{axis}_{self.pick(('max', 'sum', 'min'))}({x.name})", shape, x.dtype)

    def cast(self) -> None:
        x = self.any_value()
        to = self.pick([d for d in FLOATS if d != x.dtype])
        mode = self.pick(("", ", mode='rint'", ", mode='round'"))
        self.let(f"pl.cast({x.name}, pl.{to}{mode})", x.shape, to)

    def full(self) -> None:
        shape, dtype = (self.pick(ROWS), self.pick(COLS)), self.pick(FLOATS)
        self.let(f"pl.full({list(shape)}, dtype=pl.{dtype}, value=0.5)", shape, dtype)

    # --- shapes and windows --------------------------------------------------------------------

    def transpose(self) -> None:
        x = self.any_value()
        y = self.let(f"pl.transpose({x.name}, 0, 1)", x.shape[::-1], x.dtype, x.root)
        self.reordered.add(y.name)

    def reshape(self) -> None:
        x = self.any_value()
        rows, cols = x.shape
        options = [(rows * cols // n, n) for n in (16, 32, 64, 8, 1) if rows * cols % n == 0]
        shape = self.pick(options or [x.shape])
        y = self.let(f"pl.reshape({x.name}, {list(shape)})", shape, x.dtype, x.root)
        self.reordered.add(y.name)

    def window(self) -> None:
        """A slice of GM or of a value; the offset is constant or a loop's index."""
        if self.indices and self.pick((True, False)):
            index, trips, step = self.pick(self.indices)
            shape = (step, self.pick(COLS))
            source = self.operand((trips * step, shape[1]), self.pick(FLOATS))
            offset = f"[{index} * {step}, 0]"
        else:
            source = self.any_value()
            shape = tuple(self.pick([n for n in (s, s // 2, 8, 16) if 0 < n <= s] or [s])
                          for s in source.shape)  # fmt: skip
            offset = str([self.pick((0, s - n)) for s, n in zip(source.shape, shape, strict=True)])
        expr = f"pl.slice({source.name}, {list(shape)}, {offset})"
        y = self.let(expr, shape, source.dtype, source.root)
        if source.name in self.reordered:
            self.reordered.add(y.name)

    def assemble(self) -> None:
        """Two parts cover a created buffer."""
        x = self.any_value()
        rows, cols = x.shape
        y = self.operand(x.shape, x.dtype)
        whole, second = self.pick((((2 * rows, cols), [rows, 0]), ((rows, 2 * cols), [0, cols])))
        z = self.hidden(f"pl.create_tensor({list(whole)}, pl.{x.dtype})", whole, x.dtype)
        half = self.hidden(f"pl.assemble({z.name}, {x.name}, [0, 0])", whole, x.dtype)
        self.let(f"pl.assemble({half.name}, {y.name}, {second})", whole, x.dtype)

    def valid(self) -> None:
        """A narrowed value may only be returned, as what it does not cover is undefined."""
        x = self.any_value()
        rows = self.pick([n for n in (x.shape[0], x.shape[0] - 1, 1) if n > 0])
        y = self.hidden(f"pl.set_validshape({x.name}, {rows}, {x.shape[1]})", x.shape, x.dtype)
        z = self.hidden(f"pl.abs({y.name})", x.shape, x.dtype)
        if self.depth == 0:
            self.narrowed.append(z)

    # --- products ------------------------------------------------------------------------------

    def matmul(self) -> None:
        m, n, k = self.pick(ROWS), self.pick(COLS), self.pick(DEPTHS)
        dtype = self.pick(FLOATS)
        a_trans, b_trans = self.pick((False, True)), self.pick((False, True))
        a = self.operand((k, m) if a_trans else (m, k), dtype)
        b = self.operand((n, k) if b_trans else (k, n), dtype)
        flags = f"a_trans={a_trans}, b_trans={b_trans}"
        y = self.let(f"pl.matmul({a.name}, {b.name}, {flags}, out_dtype=pl.FP32)", (m, n), "FP32")
        follow = self.pick(("nothing", "accumulate", "add", "round", "bias", "chain"))
        if follow == "accumulate":
            a, b = self.operand(a.shape, dtype), self.operand(b.shape, dtype)
            self.let(f"pl.matmul_acc({y.name}, {a.name}, {b.name}, {flags})", (m, n), "FP32")
        elif follow == "add":
            a, b = self.operand(a.shape, dtype), self.operand(b.shape, dtype)
            expr = f"pl.matmul({a.name}, {b.name}, {flags}, out_dtype=pl.FP32)"
            self.let(f"pl.add({y.name}, {self.let(expr, (m, n), 'FP32').name})", (m, n), "FP32")
        elif follow == "round":
            self.let(f"pl.cast({y.name}, pl.FP16, mode='rint')", (m, n), "FP16")
        elif follow == "bias":
            bias = self.operand((1, n), "FP32")
            self.let(f"pl.tensor.col_expand_add({y.name}, {bias.name})", (m, n), "FP32")
        elif follow == "chain" and n % 16 == 0:
            half = self.let(f"pl.cast({y.name}, pl.FP16, mode='rint')", (m, n), "FP16")
            c = self.operand((n, 32), "FP16")
            self.let(f"pl.matmul({half.name}, {c.name}, out_dtype=pl.FP32)", (m, 32), "FP32")

    def split_k(self) -> None:
        m, n = self.pick(ROWS), self.pick((32, 64))
        dtype = self.pick(FLOATS)
        a, b = self.operand((m, 64), dtype), self.operand((64, n), dtype)
        z = self.hidden(f"pl.create_tensor([{m}, {n}], pl.FP32)", (m, n), "FP32")
        i, acc, p, q, s, r = (self.fresh(c) for c in "iapqsr")
        self.line(f"for {i}, ({acc},) in pl.range(0, 64, 32, init_values=({z.name},)):")
        self.line(f"    {p} = pl.slice({a.name}, [{m}, 32], [0, {i}])")
        self.line(f"    {q} = pl.slice({b.name}, [32, {n}], [{i}, 0])")
        self.line(f"    {s} = pl.matmul_acc({acc}, {p}, {q})")
        self.line(f"    {r} = pl.yield_({s})")
        self.values.append(Value(r, (m, n), "FP32"))
