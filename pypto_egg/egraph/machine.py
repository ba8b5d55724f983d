"""The facts of a target and of the operator registry, as actions for the e-graph."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg import ops
from pypto_egg.egraph.bulk import Action, assign, assign_constant, assign_pair, fact, mention, node
from pypto_egg.egraph.terms import SCALAR_FORM
from pypto_egg.ir.dtype import BF16, DTYPES, FP16, FP32, INT32
from pypto_egg.ir.enums import Mem
from pypto_egg.ops.registry import OpDecl, declared, lookup
from pypto_egg.target.target import Target

# A broadcasting op and the forms that spread a [M, 1] or [1, N] right operand for it.
_BROADCAST = ("add", "sub", "mul", "div", "maximum", "minimum")
_SHORT = {"maximum": "max", "minimum": "min"}

# Families whose tile op does not simply take the operands in the extents of the result.
_OWN_RULES = ("fillpad", "concat")


def machine_facts(target: Target) -> Iterator[Action]:
    """Everything that holds for the target and the registry, whatever the program.

    Sources: the target's data file and the operator declarations.
    """
    yield mention(node("index", 1))  # rules ask whether an extent is it, which needs it to be there
    yield assign_constant("fractal_rows", target.fractal.rows)
    for flag, order in enumerate(("nz", "zn")):
        yield assign("read_order", flag, order)
    yield assign_constant("bias_bytes", target.bias_bytes_multiple)
    for space in (Mem.Vec, Mem.Mat, Mem.Acc, Mem.Left, Mem.Right, Mem.Bias):
        yield assign("capacity", space.value, target.capacity_bytes(space))
    m, n = l0_block(target)
    yield assign("block_limit", "m", m)
    yield assign("block_limit", "n", n)
    granularity = target.fractal.rows
    while granularity <= max(m, n):
        yield fact("box", granularity)
        granularity *= 2
    yield from _dtype_facts(target)
    yield from _op_facts()


def l0_block(target: Target) -> tuple[int, int]:
    """Rows and columns of the largest FP32 accumulator whose operands still double-buffer.

    A block of m x n needs m * k and n * k elements in halves of L0A and L0B at the least K step
    of one fractal row of 16 elements, and m * n * 4 bytes of L0C; the widest power-of-two n that
    leaves m a power of two no smaller than n / 2 is taken.
    """
    elements = target.capacity_bytes(Mem.Acc) // FP32.bytes
    m = 1
    while (2 * m) * (2 * m) <= elements:
        m *= 2
    return m, elements // m


def _dtype_facts(target: Target) -> Iterator[Action]:
    for dtype in DTYPES.values():
        if dtype.bits >= 8:
            yield assign("line", dtype.name, target.c0_elems(dtype))
            yield assign("element_bytes", dtype.name, dtype.bytes)
    for x in DTYPES.values():
        for y in DTYPES.values():
            accumulated = target.cube_accumulator(x, y)
            if accumulated is not None:
                yield assign_pair("accumulator", x.name, y.name, accumulated.name)
    for acc in (FP32, INT32):
        for dst in (FP32, FP16, BF16, INT32):
            if target.drain_supported(acc, dst):
                yield fact("drains", acc.name, dst.name)
            if target.drain_supported(acc, dst, Mem.Mat):
                yield fact("inserts", acc.name, dst.name)


def _op_facts() -> Iterator[Action]:
    assert ops
    for decl in declared():
        if decl.namespace != "tensor":
            continue
        yield assign("family", decl.name, _family(decl))
        twin = decl.lowers_to or tile_twin(decl.name)
        if twin and decl.family not in _OWN_RULES:
            yield assign("lowers_to", decl.name, twin)
    for name in SCALAR_FORM.values():
        yield assign("lowers_to", name, tile_twin(name))
        yield assign("family", name, "binary_scalar")
    for name in _BROADCAST:
        short = _SHORT.get(name, name)
        yield assign("row_form", f"tensor.{name}", f"tensor.row_expand_{short}")
        yield assign("col_form", f"tensor.{name}", f"tensor.col_expand_{short}")


def _family(decl: OpDecl) -> str:
    """The family under which rules know an op: an arg reduction goes along its own axis."""
    if decl.family != "arg_reduce":
        return decl.family
    return "row_reduce" if decl.name.startswith("tensor.row_") else "col_reduce"


def tile_twin(name: str) -> str:
    """The tile op of the same leaf name, or "" if there is none."""
    twin = "tile." + name.split(".", 1)[1]
    return twin if lookup(twin) is not None else ""
