"""Random well-typed kernels in PyPTO text.

Every choice is taken through one function `pick(options)`, so the same generator serves a seeded
sample (`sample`) and hypothesis (`programs`), which then shrinks towards the first options.

Values stay in a tame range (exponentials only of negated absolute values, divisions only by
values of at least one), so that a difference between two programs is never an overflow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st
from kernels import kernel, out, tensor

T = TypeVar("T")
Pick = Callable[[Sequence[Any]], Any]

ROWS = (16, 1, 5, 8, 17, 32, 40)
COLS = (32, 16, 8, 24, 64, 100)
DEPTHS = (32, 16, 64)
FLOATS = ("FP32", "FP16", "BF16")


@dataclass(frozen=True)
class Value:
    """A tensor in scope: its name, shape and element type; `gm` for parameters and views."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    gm: bool = False


@dataclass
class Writer:
    """A kernel under construction."""

    pick: Pick
    params: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    depth: int = 0
    count: int = 0
    indices: list[tuple[str, int, int]] = field(default_factory=list)
    narrowed: list[Value] = field(default_factory=list)

    # --- names and operands --------------------------------------------------------------------

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def let(self, expr: str, shape: tuple[int, ...], dtype: str, gm: bool = False) -> Value:
        value = Value(self.fresh(), shape, dtype, gm)
        self.line(f"{value.name} = {expr}")
        self.values.append(value)
        return value

    def param(self, shape: tuple[int, ...], dtype: str) -> Value:
        name = self.fresh("x")
        self.params[name] = tensor(shape, dtype)
        value = Value(name, shape, dtype, gm=True)
        self.values.append(value)
        return value

    def operand(self, shape: tuple[int, ...], dtype: str, local: bool = False) -> Value:
        """A value of this type in scope, or a new parameter."""
        found = [
            v for v in self.values if (v.shape, v.dtype) == (shape, dtype) and not (local and v.gm)
        ]
        return self.pick([*reversed(found), None]) or self.param(shape, dtype)

    def any_value(self, want: Callable[[Value], bool] = lambda v: True) -> Value:
        found = [v for v in self.values if len(v.shape) == 2 and want(v)]
        if not found:
            shape = (self.pick(ROWS), self.pick(COLS))
            return self.param(shape, self.pick(FLOATS))
        return self.pick([*reversed(found[-4:] if self.pick((True, True, False)) else found)])

    # --- statements ----------------------------------------------------------------------------

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
        x = self.any_value()
        op = self.pick(("add", "mul", "sub", "div", "maximum", "minimum"))
        scalar = self.pick((0.5, 1.5, -0.25))
        self.let(f"pl.{op}({x.name}, pl.const({scalar}, pl.{x.dtype}))", x.shape, x.dtype)

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

    def transpose(self) -> None:
        x = self.any_value()
        self.let(f"pl.transpose({x.name}, 0, 1)", x.shape[::-1], x.dtype, x.gm)

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
        self.let(
            f"pl.slice({source.name}, {list(shape)}, {offset})", shape, source.dtype, source.gm
        )

    def reshape(self) -> None:
        x = self.any_value()
        rows, cols = x.shape
        options = [(rows * cols // n, n) for n in (16, 32, 64, 8, 1) if rows * cols % n == 0]
        shape = self.pick(options or [x.shape])
        self.let(f"pl.reshape({x.name}, {list(shape)})", shape, x.dtype, x.gm)

    def full(self) -> None:
        shape, dtype = (self.pick(ROWS), self.pick(COLS)), self.pick(FLOATS)
        self.let(f"pl.full({list(shape)}, dtype=pl.{dtype}, value=0.5)", shape, dtype)

    def assemble(self) -> None:
        """Two parts cover a created buffer."""
        x = self.any_value()
        rows, cols = x.shape
        y = self.operand(x.shape, x.dtype)
        whole, second = self.pick((((2 * rows, cols), [rows, 0]), ((rows, 2 * cols), [0, cols])))
        z = self.let(f"pl.create_tensor({list(whole)}, pl.{x.dtype})", whole, x.dtype)
        self.values.remove(z)
        half = self.let(f"pl.assemble({z.name}, {x.name}, [0, 0])", whole, x.dtype)
        self.values.remove(half)
        self.let(f"pl.assemble({half.name}, {y.name}, {second})", whole, x.dtype)

    def valid(self) -> None:
        """A narrowed value may only be returned, as what it does not cover is undefined."""
        x = self.any_value()
        rows = self.pick([n for n in (x.shape[0], x.shape[0] - 1, 1) if n > 0])
        y = self.let(f"pl.set_validshape({x.name}, {rows}, {x.shape[1]})", x.shape, x.dtype)
        self.values.remove(y)
        z = self.let(f"pl.abs({y.name})", x.shape, x.dtype)
        self.values.remove(z)
        if self.depth == 0:
            self.narrowed.append(z)

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
            z = self.let(
                f"pl.matmul({a.name}, {b.name}, {flags}, out_dtype=pl.FP32)", (m, n), "FP32"
            )
            self.let(f"pl.add({y.name}, {z.name})", (m, n), "FP32")
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
        z = self.let(f"pl.create_tensor([{m}, {n}], pl.FP32)", (m, n), "FP32")
        self.values.remove(z)
        i, acc, p, q, s, r = (self.fresh(c) for c in "iapqsr")
        self.line(f"for {i}, ({acc},) in pl.range(0, 64, 32, init_values=({z.name},)):")
        self.line(f"    {p} = pl.slice({a.name}, [{m}, 32], [0, {i}])")
        self.line(f"    {q} = pl.slice({b.name}, [32, {n}], [{i}, 0])")
        self.line(f"    {s} = pl.matmul_acc({acc}, {p}, {q})")
        self.line(f"    {r} = pl.yield_({s})")
        self.values.append(Value(r, (m, n), "FP32"))

    def loop(self) -> None:
        """A loop that carries one or two values; the body may hold loops and branches."""
        carried = [self.any_value() for _ in range(self.pick((1, 2)))]
        carried = [v for n, v in enumerate(carried) if v not in carried[:n]]
        trips, step = self.pick((2, 3)), self.pick((8, 16))
        index = self.fresh("i")
        args = [Value(self.fresh("c"), v.shape, v.dtype) for v in carried]
        names = "".join(f"{a.name}, " for a in args)
        inits = "".join(f"{v.name}, " for v in carried)
        self.line(f"for {index}, ({names}) in pl.range({trips}, init_values=({inits})):")
        scope = list(self.values)
        self.depth += 1
        self.indices.append((index, trips, step))
        self.values.extend(args)
        self.body(self.pick((1, 2, 3)))
        yielded = [self.same_type(a) for a in args]
        results = [Value(self.fresh("r"), a.shape, a.dtype) for a in args]
        targets, sources = (", ".join(v.name for v in vs) for vs in (results, yielded))
        self.line(f"{targets} = pl.yield_({sources})")
        self.indices.pop()
        self.depth -= 1
        self.leave(scope, results)

    def branch(self) -> None:
        """A branch on a scalar parameter or a loop index, whose arms yield one value."""
        self.params.setdefault("n", "pl.Scalar[pl.INDEX]")
        seed = self.any_value()
        tested = self.pick(["n", *(i for i, _, _ in self.indices)])
        name = self.fresh("r")
        scope = list(self.values)
        for head in (f"if {tested} > {self.pick((1, 0, 2))}:", "else:"):
            self.line(head)
            self.depth += 1
            self.body(self.pick((1, 2)))
            self.line(f"{name} = pl.yield_({self.same_type(seed).name})")
            self.depth -= 1
            self.leave(scope, [])
        self.leave(scope, [Value(name, seed.shape, seed.dtype)])

    def same_type(self, like: Value) -> Value:
        """A computed value of a type, for a yield: the last one made, or one made now."""
        found = [
            v for v in self.values if (v.shape, v.dtype) == (like.shape, like.dtype) and not v.gm
        ]
        if found:
            return self.pick([*reversed(found)])
        return self.let(f"pl.neg({like.name})", like.shape, like.dtype)

    def leave(self, scope: list[Value], results: list[Value]) -> None:
        """Values of a block end with it; parameters that it asked for stay."""
        made = [v for v in self.values if v.name in self.params and v not in scope]
        self.values = [*scope, *made, *results]

    def body(self, size: int) -> None:
        for _ in range(size):
            options = STEPS if self.depth < 2 else STEPS[:-2]
            getattr(self, self.pick(options))()


STEPS = (
    "binary", "unary", "with_scalar", "broadcast", "expand", "reduce", "cast", "matmul",
    "split_k", "transpose", "window", "reshape", "full", "assemble", "valid", "branch", "loop",
)  # fmt: skip


def write(pick: Pick, size: int) -> str:
    """A kernel of about `size` steps that returns up to three of its values."""
    writer = Writer(pick)
    writer.body(size)
    computed = [v for v in writer.values if not v.gm]
    if not computed:
        writer.unary()
        computed = [v for v in writer.values if not v.gm]
    returned = [computed[-1]]
    for value in [pick([*reversed(computed)]) for _ in range(pick((0, 1, 2)))]:
        if value not in returned:
            returned.append(value)
    returned.extend(writer.narrowed[-1:])
    if pick((False, False, True)):
        last = returned.pop()
        writer.params["dst"] = out(last.shape, last.dtype)
        writer.line(f"done = pl.assemble(dst, {last.name}, [{', '.join('0' * len(last.shape))}])")
        returned.append(Value("done", last.shape, last.dtype))
    writer.line("return " + ", ".join(v.name for v in returned))
    types = [tensor(v.shape, v.dtype) for v in returned]
    arrow = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    return kernel(writer.params, "\n".join(writer.lines), arrow)


def sample(seed: int, size: int = 5) -> str:
    """The kernel of a seed; the same on every machine."""
    return write(random.Random(seed).choice, size)


@st.composite
def programs(draw: st.DrawFn, most: int = 6) -> str:
    """Kernels of one to `most` steps."""
    return write(lambda options: draw(st.sampled_from(list(options))), draw(st.integers(1, most)))
