"""PTO MLIR text as operations and regions, and the rules that every such text keeps.

Written from the assembly formats of PTOAS and MLIR's `arith` and `scf`, not from the writer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

_START = re.compile(r"(\^bb0|%[\w, %]+ = |pto\.|scf\.|arith\.|func\.|return|module|\})")


@dataclass
class Op:
    """One operation.

    Args:
        operands, kinds: names and types, for each operand that has a type written.
        loose: names without a type of their own, all of them `index`.
        results, result_kinds: what it defines.
        regions: the operations inside.
        args: names and types that a region defines.
    """

    name: str
    text: str
    operands: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    result_kinds: list[str] = field(default_factory=list)
    outs: list[str] = field(default_factory=list)
    outs_kinds: list[str] = field(default_factory=list)
    inside: str = ""
    regions: list[list[Op]] = field(default_factory=list)
    args: list[tuple[str, str]] = field(default_factory=list)


def read(text: str) -> list[Op]:
    """The functions of a module."""
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if line and (_START.match(line) or not lines):
            lines.append(line)
        elif line:
            lines[-1] += " " + line
    assert lines[0] == "module {", lines[0]
    assert lines[-1] == "}", lines[-1]
    body, rest, _ = _region(lines[1:])
    assert not rest, rest
    return body


def _region(lines: list[str]) -> tuple[list[Op], list[str], bool]:
    """The operations up to the end of a region, the lines behind it, whether an else follows."""
    ops: list[Op] = []
    while lines:
        line, lines = lines[0], lines[1:]
        if line.startswith("^bb0("):
            ops.append(Op("^bb0", line, args=[tuple(part.split(" : ")) for part in
                                              split(line[5:-2])]))  # fmt: skip
            continue
        if line in ("}", "} else {", "} do {"):
            return ops, lines, line != "}"
        op = _op(line)
        more = line.endswith("{")
        while more:
            inner, lines, more = _region(lines)
            op.regions.append(inner)
        ops.append(op)
    raise AssertionError("a region is not closed")


def split(text: str) -> list[str]:
    """Parts between commas that stand outside of brackets."""
    parts, depth, last = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "<([{") - (char in ">)]}" and text[i - 1 : i + 1] != "->")
        if char == "," and depth == 0:
            parts.append(text[last:i].strip())
            last = i + 1
    return [*parts, text[last:].strip()] if text.strip() else []


def _op(line: str) -> Op:
    made = re.match(r"(%[\w, %]+) = (.*)", line)
    results, rest = (split(made[1]), made[2]) if made else ([], line)
    name = re.match(r"[\w.]+", rest)
    assert name, line
    op = Op(name[0], line, results=results)
    reader = _READERS.get(name[0])
    if reader is None:
        reader = _arith if name[0].startswith("arith.") else _instruction
    reader(op, rest[name.end() :].strip())
    return op


def _match(pattern: str, text: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    assert found, f"{text!r} is not of the form {pattern}"
    return found


def _func(op: Op, rest: str) -> None:
    found = _match(r"@(\w+)\((.*)\) \{", rest)
    op.args = [tuple(part.split(": ")) for part in split(found[2])]


def _alloc(op: Op, rest: str) -> None:
    found = _match(r"(?:valid_row = (%\w+) valid_col = (%\w+) )?: (.*)", rest)
    op.loose = [name for name in found.groups()[:2] if name]
    op.result_kinds = [found[3]]
    dynamic = "v_row=?" in found[3], "v_col=?" in found[3]
    assert dynamic[0] == dynamic[1], f"one valid extent is static: {found[3]}"
    assert bool(op.loose) == dynamic[0], found[0]


def _view(op: Op, rest: str) -> None:
    found = _match(
        r"(%\w+), shape = \[(.*)\], strides = \[(.*)\] "
        r"\{layout = #pto\.layout<(nd|dn|nz)>\} : (.*)",
        rest,
    )
    op.operands, op.loose, op.inside = [found[1]], [*split(found[2]), *split(found[3])], found[4]
    op.result_kinds = [found[5]]
    rank = found[5].count("x")
    assert len(split(found[2])) == len(split(found[3])) == rank, rest
    assert found[4] != "nz" or rank == 5, rest


def _partition(op: Op, rest: str) -> None:
    found = _match(r"(%\w+), offsets = \[(.*)\], sizes = \[(.*)\] : (\S+) -> (\S+)", rest)
    op.operands, op.kinds, op.result_kinds = [found[1]], [found[4]], [found[5]]
    op.loose = [*split(found[2]), *split(found[3])]
    rank = found[4].count("?x")
    assert len(split(found[2])) == len(split(found[3])) == rank == len(extents(found[5])), rest


def _reshape(op: Op, rest: str) -> None:
    found = _match(r"(%\w+) : (.*) -> (.*)", rest)
    op.operands, op.kinds, op.result_kinds = [found[1]], [found[2]], [found[3]]
    before, after = tile(found[2]), tile(found[3])
    assert before["loc"] == after["loc"], rest
    assert before["dtype"] == after["dtype"], rest
    assert before["rows"] * before["cols"] == after["rows"] * after["cols"], rest


def _subview(op: Op, rest: str) -> None:
    found = _match(
        r"(%\w+)\[(%\w+), (%\w+)\] sizes \[(\d+), (\d+)\] valid \[(%\w+), (%\w+)\] : (.*) -> (.*)",
        rest,
    )
    op.operands, op.kinds, op.result_kinds = [found[1]], [found[8]], [found[9]]
    op.loose = [found[i] for i in (2, 3, 6, 7)]
    before, after = tile(found[8]), tile(found[9])
    assert (after["rows"], after["cols"]) == (int(found[4]), int(found[5])), rest
    assert (before["loc"], before["dtype"]) == (after["loc"], after["dtype"]), rest
    assert after["rows"] <= before["rows"], rest
    assert after["cols"] <= before["cols"], rest


def _getval(op: Op, rest: str) -> None:
    found = _match(r"ins\((%\w+), (%\w+) : (.*), index\) outs : (\w+)", rest)
    op.operands, op.kinds = [found[1], found[2]], [found[3], "index"]
    op.result_kinds = [found[4]]


def _load_scalar(op: Op, rest: str) -> None:
    found = _match(r"(%\w+)\[(%\w+)\] : (\S+) -> (\S+)", rest)
    op.operands, op.kinds, op.loose = [found[1]], [found[3]], [found[2]]
    op.result_kinds = [found[4]]


def _store_scalar(op: Op, rest: str) -> None:
    found = _match(r"(%\w+), (%\w+)\[(%\w+)\] : (\S+), (\S+)", rest)
    op.operands, op.kinds, op.loose = [found[1], found[2]], [found[5], found[4]], [found[3]]


def _block(op: Op, rest: str) -> None:
    assert not rest, rest
    op.result_kinds = ["i64"]


def _instruction(op: Op, rest: str) -> None:
    found = _match(
        r"ins\((%\w+(?:, %\w+)*)( \{[^}]*\})? : (.*?)\) outs\((%\w+) : ([^)]*)\)( \{.*\})?", rest
    )
    op.operands, op.kinds = split(found[1]), split(found[3])
    op.outs, op.outs_kinds, op.inside = [found[4]], [found[5]], found[2] or ""
    assert not op.results, "an instruction has no result"
    assert len(op.operands) == len(op.kinds), rest


def _constant(op: Op, rest: str) -> None:
    found = _match(r"(\S+) : (\w+)", rest)
    op.inside, op.result_kinds = found[1], [found[2]]
    real = re.fullmatch(r"-?\d+\.\d+(e[+-]?\d+)?|0x[0-9A-F]+", found[1])
    assert bool(real) == (found[2] in ("f16", "bf16", "f32")), rest


def _arith(op: Op, rest: str) -> None:
    if op.name == "arith.constant":
        _constant(op, rest)
        return
    cast = re.fullmatch(r"(%\w+) : (\w+) to (\w+)", rest)
    if cast:
        op.operands, op.kinds, op.result_kinds = [cast[1]], [cast[2]], [cast[3]]
        assert cast[2] != cast[3], rest
        return
    found = _match(r"(?:(\w+), )?(%\w+)(?:, (%\w+))? : (\w+)", rest)
    op.operands = [name for name in (found[2], found[3]) if name]
    op.kinds = [found[4]] * len(op.operands)
    op.inside = found[1] or ""
    op.result_kinds = ["i1" if op.name.startswith("arith.cmp") else found[4]]
    real = found[4] in ("f16", "bf16", "f32")
    assert real == (op.name[-1] == "f" and op.name not in ("arith.shrui",)), op.text


def _for(op: Op, rest: str) -> None:
    found = _match(
        r"(%\w+) = (%\w+) to (%\w+) step (%\w+)(?: iter_args\((.*)\) -> \((.*)\))? \{", rest
    )
    op.loose, op.args = [found[2], found[3], found[4]], [(found[1], "index")]
    if found[5]:
        pairs = [part.split(" = ") for part in split(found[5])]
        op.result_kinds = split(found[6])
        op.operands, op.kinds = [init for _, init in pairs], op.result_kinds
        op.args += [(arg, kind) for (arg, _), kind in zip(pairs, op.result_kinds, strict=True)]


def _if(op: Op, rest: str) -> None:
    found = _match(r"(%\w+)(?: -> \((.*)\))? \{", rest)
    op.operands, op.kinds = [found[1]], ["i1"]
    op.result_kinds = split(found[2] or "")


def _while(op: Op, rest: str) -> None:
    found = _match(r"(?:\((.*)\) )?: \((.*)\) -> \((.*)\) \{", rest)
    op.result_kinds = split(found[3])
    assert split(found[2]) == op.result_kinds, rest
    pairs = [part.split(" = ") for part in split(found[1] or "")]
    op.operands, op.kinds = [init for _, init in pairs], op.result_kinds
    op.args = [(arg, kind) for (arg, _), kind in zip(pairs, op.result_kinds, strict=True)]


def _condition(op: Op, rest: str) -> None:
    found = _match(r"\((%\w+)\)(?: (.*) : (.*))?", rest)
    op.operands = [found[1], *split(found[2] or "")]
    op.kinds = ["i1", *split(found[3] or "")]


def _yield(op: Op, rest: str) -> None:
    found = _match(r"(?:(.*) : (.*))?", rest)
    op.operands, op.kinds = split(found[1] or ""), split(found[2] or "")


def _return(op: Op, rest: str) -> None:
    assert not rest, rest


_READERS = {
    "func.func": _func,
    "pto.alloc_tile": _alloc,
    "pto.make_tensor_view": _view,
    "pto.partition_view": _partition,
    "pto.treshape": _reshape,
    "pto.subview": _subview,
    "pto.tgetval": _getval,
    "pto.load_scalar": _load_scalar,
    "pto.store_scalar": _store_scalar,
    "pto.get_block_idx": _block,
    "pto.get_block_num": _block,
    "pto.get_subblock_idx": _block,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.condition": _condition,
    "scf.yield": _yield,
    "return": _return,
}


def extents(kind: str) -> list[str]:
    """The extents in the type of a view or partition."""
    found = re.search(r"<((?:[\d?]+x)*)", kind)
    assert found, kind
    return found[1].rstrip("x").split("x") if found[1] else []


def tile(kind: str) -> dict[str, int | str | None]:
    """The fields of a tile's type; None for an extent of the run time."""
    found = _match(r"!pto\.tile_buf<(.*)>", kind)
    pairs = dict(part.split("=") for part in split(found[1]))
    numbers = ("rows", "cols", "v_row", "v_col", "fractal", "pad", "compact")
    return {
        key: (None if value == "?" else int(value)) if key in numbers else value
        for key, value in pairs.items()
    }


