"""Regions: `with pl.at(...)` and its like, SPMD loops, vector-lane splits.

PyPTO language reference, 10.
"""

from __future__ import annotations

import ast

from pypto_egg.ir.dtype import TASK_ID
from pypto_egg.ir.enums import Level, LoopKind, Role, ScopeMode, SplitMode
from pypto_egg.ir.expr import ConstInt, Var
from pypto_egg.ir.stmt import For, Scope, Stmt
from pypto_egg.ir.types import ScalarType
from pypto_egg.text import read_call, read_control, read_expr, read_stmt, read_type, values
from pypto_egg.text.blocks import BlockText
from pypto_egg.text.reader import Reader, language_path

# Keywords of each region in the order in which PyPTO prints them.
KEYWORDS = {
    "at": (
        "level", "role", "optimizations", "name_hint", "deps", "no_dep_args", "dumps",
        "allow_early_resolve", "windowize",
    ),
    "cluster": ("name_hint",),
    "spmd": ("sync_start", "name_hint", "optimizations", "deps", "allow_early_resolve"),
    "scope": ("mode",),
}  # fmt: skip
_KINDS = {
    "level": Level,
    "role": Role,
    "mode": ScopeMode,
    "name_hint": str,
    "sync_start": bool,
    "allow_early_resolve": bool,
    "windowize": bool,
    "optimizations": tuple,
    "deps": tuple,
    "no_dep_args": tuple,
    "dumps": tuple,
}
_DEFAULTS: dict[str, object] = {
    "name_hint": "",
    "sync_start": False,
    "allow_early_resolve": False,
    "windowize": False,
    "optimizations": (),
    "deps": (),
    "no_dep_args": (),
    "dumps": (),
    "mode": ScopeMode.AUTO,
}


def read_with(reader: Reader, node: ast.With, out: list[Stmt], last: bool) -> BlockText:
    """Append a region; a final yield inside of the last region of a block is the block's."""
    if len(node.items) != 1:
        raise reader.fault(node, "a with block opens one region")
    item = node.items[0]
    kind, call = _region(reader, item.context_expr)
    region_kind = {"manual_scope": "scope", "auto_scope": "scope"}.get(kind, kind)
    args = _region_args(reader, region_kind, call)
    kwargs = _region_kwargs(reader, region_kind, call)
    if kind == "manual_scope":
        kwargs = (("mode", ScopeMode.MANUAL),)
    if region_kind == "scope" and not kwargs and reader.auto_scope:
        raise reader.fault(
            call,
            "an AUTO pl.scope() in a function whose scopes PyPTO places itself",
            "set auto_scope=False on the function, or use pl.scope(mode=pl.ScopeMode.MANUAL)",
        )
    task = _task(reader, region_kind, item.optional_vars)
    body = _region_body(reader, node.body)
    if body.yields and not last:
        raise reader.fault(body.end or reader.span(node), "pl.yield_ must end the enclosing block")
    if task is not None:
        reader.scope.define(task.name, task)
    out.append(Scope(region_kind, body.stmts, args, kwargs, task, span=reader.span(node)))
    return BlockText((), body.targets, body.yields)


def _region_body(reader: Reader, body: list[ast.stmt]) -> BlockText:
    reader.scope.enter()
    text = read_stmt.read_block(reader, body)
    reader.scope.leave(leak=True)
    return text


def _region(reader: Reader, node: ast.expr) -> tuple[str, ast.Call]:
    if isinstance(node, ast.Call):
        path = language_path(reader, node.func)
        known = (*KEYWORDS, "manual_scope", "auto_scope")
        if path is not None and len(path) == 1 and path[0] in known:
            read_call.refuse_stars(reader, node)
            return path[0], node
    shown = ast.unparse(node)
    raise reader.fault(
        node, f"'{shown}' opens no region", f"regions are pl.{', pl.'.join(KEYWORDS)}"
    )


