"""Statements of a function body: assignments, yields, returns, evaluations.

Reading a block gives its statements and, if it ends in a yield, the names that the yield defines
for the loop or branch around it.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, TupleItem, Var, as_expr
from pypto_egg.ir.stmt import Assign, Break, Continue, Eval, Return, Stmt, Yield
from pypto_egg.ir.types import TileType, TupleType, Type
from pypto_egg.text import (
    annotate,
    operands,
    read_call,
    read_control,
    read_expr,
    read_region,
    read_subscript,
)
from pypto_egg.text.blocks import BlockText, YieldTarget
from pypto_egg.text.reader import Reader, construct_name, language_path
from pypto_egg.text.write_type import print_type


def read_block(reader: Reader, body: list[ast.stmt]) -> BlockText:
    """The statements of a block, in order."""
    reader.deeper(body[0])
    stmts: list[Stmt] = []
    end = BlockText(())
    for index, node in enumerate(body):
        last = index == len(body) - 1
        end = _read_stmt(reader, node, stmts, last)
    reader.shallower()
    return BlockText(tuple(stmts), end.targets, end.yields, reader.span(body[-1]))


_NOTHING = BlockText(())


def _read_stmt(reader: Reader, node: ast.stmt, out: list[Stmt], last: bool) -> BlockText:
    """Append what `node` means to `out`; a final yield is described by the result."""
    if is_vacuous(reader, node):
        return _NOTHING
    header_line = _header_line(node)
    found = reader.program.positions.take_comments(header_line, node.col_offset)
    comments, reader.comments = (*reader.comments, *found), ()
    start = len(out)
    end = _read_kind(reader, node, out, last)
    if len(out) == start:
        reader.comments = comments
    elif comments:
        out[start] = with_comments(out[start], comments)
    return end


def _header_line(node: ast.stmt) -> int:
    """The last line of a statement, without the block that it opens."""
    match node:
        case ast.For():
            header: ast.AST = node.iter
        case ast.While() | ast.If():
            header = node.test
        case ast.With():
            header = node.items[-1].optional_vars or node.items[-1].context_expr
        case _:
            header = node
    return getattr(header, "end_lineno", None) or node.lineno


def with_comments(stmt: Stmt, comments: tuple[str, ...]) -> Stmt:
    """The statement with further comments above its own."""
    return replace(stmt, comments=(*comments, *stmt.comments))


def _read_kind(reader: Reader, node: ast.stmt, out: list[Stmt], last: bool) -> BlockText:
    match node:
        case ast.AnnAssign() | ast.Assign():
            return _assignment(reader, node, out, last)
        case ast.Expr():
            return _evaluation(reader, node, out, last)
        case ast.Return():
            out.append(_return(reader, node))
        case ast.For():
            out.append(read_control.read_for(reader, node))
        case ast.While():
            out.append(read_control.read_while(reader, node))
        case ast.If():
            out.append(read_control.read_if(reader, node))
        case ast.With():
            return read_region.read_with(reader, node, out, last)
        case ast.Break() | ast.Continue():
            out.append(_jump(reader, node))
        case _:
            raise reader.fault(node, f"{construct_name(node)} is not part of the language")
    return _NOTHING


def is_vacuous(reader: Reader, node: ast.stmt) -> bool:
    """Whether a statement leaves nothing behind; static asserts are checked here."""
    if isinstance(node, ast.Pass):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    path = language_path(reader, node.value.func)
    if path == ("static_print",):
        return True
    if path != ("static_assert",):
        return False
    _static_assert(reader, node.value)
    return True


def _static_assert(reader: Reader, call: ast.Call) -> None:
    if not call.args:
        raise reader.fault(call, "pl.static_assert needs a condition")
    condition = read_expr.read_value(reader, call.args[0])
    if isinstance(condition, Expr):
        raise reader.fault(
            call.args[0], "the condition of pl.static_assert is not known while reading"
        )
    if not condition:
        text = ast.unparse(call.args[1]) if len(call.args) > 1 else ast.unparse(call.args[0])
        raise reader.fault(call, f"static assertion failed: {text}")


def _jump(reader: Reader, node: ast.Break | ast.Continue) -> Stmt:
    word = "break" if isinstance(node, ast.Break) else "continue"
    kind = reader.loops[-1] if reader.loops else None
    if kind not in ("range", "while"):
        where = f"inside of a pl.{kind} loop" if kind else "outside of a loop"
        raise reader.fault(node, f"{word} {where}", "it may stand in pl.range and while loops only")
    return (Break if word == "break" else Continue)(span=reader.span(node))


def _return(reader: Reader, node: ast.Return) -> Return:
    values: tuple[Expr, ...] = ()
    if isinstance(node.value, ast.Tuple):
        values = tuple(read_expr.read_expr(reader, item) for item in node.value.elts)
    elif node.value is not None:
        values = (read_expr.read_expr(reader, node.value),)
    return Return(values, span=reader.span(node))


def _evaluation(reader: Reader, node: ast.Expr, out: list[Stmt], last: bool) -> BlockText:
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        raise reader.fault(node, "a docstring must be the first statement of the function")
    if _yielded(reader, value) is not None:
        return _yield(reader, node, [], value, None, out, last)
    expr = read_expr.read_expr(reader, value)
    if not isinstance(expr, Call | FunctionCall | Submit):
        raise reader.fault(node, f"'{ast.unparse(value)}' does nothing; only calls stand alone")
    out.append(Eval(expr, span=reader.span(node)))
    return _NOTHING


def _yielded(reader: Reader, node: ast.expr | None) -> ast.Call | None:
    """The call, if the node is `pl.yield_(...)`."""
    if not isinstance(node, ast.Call) or language_path(reader, node.func) != ("yield_",):
        return None
    return node


def _yield(
    reader: Reader,
    node: ast.stmt,
    names: list[ast.expr],
    value: ast.expr | None,
    annotation: ast.expr | None,
    out: list[Stmt],
    last: bool,
) -> BlockText:
    call = _yielded(reader, value)
    assert call is not None
    read_call.refuse_stars(reader, call)
    if call.keywords:
        raise reader.fault(call, "pl.yield_ takes no keyword arguments")
    if not last:
        raise reader.fault(node, "pl.yield_ must be the last statement of its block")
    values = tuple(read_expr.read_expr(reader, arg) for arg in call.args)
    if names and len(names) != len(values):
        raise reader.fault(node, f"{len(names)} names for {len(values)} yielded values")
    targets = tuple(
        YieldTarget(_target_name(reader, name), annotation, item, reader.span(name))
        for name, item in zip(names, values, strict=False)
    )
    out.append(Yield(values, span=reader.span(node)))
    return BlockText((), targets, True)


def _target_name(reader: Reader, node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise reader.fault(node, f"'{ast.unparse(node)}' cannot be assigned to; use a plain name")
    return reader.new_name(node, node.id)


def _assignment(
    reader: Reader, node: ast.Assign | ast.AnnAssign, out: list[Stmt], last: bool
) -> BlockText:
    annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
    if isinstance(node, ast.Assign) and len(node.targets) != 1:
        raise reader.fault(node, "a chained assignment is not part of the language")
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if node.value is None:
        raise reader.fault(node, f"'{ast.unparse(target)}' is declared without a value")
    names = list(target.elts) if isinstance(target, ast.Tuple) else [target]
    if _yielded(reader, node.value) is not None:
        return _yield(reader, node, names, node.value, annotation, out, last)
    if isinstance(target, ast.Subscript):
        _assign_window(reader, node, target, node.value, out)
    elif isinstance(target, ast.Tuple):
        _unpack(reader, node, target, node.value, out)
    else:
        _assign_name(reader, node, target, node.value, annotation, out)
    return _NOTHING


def _assign_name(
    reader: Reader,
    node: ast.stmt,
    target: ast.expr,
    value_node: ast.expr,
    annotation: ast.expr | None,
    out: list[Stmt],
) -> None:
    name = _target_name(reader, target)
    literal = read_expr.read_value(reader, value_node)
    if _is_dim_alias(reader, value_node, literal):
        assert isinstance(literal, Var)
        reader.scope.define(name, literal)
        return
    value, kind = annotate.annotated(reader, annotation, value_node, literal, name)
    var = bind(reader, target, name, kind)
    out.append(Assign(var, value, span=reader.span(node)))


def _is_dim_alias(reader: Reader, node: ast.expr, value: object) -> bool:
    """Whether the value is a dimension read that became the dynamic symbol itself."""
    return isinstance(node, ast.Call) and isinstance(value, Var)


def bind(reader: Reader, node: ast.AST, name: str, kind: Type) -> Var:
    """The variable that an assignment to `name` defines: the same one again if there is one.

    Raises:
        TypeCheckError: the name already stands for a value of another type.
    """
    scope = reader.scope
    existing = scope.lookup(name)
    if existing is None or existing in scope.iter_args or _is_symbol(reader, existing):
        var = Var(name, kind, reader.span(node))
        scope.define(name, var)
        return var
    if reader.strict_ssa:
        where = f" (first on line {existing.span.line})" if existing.span else ""
        raise reader.fault(node, f"'{name}' is assigned twice under strict_ssa=True{where}")
    if existing.type != kind and not _only_space_unset(existing.type, kind):
        raise reader.mismatch(
            node,
            f"cannot reassign '{name}' with a different type: it was "
            f"{print_type(existing.type)}, now {print_type(kind)}",
            "use another name for a value of another type",
        )
    scope.define(name, existing)
    return existing


def _is_symbol(reader: Reader, var: Var) -> bool:
    return reader.program.symbols.get(var.name) is var


def _only_space_unset(first: Type, second: Type) -> bool:
    """Whether two tile types differ only in that one of them has no memory space yet."""
    if not isinstance(first, TileType) or not isinstance(second, TileType):
        return False
    if first.space is not None and second.space is not None:
        return False
    return (first.shape, first.dtype) == (second.shape, second.dtype)


def _assign_window(
    reader: Reader,
    node: ast.stmt,
    target: ast.Subscript,
    value_node: ast.expr,
    out: list[Stmt],
) -> None:
    if reader.strict_ssa:
        raise reader.fault(target, "assignment to a window is not possible under strict_ssa=True")
    name = _target_name(reader, target.value)
    owner = read_expr.read_expr(reader, target.value)
    source = read_expr.read_value(reader, value_node)
    if not isinstance(source, Expr):
        source = operands.element_literal(reader, value_node, source, owner.type)
    value = read_subscript.assign_window(reader, target, source)
    var = bind(reader, target, name, value.type)
    out.append(Assign(var, value, span=reader.span(node)))


def _unpack(
    reader: Reader, node: ast.stmt, target: ast.Tuple, value_node: ast.expr, out: list[Stmt]
) -> None:
    """`a, b = f(...)`: one assignment of the tuple, then one for each element."""
    value = as_expr(read_expr.read_value(reader, value_node))
    kind = value.type
    span = reader.span(node)
    if not isinstance(kind, TupleType):
        shown = print_type(kind)
        raise reader.mismatch(node, f"{len(target.elts)} names for one value of type {shown}")
    names = list(target.elts)
    if isinstance(value, Submit) and len(names) == 2 and isinstance(names[0], ast.Tuple):
        names = [*names[0].elts, names[1]]
    if len(names) != len(kind.items):
        raise reader.mismatch(node, f"{len(names)} names for {len(kind.items)} values")
    hint = "_submit_tmp" if isinstance(value, Submit) else "_tuple_tmp"
    whole = Var(hint, kind, span)
    out.append(Assign(whole, value, span=span))
    for index, name_node in enumerate(names):
        name = _target_name(reader, name_node)
        var = bind(reader, name_node, name, kind.items[index])
        out.append(Assign(var, TupleItem(whole, index), span=span))