# --- the rules -----------------------------------------------------------------------------------


def check(text: str) -> list[Op]:
    """The functions of a module that keeps the rules: names are defined once, before and around
    their uses, in the type they are used in; regions end as their operation says."""
    functions = read(text)
    assert functions
    for function in functions:
        assert function.name == "func.func", function.text
        assert function.regions[0][-1].name == "return", function.text
        _scope(function, {}, set())
    return functions


def _scope(op: Op, outer: dict[str, str], taken: set[str]) -> None:
    for number, region in enumerate(op.regions):
        head = dict(op.args)
        if op.name == "scf.while" and number:
            head = dict(region[0].args) if region and region[0].name == "^bb0" else {}
            assert list(head.values()) == op.result_kinds, op.text
        visible = {**outer, **head}
        assert not taken & set(head), op.text
        taken |= set(head)
        for inner in region:
            if inner.name == "^bb0":
                continue
            _uses(inner, visible)
            _scope(inner, visible, taken)
            assert len(inner.results) == len(inner.result_kinds), inner.text
            for name, kind in zip(inner.results, inner.result_kinds, strict=True):
                assert name not in taken, f"{name} is defined twice: {inner.text}"
                taken.add(name)
                visible[name] = kind
            ends = ("scf.yield", "scf.condition", "return")
            assert inner.name not in ends or inner is region[-1], inner.text
        _ends(op, number, region)


