"""Loops and branches with their carries and results (PyPTO language reference, 9)."""

from __future__ import annotations

import ast

from pypto_egg.ir.dtype import BOOL, INDEX
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import ConstInt, Expr, Var
from pypto_egg.ir.stmt import For, If, Stmt, While
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import yields_of
from pypto_egg.text import annotate, read_call, read_expr, read_region, read_stmt, read_type, values
from pypto_egg.text.blocks import BlockText, YieldTarget
from pypto_egg.text.reader import Reader, language_path
from pypto_egg.text.write_type import print_type

_HEADER = "a for loop runs over pl.range, parallel, unroll, pipeline, while_, spmd or split_aiv"


def read_for(reader: Reader, node: ast.For) -> Stmt:
    """Any loop or region that is written with `for`."""
    if node.orelse:
        raise reader.fault(node.orelse[0], "for ... else is not part of the language")
    path = language_path(reader, node.iter.func) if isinstance(node.iter, ast.Call) else None
    if path is None or not isinstance(node.iter, ast.Call) or len(path) != 1:
        raise reader.fault(node.iter, f"'{ast.unparse(node.iter)}' cannot be looped over", _HEADER)
    read_call.refuse_stars(reader, node.iter)
    match path[0]:
        case "range" | "parallel" | "unroll" | "pipeline":
            return _counted(reader, node, node.iter, LoopKind(path[0]))
        case "while_":
            return _carried_while(reader, node, node.iter)
        case "spmd":
            return read_region.read_spmd_loop(reader, node, node.iter)
        case "split_aiv":
            return read_region.read_split_aiv(reader, node, node.iter)
    raise reader.fault(node.iter, f"'{ast.unparse(node.iter)}' cannot be looped over", _HEADER)


