"""Random InCore functions: tensor statements, control flow, and reads and writes of memory.

A parameter that is written is never carried by a loop or yielded by a branch, because the value
that such a handle stands for would then be a matter of reading. One parameter is written by bulk
stores only or by scalar stores only, which PyPTO asks for (requirement C-065).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_egg.bench.random_values import COLS, FLOATS, INDEX, Pick, Shape, Value, Values

BULK, SCALAR = "bulk", "scalar"
_STORED_SHAPES = ((16, 32), (32, 16), (8, 64), (16, 8))


@dataclass
class Kernel(Values):
    """An InCore function under construction.

    Args:
        written: written parameter -> the path that its stores take.
        carried: parameters whose values loops and branches carry.
        results: what the function returns.
    """

    written: dict[str, str] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    results: list[Value] = field(default_factory=list)

    def text(self, name: str) -> str:
        """The function as a method of a program class."""
        return function_text(name, "InCore", self.signature(), self.lines, self.results)

    def signature(self) -> dict[str, str]:
        """Parameter -> its annotation; every second written one leaves its direction to find."""
        found = {}
        for number, (name, param) in enumerate(self.params.items()):
            kind = param.type if param.shape else INDEX
            if name == "dst":
                kind = f"pl.Out[{kind}]"
            elif name in self.written and number % 2 == 0:
                kind = f"pl.InOut[{kind}]"
            found[name] = kind
        return found

    # --- control flow --------------------------------------------------------------------------

    def loop(self) -> None:
        """A loop that carries one or two values; the body may hold loops and branches."""
        carried = self._inits(self.pick((1, 2)))
        trips, step = self.pick((2, 3)), self.pick((8, 16))
        index = self.fresh("i")
        args = [Value(self.fresh("c"), v.shape, v.dtype) for v in carried]
        names = "".join(f"{a.name}, " for a in args)
        inits = "".join(f"{v.name}, " for v in carried)
        self.line(f"for {index}, ({names}) in pl.range({trips}, init_values=({inits})):")
        self._repeat(args, (index, trips, step), "", ())

    def while_loop(self) -> None:
        """A while loop that counts to a limit and carries one value."""
        (init,) = self._inits(1)
        counter, after, limit = self.fresh("k"), self.fresh("k"), self.pick((2, 3))
        arg = Value(self.fresh("c"), init.shape, init.dtype)
        header = f"for ({counter}, {arg.name}) in pl.while_(init_values=(0, {init.name})):"
        self.line(header)
        self.line(f"    pl.cond({counter} < {limit})")
        self._repeat([arg], (counter, limit, 8), f"{after} = {counter} + 1", (after,))

    def _inits(self, count: int) -> list[Value]:
        """Different values that a loop may start from."""
        found = [self.any_value(lambda v: v.root not in self.written) for _ in range(count)]
        found = [v for n, v in enumerate(found) if v not in found[:n]]
        self.carried.update(v.root for v in found if v.root)
        return found

    def _repeat(
        self,
        args: list[Value],
        index: tuple[str, int, int],
        counting: str,
        counted: tuple[str, ...],
    ) -> None:
        """A loop's body, whose yield has the types of what is carried."""
        values, scalars = list(self.values), list(self.scalars)
        self.depth += 1
        self.indices.append(index)
        self.values.extend(args)
        self.body(self.pick((1, 2, 3)))
        yielded = [self.same_type(a) for a in args]
        results = [Value(self.fresh("r"), a.shape, a.dtype) for a in args]
        if counting:
            self.line(counting)
        targets = ", ".join([*(self.fresh("k") for _ in counted), *(v.name for v in results)])
        sources = ", ".join([*counted, *(v.name for v in yielded)])
        self.line(f"{targets} = pl.yield_({sources})")
        self.indices.pop()
        self.depth -= 1
        self._leave(values, scalars, results)

    def branch(self) -> None:
        """A branch on a scalar parameter or a loop index, whose arms yield one value."""
        (seed,) = self._inits(1)
        tested, name = self._tested(), self.fresh("r")
        values, scalars = list(self.values), list(self.scalars)
        for head in (f"if {tested}:", "else:"):
            self.line(head)
            self.depth += 1
            self.body(self.pick((1, 2)))
            self.line(f"{name} = pl.yield_({self.same_type(seed).name})")
            self.depth -= 1
            self._leave(values, scalars, [])
        self.values.append(Value(name, seed.shape, seed.dtype))

    def _tested(self) -> str:
        self.params.setdefault("n", Value("n", (), "INDEX"))
        tested = self.pick(["n", *(i for i, _, _ in self.indices)])
        return f"{tested} > {self.pick((1, 0, 2))}"

    def same_type(self, like: Value) -> Value:
        """A computed value of a type, for a yield: one that there is, or one made now."""
        found = [
            v for v in self.values if (v.shape, v.dtype) == (like.shape, like.dtype) and not v.root
        ]
        if found:
            return self.pick([*reversed(found)])
        return self.let(f"pl.neg({like.name})", like.shape, like.dtype)

    def _leave(
        self, values: list[Value], scalars: list[tuple[str, str]], results: list[Value]
    ) -> None:
        """Values of a block end with it; parameters that it asked for stay."""
        made = [v for v in self.values if v.name in self.params and v not in values]
        self.values = [*values, *made, *results]
        self.scalars = list(scalars)

    # --- memory --------------------------------------------------------------------------------

    def read(self) -> None:
        """One element of memory or of a value."""
        x = self.any_value(lambda v: v.dtype == "FP32")
        name = self.fresh("e")
        self.line(f"{name} = pl.tensor.read({x.name}, {self._element(x.shape)})")
        self.scalars.append((name, x.dtype))

    def write(self) -> None:
        """One element of memory, under a condition or not."""
        target = self._target(SCALAR, self.pick(_STORED_SHAPES))
        read = [name for name, dtype in self.scalars if dtype == target.dtype]
        value = self.pick([*reversed(read), f"pl.const(1.5, pl.{target.dtype})"])
        store = f"pl.tensor.write({target.name}, {self._element(target.shape)}, {value})"
        if self.pick((False, False, True)):
            self.line(f"if {self._tested()}:")
            store = f"    {store}"
        self.line(store)

    def store(self) -> None:
        """A computed value into memory, at a constant place or at a loop's."""
        x = self.any_value(lambda v: not v.root)
        if x.root:
            x = self.let(f"pl.abs({x.name})", x.shape, x.dtype)
        rows, cols = x.shape
        offset = "[0, 0]"
        whole = self.pick(((rows, cols), (2 * rows, cols)))
        if self.indices and self.pick((True, False)):
            index, trips, _ = self.pick(self.indices)
            whole, offset = (trips * rows, cols), f"[{index} * {rows}, 0]"
        target = self._target(BULK, whole, x.dtype)
        expr = f"pl.assemble({target.name}, {x.name}, {offset})"
        self.let(expr, target.shape, target.dtype, target.root)

    def store_loop(self) -> None:
        """Windows of one tensor into another; the handle is carried, or not."""
        trips, rows, cols = self.pick((2, 3)), self.pick((8, 16)), self.pick(COLS)
        dtype = self.pick(FLOATS)
        source = self.operand((trips * rows, cols), dtype)
        target = self._target(BULK, (trips * rows, cols), dtype)
        i, w, u, h = (self.fresh(c) for c in "iwuh")
        inside = target.name
        if carried := self.pick((True, False)):
            inside = self.fresh("o")
            head = f"for {i}, ({inside},) in pl.range({trips}, init_values=({target.name},)):"
        else:
            head = f"for {i} in pl.range({trips}):"
        self.line(head)
        self.line(f"    {w} = pl.slice({source.name}, [{rows}, {cols}], [{i} * {rows}, 0])")
        self.line(f"    {u} = pl.{self.pick(('neg', 'abs'))}({w})")
        self.line(f"    {h} = pl.assemble({inside}, {u}, [{i} * {rows}, 0])")
        if carried:
            result = Value(self.fresh("r"), target.shape, dtype, target.root)
            self.line(f"    {result.name} = pl.yield_({h})")
            self.values.append(result)

    def fill(self) -> None:
        """A row of memory by scalar stores of a constant, which is a bulk store in disguise."""
        target = self._target(BULK, self.pick(_STORED_SHAPES))
        i, row = self.fresh("i"), self.pick((0, target.shape[0] - 1))
        self.line(f"for {i} in pl.range({target.shape[1]}):")
        self.line(f"    pl.tensor.write({target.name}, [{row}, {i}], pl.const(0.25, pl.FP32))")

    def staged(self) -> None:
        """A value of its own that scalar writes change before anything else reads it."""
        x = self.any_value()
        rows, cols = x.shape
        full = f"pl.full({list(x.shape)}, dtype=pl.{x.dtype}, value=0.5)"
        s = self.hidden(self.pick((f"pl.neg({x.name})", full)), x.shape, x.dtype)
        for _ in range(self.pick((1, 2))):
            at, value = self._element(x.shape), f"pl.const(1.5, pl.{x.dtype})"
            match self.pick(("plain", "guarded", "repeated")):
                case "plain":
                    self.line(f"pl.tensor.write({s.name}, {at}, {value})")
                case "guarded":
                    self.line(f"if {self._tested()}:")
                    self.line(f"    pl.tensor.write({s.name}, {at}, {value})")
                case _:
                    i = self.fresh("i")
                    self.line(f"for {i} in pl.range({min(rows, 3)}):")
                    self.line(f"    pl.tensor.write({s.name}, [{i}, {cols - 1}], {value})")
        self.values.append(s)

    def alias(self) -> None:
        """Another name of memory."""
        x = self.any_value(lambda v: bool(v.root))
        if x.root and x.name not in self.reordered:
            self.let(x.name, x.shape, x.dtype, x.root)

    def _target(self, path: str, shape: Shape, dtype: str = "FP32") -> Value:
        """Memory to store to: a parameter or a window of it that no other path writes."""
        found = [
            v
            for v in self.values
            if v.root
            and (v.shape, v.dtype) == (shape, dtype)
            and v.root not in self.carried
            and self.written.get(v.root, path) == path
            and v.name not in self.reordered
        ]
        target = self.pick([*reversed(found), None]) or self.param(shape, dtype)
        self.written[target.root] = path
        return target

    def _element(self, shape: Shape) -> str:
        """The index of an element: constants, or a loop variable that stays inside."""
        inside = [i for i, trips, _ in self.indices if trips <= shape[0]]
        row = self.pick([*inside, 0, shape[0] - 1])
        return f"[{row}, {self.pick((0, shape[1] - 1))}]"

    # --- the whole -----------------------------------------------------------------------------

    def body(self, size: int) -> None:
        for _ in range(size):
            options = (*STEPS, *BLOCKS) if self.depth < 2 else STEPS
            getattr(self, self.pick(options))()

    def finish(self) -> None:
        """Choose what is returned: up to three values, at least a computed one."""
        computed = [v for v in self.values if not v.root]
        if not computed:
            x = self.any_value()
            computed = [self.let(f"pl.neg({x.name})", x.shape, x.dtype)]
        returned = [computed[-1]]
        for value in [self.pick([*reversed(computed)]) for _ in range(self.pick((0, 1, 2)))]:
            if value not in returned:
                returned.append(value)
        returned.extend(self.narrowed[-1:])
        if self.pick((False, False, True)):
            last = returned.pop()
            self.params["dst"] = Value("dst", last.shape, last.dtype, "dst")
            self.line(f"done = pl.assemble(dst, {last.name}, [0, 0])")
            returned.append(Value("done", last.shape, last.dtype, "dst"))
        self.results = returned
        self.line("return " + ", ".join(v.name for v in returned))


STEPS = (
    "binary", "unary", "with_scalar", "broadcast", "expand", "reduce", "cast", "matmul",
    "split_k", "transpose", "window", "reshape", "full", "assemble", "valid", "read", "write",
    "store", "alias", "staged", "fill",
)  # fmt: skip
BLOCKS = ("store_loop", "branch", "loop", "while_loop")


def random_kernel(pick: Pick, size: int) -> Kernel:
    """An InCore function of about `size` steps."""
    kernel = Kernel(pick)
    kernel.body(size)
    kernel.finish()
    return kernel


def function_text(
    name: str, kind: str, params: dict[str, str], lines: list[str], results: list[Value]
) -> str:
    """A function of a program class; `lines` are indented from column 0."""
    types = [v.type for v in results]
    arrow = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    signature = ", ".join(["self", *(f"{p}: {t}" for p, t in params.items())])
    head = (
        f"    @pl.function(type=pl.FunctionType.{kind})\n    def {name}({signature}) -> {arrow}:\n"
    )
    return head + "".join(f"        {line}\n" for line in lines)