def _uses(op: Op, visible: dict[str, str]) -> None:
    pairs = [
        *zip(op.operands, op.kinds, strict=False),
        *zip(op.outs, op.outs_kinds, strict=True),
        *((name, "index") for name in op.loose),
    ]
    for name, kind in pairs:
        assert name in visible, f"{name} is not defined where it is used: {op.text}"
        assert visible[name] == kind, f"{name} is {visible[name]}, not {kind}: {op.text}"
    assert all(name in visible for name in op.operands), op.text
    if op.name in _SHAPES:
        _SHAPES[op.name](op)


def _ends(op: Op, number: int, region: list[Op]) -> None:
    last = region[-1] if region else None
    if op.name == "scf.while" and number == 0:
        assert last is not None, op.text
        assert last.name == "scf.condition", op.text
        assert last.kinds == ["i1", *op.result_kinds], op.text
    elif op.name == "scf.while" or (op.name in ("scf.for", "scf.if") and op.result_kinds):
        assert last is not None, op.text
        assert last.name == "scf.yield", op.text
        assert last.kinds == op.result_kinds, op.text
    else:
        assert last is None or last.name != "scf.yield", op.text
    if op.name == "scf.if" and op.result_kinds:
        assert len(op.regions) == 2, op.text


def _check_product(op: Op) -> None:
    spaces = [tile(kind)["loc"] for kind in op.kinds]
    out = tile(op.outs_kinds[0])
    want = ["left", "right", "bias"][: len(spaces)]
    if op.name == "pto.tmatmul.acc":
        want = ["acc", "left", "right"]
        assert op.operands[0] == op.outs[0], op.text
    assert spaces == want, op.text
    assert out["loc"] == "acc", op.text
    left, right = (tile(op.kinds[want.index(side)]) for side in ("left", "right"))
    assert (left["rows"], left["cols"], right["cols"]) == (out["rows"], right["rows"], out["cols"])


def _check_load(op: Op) -> None:
    sizes, moved = extents(op.kinds[0]), tile(op.outs_kinds[0])
    valid = (moved["v_row"], moved["v_col"])
    if "?" not in sizes and None not in valid:
        assert prod(map(int, sizes)) == prod(valid), op.text


def _check_move(op: Op) -> None:
    before, after = tile(op.kinds[0]), tile(op.outs_kinds[0])
    assert op.operands[0] != op.outs[0], op.text
    assert (before["v_row"], before["v_col"]) == (after["v_row"], after["v_col"]), op.text


_SHAPES = {
    "pto.tmatmul": _check_product,
    "pto.tmatmul.acc": _check_product,
    "pto.tmatmul.bias": _check_product,
    "pto.tload": _check_load,
    "pto.tmov": _check_move,
}
