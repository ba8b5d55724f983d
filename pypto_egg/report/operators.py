"""The operators of the registry: what they take, where they may stand, and what executes them."""

from __future__ import annotations

from enum import Enum

from pypto_egg.errors import OptionError
from pypto_egg.ir.enums import Mem
from pypto_egg.ops.registry import Kwarg, OpDecl, Operand, Required, declared
from pypto_egg.ops.staging import INPUT_REQS
from pypto_egg.text.reader import closest

_TRANSFERS = ("load", "store", "move", "assemble", "extract")
_BY_TRANSFER = ("gather_row", "paged_gather", "mgather", "mscatter")
_SCALAR = ("read", "write", "query", "array")
_SYSTEM = ("comm", "sync")


def operators_text(name: str | None = None) -> str:
    """All operators, a line each, or what is known of those that `name` means ("add", "tile.add").

    Raises:
        OptionError: no operator has that name.
    """
    if name is None:
        return "".join(f"{decl.name:<28} {_runs_on(decl):<14} {_call(decl)}\n" for decl in _all())
    leaf = name.removeprefix("pl.")
    found = [decl for decl in _all() if leaf in (decl.name, decl.name.split(".", 1)[1])]
    if not found:
        known = [n for decl in _all() for n in (decl.name, decl.name.split(".", 1)[1])]
        raise OptionError(
            f"there is no operator '{name}'",
            hint=closest(leaf, dict.fromkeys(known)) or "`pypto-egg ops` lists them all",
        )
    return "\n".join(_described(decl) for decl in found)


def _all() -> list[OpDecl]:
    """The declarations with tensor operators first, then those on tiles, then the others."""
    order = {"tensor": 0, "tile": 1}
    return sorted(declared(), key=lambda d: (order.get(d.namespace, 2), d.name))


def _call(decl: OpDecl) -> str:
    operands = [f"[{o.name}]" if o.optional else o.name for o in decl.operands]
    return f"({', '.join((*operands, *map(_kwarg, decl.kwargs)))})"


def _kwarg(kwarg: Kwarg) -> str:
    if isinstance(kwarg.default, Required):
        return f"{kwarg.name}="
    return f"{kwarg.name}={_value(kwarg.default)}"


def _value(default: object) -> str:
    return default.name if isinstance(default, Enum) else repr(default)


def _described(decl: OpDecl) -> str:
    written = decl.name if decl.namespace == "pld" else f"pl.{decl.name}"
    lines = [f"{written}{_call(decl)}", f"  stage: {_stage(decl)}", f"  runs on: {_runs_on(decl)}"]
    arrives = {req.operand: req.demanded_space.space for req in INPUT_REQS.get(decl.name, ())}
    for place, operand in enumerate(decl.operands):
        where = f", arrives in {arrives[place].value}" if place in arrives else ""
        lines.append(f"  operand {operand.name}: {_operand(operand)}{where}")
    lines += [f"  keyword {_kwarg(k)}: {k.kind}" for k in decl.kwargs]
    if decl.output_space is not None:
        lines.append(f"  result in: {_output(decl.output_space)}")
    if decl.lowers_to is not None:
        lines.append(f"  becomes: {decl.lowers_to}")
    return "\n".join(lines) + "\n"


def _stage(decl: OpDecl) -> str:
    match decl.namespace:
        case "tensor":
            return "tensors, before lowering"
        case "tile":
            return "tiles, after lowering"
        case _:
            return "any"


def _runs_on(decl: OpDecl) -> str:
    """The unit that executes an operator, or its tile form."""
    leaf, family = decl.name.split(".", 1)[1], decl.family
    if not decl.instruction:
        return "no instruction"
    if decl.namespace not in ("tensor", "tile", "array") or family in _SYSTEM:
        return "system"
    if "matmul" in family:
        return "cube"
    if family in _TRANSFERS or leaf in _BY_TRANSFER:
        return "transfer"
    return "scalar unit" if family in _SCALAR else "vector unit"


def _operand(operand: Operand) -> str:
    spaces = [space.value for space in Mem if space in operand.spaces]
    where = f" in {' or '.join(spaces)}" if spaces else ""
    return f"{operand.kind}{where}{', optional' if operand.optional else ''}"


def _output(space: Mem | str) -> str:
    if isinstance(space, Mem):
        return space.value
    return {"inherit": "the space of its first operand"}.get(space, "the space of target_memory")
