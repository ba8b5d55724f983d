"""Random whole programs: orchestration that calls InCore functions, directly or by a wrapper."""

from __future__ import annotations

import random

from pypto_egg.bench.random_kernels import Kernel, function_text, random_kernel
from pypto_egg.bench.random_values import INDEX, Pick, Value

_HEAD = "import pypto.language as pl\n\n\n@pl.program\nclass P:\n"


def random_program(pick: Pick, size: int) -> str:
    """A program of about `size` steps: one InCore function, or one or two and their callers."""
    if pick((True, True, False)):
        return _HEAD + random_kernel(pick, size).text("kernel")
    kernels = {"k1": random_kernel(pick, size)}
    if pick((True, False)):
        kernels["k2"] = random_kernel(pick, max(1, size // 2))
    texts = [kernel.text(name) for name, kernel in kernels.items()]
    caller = _Caller(pick)
    for name, kernel in kernels.items():
        wrapper = pick(("", "Spmd", "Group"))
        if wrapper:
            texts.append(_wrapper(name, kernel, wrapper))
        caller.call(f"w{name}" if wrapper else name, kernel)
    texts.append(caller.text())
    # The order in which functions are written says nothing about who calls whom.
    return _HEAD + "\n".join(texts if pick((True, False)) else reversed(texts))


def sample(seed: int, size: int = 5) -> str:
    """The program of a seed; the same on every machine."""
    return random_program(random.Random(seed).choice, size)


def _wrapper(name: str, kernel: Kernel, kind: str) -> str:
    """A function that passes its parameters on, as OutlineClusterScopes makes them."""
    names = [f"r{n}" for n in range(len(kernel.results))]
    shown = ", ".join(names)
    lines = [f"{shown} = self.{name}({', '.join(kernel.params)})", f"return {shown}"]
    return function_text(f"w{name}", kind, kernel.signature(), lines, kernel.results)


class _Caller:
    """The orchestration function under construction.

    Memory that a function writes is a parameter of its own, or overlaps another argument of the
    same call; memory that it reads may also be an earlier result.
    """

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._params: dict[str, str] = {}
        self._lines: list[str] = []
        self._values: list[Value] = []
        self._last: list[Value] = []

    def call(self, name: str, kernel: Kernel) -> None:
        shared = self._overlapping(kernel)
        args = [
            shared.get(param.name) or self._argument(param, kernel)
            for param in kernel.params.values()
        ]
        number = len(self._lines)
        made = [Value(f"y{number}_{n}", v.shape, v.dtype) for n, v in enumerate(kernel.results)]
        self._lines.append(f"{', '.join(v.name for v in made)} = self.{name}({', '.join(args)})")
        self._values.extend(made)
        self._last = made

    def _overlapping(self, kernel: Kernel) -> dict[str, str]:
        """Arguments for two parameters that share memory, one of them written, or none."""
        stored = {*kernel.written, "dst"} & {*kernel.params}
        pairs = [
            (one, other)
            for one in kernel.params.values()
            for other in kernel.params.values()
            if one.name in stored and one is not other and one.dtype == other.dtype
            # What a loop starts from may not be written; see random_kernels.
            and not {one.name, other.name} & kernel.carried and other.shape
        ]  # fmt: skip
        if not pairs or self._pick((True, False)):
            return {}
        one, other = self._pick(pairs)
        if one.shape == other.shape and self._pick((True, False)):
            whole = self._memory(one)
            return {one.name: whole, other.name: whole}
        rows = max(one.shape[0], other.shape[0]) + 8
        cols = max(one.shape[1], other.shape[1])
        base = self._memory(Value("", (rows, cols), one.dtype))
        names = {}
        for param, row in ((one, 0), (other, self._pick((8, 0)))):
            names[param.name] = f"s{len(self._lines)}"
            window = f"pl.slice({base}, {list(param.shape)}, [{row}, 0])"
            self._lines.append(f"{names[param.name]} = {window}")
        return names

    def _memory(self, like: Value) -> str:
        """A new parameter that may be written."""
        name = f"a{len(self._params)}"
        self._params[name] = f"pl.InOut[{like.type}]"
        return name

    def _argument(self, param: Value, kernel: Kernel) -> str:
        if not param.shape:
            self._params.setdefault(param.name, INDEX)
            return param.name
        stored = param.name in kernel.written or param.name == "dst"
        like = [v for v in self._values if (v.shape, v.dtype) == (param.shape, param.dtype)]
        if not stored and like and (chosen := self._pick([*reversed(like), None])) is not None:
            return str(chosen.name)
        if stored:
            return self._memory(param)
        name = f"a{len(self._params)}"
        self._params[name] = param.type
        self._values.append(Value(name, param.shape, param.dtype))
        return name

    def text(self) -> str:
        returned = ", ".join(v.name for v in self._last)
        lines = [*self._lines, f"return {returned}"]
        return function_text("main", "Orchestration", self._params, lines, self._last)
