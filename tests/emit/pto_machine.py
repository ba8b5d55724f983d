"""Executes PTO MLIR text on numpy arrays, so that a buffer in the wrong place gives wrong numbers.

A tile is a matrix of float64 in logical order, NaN where nothing was written; a view of one shares
its memory. Views of global memory are strided by what `make_tensor_view` says.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
from pto_reader import Op, extents, read, tile

ROUND = {"RINT": np.rint, "ROUND": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
         "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc, "NONE": np.rint}  # fmt: skip
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
          "max": np.maximum, "min": np.minimum}  # fmt: skip
UNARY = {"exp": np.exp, "neg": np.negative, "sqrt": np.sqrt, "abs": np.abs, "log": np.log,
         "recip": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x),
         "relu": lambda x: np.maximum(x, 0)}  # fmt: skip
REDUCE = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
ARITH = {"addi": int.__add__, "subi": int.__sub__, "muli": int.__mul__,
         "floordivsi": int.__floordiv__, "minsi": min, "maxsi": max, "andi": int.__and__,
         "ori": int.__or__, "xori": int.__xor__, "addf": float.__add__, "subf": float.__sub__,
         "mulf": float.__mul__, "divf": float.__truediv__}  # fmt: skip
COMPARE = {"eq": "__eq__", "ne": "__ne__", "slt": "__lt__", "sle": "__le__", "sgt": "__gt__",
           "sge": "__ge__"}  # fmt: skip
WIDTH = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def execute(text: str, arguments: list, block: int = 0, name: str | None = None) -> None:
    """Run a function of a module: arrays (flat, overwritten in place) and scalars by position."""
    functions = {re.search(r"@(\w+)", op.text)[1]: op for op in read(text)}
    function = functions[name] if name else next(iter(functions.values()))
    _Machine(block).function(function, arguments)


class _Machine:
    def __init__(self, block: int) -> None:
        self.block = block
        self.values: dict[str, object] = {}
        self.kinds: dict[str, str] = {}

    def function(self, op: Op, arguments: list) -> None:
        self.bind(op.args, arguments)
        self.region(op.regions[0])

    def region(self, ops: list[Op]) -> list:
        for op in ops:
            if op.name in ("scf.yield", "scf.condition"):
                return [self.values[name] for name in op.operands]
            if op.name == "^bb0":
                continue
            self.step(op)
        return []

    def set(self, op: Op, *values: object) -> None:
        for name, kind, value in zip(op.results, op.result_kinds, values, strict=True):
            self.values[name], self.kinds[name] = value, kind

    def step(self, op: Op) -> None:
        family, _, rest = op.name.partition(".")
        if family == "arith":
            self.set(op, self.arith(op, rest))
        elif family == "scf":
            getattr(self, f"scf_{rest}")(op)
        elif op.name == "return":
            pass
        elif hasattr(self, f"pto_{rest.replace('.', '_')}"):
            getattr(self, f"pto_{rest.replace('.', '_')}")(op)
        else:
            self.vector(op, rest.removeprefix("t"))

    # --- scalars and control flow ----------------------------------------------------------------

    def arith(self, op: Op, name: str) -> object:
        kind = op.result_kinds[0]
        if name == "constant":
            return float(op.inside) if kind in FLOATS else int(op.inside)
        values = [self.values[operand] for operand in op.operands]
        if name.startswith("cmp"):
            predicate = op.inside.lstrip("o") if name == "cmpf" else op.inside
            symbol = predicate if predicate in COMPARE else f"s{predicate}"
            return int(getattr(values[0], COMPARE[symbol])(values[1]))
        if name in ("index_cast", "extsi", "trunci"):
            return _wrapped(int(values[0]), kind)
        if name in ("sitofp", "extf", "truncf"):
            return float(values[0])
        result = ARITH[name](*values)
        return _wrapped(result, kind) if kind in WIDTH else result

    def scf_for(self, op: Op) -> None:
        start, stop, step = (self.values[name] for name in op.loose)
        carried = [self.values[name] for name in op.operands]
        for number in range(start, stop, step):
            self.bind(op.args, [number, *carried])
            carried = self.region(op.regions[0])
        self.set(op, *carried)

    def scf_if(self, op: Op) -> None:
        arm = 0 if self.values[op.operands[0]] else 1
        self.set(op, *(self.region(op.regions[arm]) if arm < len(op.regions) else []))

    def scf_while(self, op: Op) -> None:
        carried = [self.values[name] for name in op.operands]
        while True:
            self.bind(op.args, carried)
            goes, *carried = self.region(op.regions[0])
            if not goes:
                self.set(op, *carried)
                return
            body = op.regions[1]
            self.bind(body[0].args if body[0].name == "^bb0" else [], carried)
            carried = self.region(body)

    def bind(self, args: list[tuple[str, str]], values: list) -> None:
        for (name, kind), value in zip(args, values, strict=True):
            self.values[name], self.kinds[name] = value, kind

    # --- memory ----------------------------------------------------------------------------------

    def pto_alloc_tile(self, op: Op) -> None:
        fields = tile(op.result_kinds[0])
        matrix = np.full((fields["rows"], fields["cols"]), np.nan)
        valid = [self.values[name] for name in op.loose] or [fields["v_row"], fields["v_col"]]
        self.set(op, (matrix, *valid))

    def pto_make_tensor_view(self, op: Op) -> None:
        numbers = [self.values[name] for name in op.loose]
        rank = len(numbers) // 2
        flat = self.values[op.operands[0]]
        assert sum((n - 1) * s for n, s in zip(numbers[:rank], numbers[rank:], strict=True)) < (
            flat.size
        )
        strides = [s * flat.itemsize for s in numbers[rank:]]
        self.set(op, np.lib.stride_tricks.as_strided(flat, numbers[:rank], strides))

    def pto_partition_view(self, op: Op) -> None:
        numbers = [self.values[name] for name in op.loose]
        rank = len(numbers) // 2
        view = self.values[op.operands[0]]
        window = zip(numbers[:rank], numbers[rank:], view.shape, strict=True)
        assert all(start >= 0 and start + size <= whole for start, size, whole in window), op.text
        self.set(op, view[tuple(slice(a, a + n) for a, n in zip(numbers[:rank], numbers[rank:],
                                                                strict=True))])  # fmt: skip

    def pto_tload(self, op: Op) -> None:
        matrix, rows, cols = self.values[op.outs[0]]
        part = self.values[op.operands[0]].astype(np.float64)
        if len(extents(op.kinds[0])) == 5:
            part = part.transpose(0, 2, 3, 1, 4)
        matrix[:] = np.nan
        matrix[:rows, :cols] = part.reshape(rows, cols)

    def pto_tstore(self, op: Op) -> None:
        part = self.values[op.outs[0]]
        source = self.valid(op.operands[0])
        assert not np.isnan(source).any(), f"stores what was never written: {op.text}"
        if len(extents(op.outs_kinds[0])) == 5:
            _, c1, r1, r0, c0 = part.shape
            part[0] = source.reshape(r1, r0, c1, c0).transpose(2, 0, 1, 3)
        else:
            part[...] = source.reshape(part.shape).astype(part.dtype)

    def pto_load_scalar(self, op: Op) -> None:
        value = self.values[op.operands[0]][self.values[op.loose[0]]]
        self.set(op, float(value) if op.result_kinds[0] in FLOATS else int(value))

    def pto_store_scalar(self, op: Op) -> None:
        self.values[op.operands[1]][self.values[op.loose[0]]] = self.values[op.operands[0]]

    def pto_get_block_idx(self, op: Op) -> None:
        self.set(op, self.block)

    # --- tiles -----------------------------------------------------------------------------------

    def valid(self, name: str) -> np.ndarray:
        matrix, rows, cols = self.values[name]
        return matrix[:rows, :cols]

    def pto_treshape(self, op: Op) -> None:
        matrix, rows, cols = self.values[op.operands[0]]
        before, after = tile(op.kinds[0]), tile(op.result_kinds[0])
        turned = before["slayout"] != "none_box" or 1 in (before["cols"], after["cols"])
        turned = turned and before["blayout"] != after["blayout"] and matrix.shape[::-1] == (
            after["rows"], after["cols"])  # fmt: skip
        new = matrix.T if turned else matrix.reshape(after["rows"], after["cols"])
        assert np.shares_memory(new, matrix)
        assert new.shape == (after["rows"], after["cols"]), op.text
        valid = (cols, rows) if turned else (after["v_row"], after["v_col"])
        self.set(op, (new, *valid))

    def pto_subview(self, op: Op) -> None:
        matrix, _, _ = self.values[op.operands[0]]
        row, col, rows, cols = (self.values[name] for name in op.loose)
        fields = tile(op.result_kinds[0])
        part = matrix[row : row + fields["rows"], col : col + fields["cols"]]
        assert part.shape == (fields["rows"], fields["cols"]), op.text
        self.set(op, (part, rows, cols))

    def pto_tmov(self, op: Op) -> None:
        out = tile(op.outs_kinds[0])
        self.valid(op.outs[0])[...] = _as(self.valid(op.operands[0]), out["dtype"])

    def pto_tinsert(self, op: Op) -> None:
        source = self.valid(op.operands[0])
        row, col = (self.values[name] for name in op.operands[1:])
        target = self.values[op.outs[0]][0]
        dtype = tile(op.outs_kinds[0])["dtype"]
        target[row : row + len(source), col : col + source.shape[1]] = _as(source, dtype)

    def pto_textract(self, op: Op) -> None:
        source, (out, rows, cols) = self.values[op.operands[0]][0], self.values[op.outs[0]]
        row, col = (self.values[name] for name in op.operands[1:])
        out[:rows, :cols] = source[row : row + rows, col : col + cols]

    def pto_tmatmul(self, op: Op) -> None:
        left, right = (self.valid(name) for name in op.operands[:2])
        self.valid(op.outs[0])[...] = left @ right

    def pto_tmatmul_acc(self, op: Op) -> None:
        left, right = (self.valid(name) for name in op.operands[1:])
        self.valid(op.outs[0])[...] += left @ right

    def pto_tmatmul_bias(self, op: Op) -> None:
        self.pto_tmatmul(op)
        self.valid(op.outs[0])[...] += self.valid(op.operands[2])

    def pto_ttrans(self, op: Op) -> None:
        # All of the source, its padding too: the result's valid part may be more than its own.
        self.valid(op.outs[0])[...] = self.values[op.operands[0]][0].T[
            tuple(map(slice, self.valid(op.outs[0]).shape))
        ]

    def pto_tsetval(self, op: Op) -> None:
        at, value = (self.values[name] for name in op.operands)
        self.values[op.outs[0]][0].reshape(-1)[at] = value

    def pto_tgetval(self, op: Op) -> None:
        matrix = self.values[op.operands[0]][0]
        value = matrix.reshape(-1)[self.values[op.operands[1]]]
        self.set(op, float(value) if op.result_kinds[0] in FLOATS else int(value))

    def pto_tcvt(self, op: Op) -> None:
        source, dtype = self.valid(op.operands[0]), tile(op.outs_kinds[0])["dtype"]
        mode = re.search(r"round_mode (\w+)", op.inside)[1]
        rounded = _as(source, dtype) if dtype in FLOATS else ROUND[mode](source)
        self.valid(op.outs[0])[...] = rounded

    def vector(self, op: Op, name: str) -> None:
        operands = [
            self.valid(part) if kind.startswith("!") else self.values[part]
            for part, kind in zip(op.operands, op.kinds, strict=True)
        ]
        result = _result(name, operands)
        out = self.valid(op.outs[0])
        # Computed before it is written: an operand may be the result's buffer.
        out[...] = np.broadcast_to(
            _as(np.array(result), tile(op.outs_kinds[0])["dtype"]), out.shape
        )


def _result(name: str, operands: list) -> np.ndarray | float:
    if name == "expands":
        return operands[0]
    if name in UNARY:
        return UNARY[name](operands[0])
    if name in BINARY or name.removesuffix("s") in BINARY:
        return BINARY[name if name in BINARY else name[:-1]](*operands[:2])
    found = re.fullmatch(r"(row|col)(expand)?(\w*)", name)
    assert found, f"no such instruction here: pto.t{name}"
    axis = 1 if found[1] == "row" else 0
    if not found[2]:
        return REDUCE[found[3]](operands[0], axis=axis, keepdims=True)
    return BINARY[found[3]](*operands[:2]) if found[3] else operands[0]


def _as(values: np.ndarray, dtype: str) -> np.ndarray:
    return values.astype(FLOATS[dtype]).astype(np.float64) if dtype in FLOATS else values


def _wrapped(value: int, kind: str) -> int:
    half = 1 << (WIDTH[kind] - 1)
    return (value + half) % (2 * half) - half