def _counted(reader: Reader, node: ast.For, call: ast.Call, kind: LoopKind) -> For:
    name_node, carry_nodes = _loop_target(reader, node)
    start, stop, step = _bounds(reader, call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    inits = _inits(reader, keywords.pop("init_values", None), carry_nodes, node)
    attrs = _loop_attrs(reader, call, kind, keywords)
    if kind is LoopKind.unroll:
        _check_unroll(reader, call, (start, stop, step), inits)
    index = loop_variable(reader, name_node)
    carries = _carries(reader, carry_nodes, inits)
    body = _loop_body(reader, kind.value, node.body, (index, *carries), leak=not carries)
    results = _loop_results(reader, node, carries, inits, body)
    return For(
        kind,
        index,
        start,
        stop,
        step,
        body.stmts,
        carries,
        inits,
        results,
        attrs,
        span=reader.span(node),
    )


def loop_variable(reader: Reader, node: ast.expr) -> Var:
    """A new loop variable; it is INDEX and never the variable of another loop."""
    if not isinstance(node, ast.Name):
        raise reader.fault(
            node, f"'{ast.unparse(node)}' cannot be a loop variable; use a plain name"
        )
    return Var(reader.new_name(node, node.id), ScalarType(INDEX), reader.span(node))


def _loop_target(reader: Reader, node: ast.For) -> tuple[ast.expr, list[ast.expr]]:
    target = node.target
    if isinstance(target, ast.Name):
        return target, []
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        carries = target.elts[1]
        if isinstance(carries, ast.Tuple):
            return target.elts[0], list(carries.elts)
    raise reader.fault(
        target, "the target of a loop is `i`, or `i, (x, y)` with init_values=(a, b)"
    )


def _bounds(reader: Reader, call: ast.Call) -> tuple[Expr, Expr, Expr]:
    if not 1 <= len(call.args) <= 3:
        raise reader.fault(
            call, f"a loop takes stop, start and stop, or also a step; got {len(call.args)}"
        )
    bounds = [read_expr.read_index(reader, arg) for arg in call.args]
    zero, one = ConstInt(0), ConstInt(1)
    if len(bounds) == 1:
        return zero, bounds[0], one
    step = bounds[2] if len(bounds) == 3 else one
    if isinstance(step, ConstInt) and step.value == 0:
        raise reader.fault(call.args[2], "the step of a loop must not be 0")
    return bounds[0], bounds[1], step


def _inits(
    reader: Reader, value: ast.expr | None, carries: list[ast.expr], node: ast.For
) -> tuple[Expr, ...]:
    if value is None:
        if carries:
            raise reader.fault(node.target, "a loop with carries needs init_values=(...)")
        return ()
    if not isinstance(value, ast.Tuple | ast.List):
        raise reader.fault(value, "init_values= takes a tuple: init_values=(x,)")
    if len(value.elts) != len(carries):
        raise reader.fault(
            node.target, f"{len(carries)} iteration arguments for {len(value.elts)} init_values"
        )
    return tuple(read_expr.read_expr(reader, item) for item in value.elts)


def _loop_attrs(
    reader: Reader, call: ast.Call, kind: LoopKind, keywords: dict[str | None, ast.expr]
) -> tuple[tuple[str, object], ...]:
    attrs: list[tuple[str, object]] = []
    stage = keywords.pop("stage", None)
    if kind is LoopKind.pipeline:
        if stage is None:
            raise reader.fault(call, "pl.pipeline needs stage=N")
        count = read_type.read_int(reader, stage, "stage")
        if count < 1:
            raise reader.fault(stage, f"stage must be at least 1, got {count}")
        attrs.append(("stage", count))
    elif stage is not None:
        raise reader.fault(stage, f"pl.{kind.value} has no stage; pl.pipeline has")
    extra = keywords.pop("attrs", None)
    if extra is not None:
        attrs.append(("attrs", values.read_attributes(reader, extra)))
    for name, value in keywords.items():
        raise reader.fault(value, f"pl.{kind.value} has no keyword '{name}'")
    return tuple(attrs)


def _check_unroll(
    reader: Reader, call: ast.Call, bounds: tuple[Expr, ...], inits: tuple[Expr, ...]
) -> None:
    if inits:
        raise reader.fault(call, "pl.unroll cannot carry values", "use pl.range")
    if not all(isinstance(bound, ConstInt) for bound in bounds):
        raise reader.fault(call, "the bounds of pl.unroll must be constants", "use pl.range")


def _carries(reader: Reader, nodes: list[ast.expr], inits: tuple[Expr, ...]) -> tuple[Var, ...]:
    carries = []
    for node, init in zip(nodes, inits, strict=True):
        if not isinstance(node, ast.Name):
            raise reader.fault(node, f"'{ast.unparse(node)}' cannot be an iteration argument")
        name = reader.new_name(node, node.id)
        carries.append(Var(name, init.type, reader.span(node)))
    return tuple(carries)


def _loop_body(
    reader: Reader, kind: str, body: list[ast.stmt], defined: tuple[Var, ...], *, leak: bool
) -> BlockText:
    reader.scope.enter()
    for var in defined:
        reader.scope.define(var.name, var)
    reader.scope.iter_args.update(defined[1:] if kind != "while" else defined)
    reader.loops.append(kind)
    text = read_stmt.read_block(reader, body) if body else BlockText(())
    reader.loops.pop()
    reader.scope.leave(leak=leak)
    return text


def _loop_results(
    reader: Reader,
    node: ast.For,
    carries: tuple[Var, ...],
    inits: tuple[Expr, ...],
    body: BlockText,
) -> tuple[Var, ...]:
    """The variables that hold the carried values after the loop."""
    where = body.end or reader.span(node)
    if not carries:
        if body.yields:
            raise reader.fault(where, "pl.yield_ in a loop without init_values")
        return ()
    if not body.yields:  # allowed before SSA: PyPTO names the results itself
        return tuple(Var(f"{var.name}_out", var.type, var.span) for var in carries)
    if not body.targets:
        raise reader.fault(
            where, "the last pl.yield_ of a loop must name the results: x = pl.yield_(v)"
        )
    if len(body.targets) != len(carries):
        raise reader.fault(
            where, f"{len(body.targets)} yielded values for {len(carries)} init_values"
        )
    results = tuple(result_variable(reader, target) for target in body.targets)
    for target, init in zip(body.targets, inits, strict=True):
        if not annotate.fits(init.type, target.value.type):
            raise reader.mismatch(
                target.span,
                f"'{target.name}' carries {print_type(init.type)} into the loop, but the loop "
                f"yields {print_type(target.value.type)}",
            )
    return results


def result_variable(reader: Reader, target: YieldTarget) -> Var:
    """A new variable for the result of a loop or branch, visible from now on."""
    var = Var(target.name, target.result_type(reader), target.span)
    reader.scope.define(target.name, var)
    return var


def _carried_while(reader: Reader, node: ast.For, call: ast.Call) -> While:
    """`for (x,) in pl.while_(init_values=(a,)):` with the condition on the first line."""
    if not isinstance(node.target, ast.Tuple):
        raise reader.fault(node.target, "the target of pl.while_ is a tuple of names: (x,)")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    nodes = list(node.target.elts)
    inits = _inits(reader, keywords.pop("init_values", None), nodes, node)
    if call.args or keywords or not inits:
        raise reader.fault(call, "pl.while_ takes init_values=(...) and nothing else")
    first = node.body[0]
    condition = _condition_call(reader, first)
    if condition is None:
        raise reader.fault(first, "the first line of a pl.while_ loop must be pl.cond(condition)")
    carries = _carries(reader, nodes, inits)
    reader.scope.enter()
    for var in carries:
        reader.scope.define(var.name, var)
    cond = read_condition(reader, condition)
    reader.scope.leave(leak=False)
    body = _loop_body(reader, "while", node.body[1:], carries, leak=False)
    results = _loop_results(reader, node, carries, inits, body)
    return While(cond, body.stmts, carries, inits, results, span=reader.span(node))


def _condition_call(reader: Reader, node: ast.stmt) -> ast.expr | None:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    if language_path(reader, call.func) != ("cond",) or len(call.args) != 1 or call.keywords:
        return None
    return call.args[0]


def read_condition(reader: Reader, node: ast.expr) -> Expr:
    """A condition, which must be a BOOL scalar."""
    cond = read_expr.read_expr(reader, node)
    if cond.type != ScalarType(BOOL):
        raise reader.mismatch(
            node,
            f"the condition is {print_type(cond.type)}; pl.Scalar[pl.BOOL] is needed",
            "compare it: n != 0",
        )
    return cond


def read_while(reader: Reader, node: ast.While) -> While:
    """A plain `while cond:`."""
    if node.orelse:
        raise reader.fault(node.orelse[0], "while ... else is not part of the language")
    cond = read_condition(reader, node.test)
    body = _loop_body(reader, "while", node.body, (), leak=True)
    if body.yields:
        raise reader.fault(
            body.end or reader.span(node), "pl.yield_ in a plain while loop", "use pl.while_"
        )
    return While(cond, body.stmts, span=reader.span(node))


def read_if(reader: Reader, node: ast.If) -> If:
    """An if; where both branches end in named yields, the names are its results."""
    cond = read_condition(reader, node.test)
    then = _branch(reader, node.body)
    orelse = _branch(reader, node.orelse) if node.orelse else BlockText(())
    results: tuple[Var, ...] = ()
    if then.yields or orelse.yields:
        results = _branch_results(reader, node, then, orelse)
    return If(cond, then.stmts, orelse.stmts, results, span=reader.span(node))


def _branch(reader: Reader, body: list[ast.stmt]) -> BlockText:
    reader.scope.enter()
    text = read_stmt.read_block(reader, body)
    reader.scope.leave(leak=not text.yields)
    return text


def _branch_results(
    reader: Reader, node: ast.If, then: BlockText, orelse: BlockText
) -> tuple[Var, ...]:
    where = then.end or reader.span(node)
    if not node.orelse:
        raise reader.fault(where, "an if with pl.yield_ needs an else that yields as well")
    if not (then.yields and orelse.yields):
        silent = orelse if then.yields else then
        raise reader.fault(
            silent.end or where, "both branches of an if must end in pl.yield_, or neither"
        )
    names = [target.name for target in then.targets]
    others = [target.name for target in orelse.targets]
    if names != others:
        raise reader.fault(
            orelse.end or where,
            f"the branches yield different names: ({', '.join(names)}) and ({', '.join(others)})",
        )
    counts = [len(yields_of(then.stmts)), len(yields_of(orelse.stmts))]
    if counts[0] != counts[1]:
        raise reader.fault(
            orelse.end or where, f"the branches yield {counts[0]} and {counts[1]} values"
        )
    results = tuple(result_variable(reader, target) for target in then.targets)
    for result, target in zip(results, orelse.targets, strict=True):
        annotate.check_agreement(reader, target.span, result.type, target.value, target.name)
    return results