def _region_args(reader: Reader, kind: str, call: ast.Call) -> tuple[object, ...]:
    wanted = 1 if kind == "spmd" else 0
    if kind == "at" and len(call.args) == 1:
        return ()
    if len(call.args) != wanted:
        raise reader.fault(
            call, f"pl.{kind} takes {wanted} positional arguments, got {len(call.args)}"
        )
    return tuple(read_expr.read_index(reader, arg) for arg in call.args)


def _region_kwargs(reader: Reader, kind: str, call: ast.Call) -> tuple[tuple[str, object], ...]:
    """The keywords of a region in printed order, without those that state a default."""
    known = KEYWORDS[kind]
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    if kind == "at" and call.args:
        given.setdefault("level", call.args[0])
    for name, node in given.items():
        if name not in known:
            raise reader.fault(
                node, f"pl.{kind} has no keyword '{name}' (it has: {', '.join(known)})"
            )
    if kind == "at" and "level" not in given:
        raise reader.fault(call, "pl.at needs level=pl.Level.X")
    found: list[tuple[str, object]] = []
    for name in known:
        if name not in given:
            continue
        value = values.read_attribute(reader, given[name])
        if not isinstance(value, _KINDS[name]):
            shown = ast.unparse(given[name])
            raise reader.fault(given[name], f"{name}= cannot be '{shown}'")
        if name not in _DEFAULTS or value != _DEFAULTS[name]:
            found.append((name, value))
    return tuple(found)


def _task(reader: Reader, kind: str, node: ast.expr | None) -> Var | None:
    if node is None:
        return None
    if kind not in ("at", "spmd"):
        raise reader.fault(node, f"pl.{kind} gives no task id")
    if not isinstance(node, ast.Name):
        raise reader.fault(node, "the task id of a region is bound to a plain name")
    return Var(reader.new_name(node, node.id), ScalarType(TASK_ID), reader.span(node))


def read_spmd_loop(reader: Reader, node: ast.For, call: ast.Call) -> For:
    """`for i in pl.spmd(N):`: N identical blocks, `i` is the block's index."""
    if len(call.args) != 1:
        raise reader.fault(call, "pl.spmd takes the number of blocks")
    count = read_expr.read_index(reader, call.args[0])
    attrs = _region_kwargs(reader, "spmd", call)
    index = read_control.loop_variable(reader, node.target)
    reader.loops.append("spmd")
    body = _indexed_body(reader, node, index)
    reader.loops.pop()
    return For(
        LoopKind.spmd,
        index,
        ConstInt(0),
        count,
        ConstInt(1),
        body.stmts,
        attrs=attrs,
        span=reader.span(node),
    )


def _indexed_body(reader: Reader, node: ast.For, index: Var) -> BlockText:
    reader.scope.enter()
    reader.scope.define(index.name, index)
    body = read_stmt.read_block(reader, node.body)
    reader.scope.leave(leak=True)
    if body.yields:
        raise reader.fault(
            body.end or reader.span(node), "pl.yield_ in a region without carried values"
        )
    return body


def read_split_aiv(reader: Reader, node: ast.For, call: ast.Call) -> Scope:
    """`for lane in pl.split_aiv(2, mode=pl.SplitMode.X):`: the work of two vector lanes."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if len(call.args) != 1 or set(keywords) != {"mode"}:
        raise reader.fault(call, "a lane split is spelled pl.split_aiv(2, mode=pl.SplitMode.X)")
    count = read_type.read_int(reader, call.args[0], "the number of lanes")
    mode = read_type.read_enum(reader, keywords["mode"], SplitMode, ("SplitMode",))
    lane = read_control.loop_variable(reader, node.target)
    reader.splits.append(mode)
    reader.loops.append("split_aiv")
    body = _indexed_body(reader, node, lane)
    reader.loops.pop()
    reader.splits.pop()
    return Scope("split_aiv", body.stmts, (count,), (("mode", mode),), lane, span=reader.span(node))
