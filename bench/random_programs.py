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

    Memory that a function writes is a parameter of its own, so that no two parameters of a call
    overlap; memory that it reads may also be an earlier result.
    """

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._params: dict[str, str] = {}
        self._lines: list[str] = []
        self._values: list[Value] = []
        self._last: list[Value] = []

    def call(self, name: str, kernel: Kernel) -> None:
        args = [self._argument(param, kernel) for param in kernel.params.values()]
        number = len(self._lines)
        made = [Value(f"y{number}_{n}", v.shape, v.dtype) for n, v in enumerate(kernel.results)]
        self._lines.append(f"{', '.join(v.name for v in made)} = self.{name}({', '.join(args)})")
        self._values.extend(made)
        self._last = made

    def _argument(self, param: Value, kernel: Kernel) -> str:
        if not param.shape:
            self._params.setdefault(param.name, INDEX)
            return param.name
        stored = param.name in kernel.written or param.name == "dst"
        like = [v for v in self._values if (v.shape, v.dtype) == (param.shape, param.dtype)]
        if not stored and like and (chosen := self._pick([*reversed(like), None])) is not None:
            return str(chosen.name)
        name = f"a{len(self._params)}"
        self._params[name] = f"pl.InOut[{param.type}]" if stored else param.type
        if not stored:
            self._values.append(Value(name, param.shape, param.dtype))
        return name

    def text(self) -> str:
        returned = ", ".join(v.name for v in self._last)
        lines = [*self._lines, f"return {returned}"]
        return function_text("main", "Orchestration", self._params, lines, self._last)
