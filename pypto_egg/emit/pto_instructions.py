"""Tile operators with a PTO instruction of their own: its name, its operands, its attributes.

Source: PyPTO, PTO code generation of elementwise operators (`pto_ops_elementwise.cpp`); PTOAS, the
assembly formats of the tile operations (`PTOTileVectorElementwiseOps.td`,
`PTOTileVectorReductionOps.td`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import Call

_PLAIN = {
    "add": "tadd", "sub": "tsub", "mul": "tmul", "div": "tdiv", "maximum": "tmax",
    "minimum": "tmin", "fmod": "tfmod", "rem": "trem", "addc": "taddc", "subc": "tsubc",
    "part_add": "tpartadd", "part_mul": "tpartmul", "part_max": "tpartmax", "part_min": "tpartmin",
    "and": "tand", "or": "tor", "xor": "txor", "shl": "tshl", "shr": "tshr", "not": "tnot",
    "adds": "tadds", "subs": "tsubs", "muls": "tmuls", "divs": "tdivs", "maximums": "tmaxs",
    "minimums": "tmins", "fmods": "tfmods", "rems": "trems", "addsc": "taddsc", "subsc": "tsubsc",
    "ands": "tands", "ors": "tors", "xors": "txors", "shls": "tshls", "shrs": "tshrs",
    "lrelu": "tlrelu", "prelu": "tprelu", "abs": "tabs", "exp": "texp", "log": "tlog",
    "neg": "tneg", "recip": "trecip", "relu": "trelu", "rsqrt": "trsqrt", "sqrt": "tsqrt",
    "cast": "tcvt", "cmp": "tcmp", "cmps": "tcmps", "sel": "tsel", "sels": "tsels",
}  # fmt: skip
_BY_AXIS = {
    **{f"{axis}_{op}": f"t{axis}{op}" for axis in ("row", "col")
       for op in ("sum", "max", "min", "prod", "argmax", "argmin")},
    **{f"{axis}_expand_{op}": f"t{axis}expand{op}" for axis in ("row", "col")
       for op in ("add", "sub", "mul", "div", "max", "min", "expdif")},
    "row_expand": "trowexpand", "col_expand": "tcolexpand",
    "fillpad": "tfillpad", "fillpad_expand": "tfillpad", "concat": "tconcat",
}  # fmt: skip
# The operands that the instruction takes, where they are not all of the operator's.
_OPERANDS = {"row_expand": (1,), "col_expand": (1,), "fillpad_expand": (0,), "full": (1,)}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ROUNDINGS = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
_PRECISION = {"div": "div_precision", "log": "log_precision", "recip": "recip_precision"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction that reads its operands and writes its result.

    Args:
        name: with its dialect, "pto.tadd".
        operands: positions of the operator's operands that it takes.
        flat: it walks each tile as one run of elements, so a column must be shown to it as a row.
        inside: attributes that stand behind the operands; "" if there are none.
        behind: attributes that stand behind the result.
    """

    name: str
    operands: tuple[int, ...]
    flat: bool
    inside: str = ""
    behind: str = ""


def instruction_of(call: Call) -> Instruction | None:
    """The instruction of a call; None for operators that have none, or not one alone."""
    op = call.op.removeprefix("tile.")
    if op == "full":
        return Instruction("pto.texpands", _OPERANDS[op], flat=True)
    name = _PLAIN.get(op) or _BY_AXIS.get(op)
    if name is None or not call.op.startswith("tile."):
        return None
    operands = _OPERANDS.get(op, tuple(range(len(call.args))))
    return Instruction(f"pto.{name}", operands, op in _PLAIN, _inside(op, call), _behind(op, call))


def _inside(op: str, call: Call) -> str:
    if op in ("cmp", "cmps"):
        code = call.kwarg("cmp_type", 0)
        assert isinstance(code, int)
        return f"{{cmpMode = #pto<cmp {_COMPARISONS[code]}>}}"
    if op == "cast":
        mode = call.kwarg("mode", "round")
        word = _ROUNDINGS[mode] if isinstance(mode, int) else str(mode)
        # An integer that does not fit is clamped. What a float does is the target's own default.
        target = call.kwarg("target_type")
        clamped = isinstance(target, DType) and not target.is_float
        saturation = ", satmode = #pto<saturation_mode ON>" if clamped else ""
        return f"{{rmode = #pto<round_mode {word.upper()}>{saturation}}}"
    if op == "col_sum" and len(call.args) > 1:
        return "{isBinary = true}"
    return ""


def _behind(op: str, call: Call) -> str:
    kind = _PRECISION.get(op)
    if kind is None or not call.kwarg("high_precision", False):
        return ""
    return f" {{precisionType = #pto<{kind} high_precision>}}"
