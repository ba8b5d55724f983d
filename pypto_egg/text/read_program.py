"""Whole texts: module lines, the program class, function signatures and bodies.

PyPTO language reference, 1 and 2.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from pypto_egg.errors import ParseError
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.expr import Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Return, Stmt
from pypto_egg.ir.types import ScalarType, Type
from pypto_egg.source import Source, Span
from pypto_egg.text import read_decorator, read_module, read_stmt, read_type, values
from pypto_egg.text.naming import variables_of
from pypto_egg.text.positions import Positions
from pypto_egg.text.read_decorator import Decoration
from pypto_egg.text.reader import ProgramScope, Reader, Signature, language_path


def parse(text: str, name: str = "<string>") -> Program:
    """The program that a text in PyPTO's Python syntax states.

    The text is never executed. A text of bare functions gives a program with an empty name.

    Args:
        name: what errors call the text, usually its file name.

    Raises:
        ParseError: not Python, or outside of the language; names file, line and column.
        UnknownOpError: a kernel uses an operator that the registry does not have.
        TypeCheckError: an operator, annotation or reassignment with types that do not fit.
    """
    source = Source(name, text.removeprefix("\ufeff"))
    tree = _syntax_tree(source)
    positions = Positions(source)
    try:
        return _read_module(ProgramScope(positions), tree)
    except RecursionError:
        raise ParseError(
            "the text nests too deeply to be read", hint="name intermediate results"
        ) from None


def _syntax_tree(source: Source) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text, filename=source.name)
    except SyntaxError as error:
        line = max(1, error.lineno or 1)
        column = max(1, error.offset or 1)
        span = Span(source, line, column)
        raise ParseError(f"not valid Python: {error.msg}", span=span) from None
    except (RecursionError, MemoryError):
        raise ParseError(
            "the text nests too deeply to be read",
            span=Span(source, 1, 1),
            hint="name intermediate results",
        ) from None
    except (ValueError, OverflowError) as error:
        raise ParseError(f"not valid Python: {error}", span=Span(source, 1, 1)) from None


@dataclass(slots=True)
class FunctionText:
    """One function of the text between reading its signature and reading its body."""

    node: ast.FunctionDef
    decoration: Decoration
    reader: Reader
    signature: Signature


def _read_module(program: ProgramScope, tree: ast.Module) -> Program:
    reader = Reader(program)
    name, nodes = read_module.read_module(reader, tree)
    texts = [_signature(program, node, decoration) for node, decoration in nodes]
    bodies: dict[str, Function] = {}
    for text in _callees_first(texts):
        bodies[text.signature.name] = _function(text)
        result = bodies[text.signature.name]
        if not result.returns:
            program.derived_returns[result.name] = _returned_types(result.body)
    functions = tuple(bodies[text.signature.name] for text in texts)
    _check_symbols(reader, functions)
    return Program(name, functions)


def _check_symbols(reader: Reader, functions: tuple[Function, ...]) -> None:
    """Refuse a dynamic symbol that no type mentions: no argument could ever give its value."""
    program = reader.program
    unseen = {s: span for s, span in program.in_bodies.items() if s not in program.in_types}
    if not unseen:
        return
    inferred = {var for function in functions for var in variables_of(function).in_types}
    for symbol, span in unseen.items():
        if symbol not in inferred:
            raise reader.fault(
                span,
                f"the dynamic symbol '{symbol.name}' is used, but is no dimension of any type",
                "pass the value as a pl.Scalar[pl.INDEX] parameter",
            )


def _callees_first(texts: list[FunctionText]) -> list[FunctionText]:
    """The functions so that each comes after those it calls, as far as calls form no cycle."""
    by_name = {text.signature.name: text for text in texts}
    calls = {name: _called_names(text.node, by_name) for name, text in by_name.items()}
    order: dict[str, FunctionText] = {}
    for root in by_name:
        stack = [(root, iter(calls[root]))]
        open_names = {root}
        while stack:
            name, callees = stack[-1]
            callee = next((c for c in callees if c not in order and c not in open_names), None)
            if callee is not None:
                stack.append((callee, iter(calls[callee])))
                open_names.add(callee)
                continue
            stack.pop()
            order.setdefault(name, by_name[name])
    return list(order.values())


def _called_names(node: ast.FunctionDef, known: dict[str, FunctionText]) -> list[str]:
    names = []
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if part.value.id == "self" and part.attr in known:
                names.append(part.attr)
        elif isinstance(part, ast.Name) and part.id in known:
            names.append(part.id)
    return list(dict.fromkeys(names))


def _returned_types(body: tuple[Stmt, ...]) -> tuple[Type, ...]:
    """The types of what a function without a return annotation returns at its end."""
    last = body[-1] if body else None
    return tuple(value.type for value in last.values) if isinstance(last, Return) else ()


def _signature(
    program: ProgramScope, node: ast.FunctionDef, decoration: Decoration
) -> FunctionText:
    reader = Reader(
        program,
        node.name,
        decoration.type,
        strict_ssa=decoration.strict_ssa,
        auto_scope=decoration.auto_scope,
    )
    params = _params(reader, node)
    returns = _returns(reader, node.returns)
    signature = Signature(node.name, decoration.type, params, returns)
    if node.name in program.signatures:
        raise reader.fault(node, f"the function '{node.name}' is defined twice")
    program.signatures[node.name] = signature
    return FunctionText(node, decoration, reader, signature)


def _params(reader: Reader, node: ast.FunctionDef) -> tuple[Param, ...]:
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
        raise reader.fault(node, f"{node.name}: parameters are plain names (no *, ** or /)")
    found = list(args.args)
    if found and found[0].arg == "self":
        found = found[1:]
    spelled = [_param_annotation(reader, arg) for arg in found]
    scalars = _scalar_params(reader, found, spelled)
    params = []
    for arg, (direction, annotation) in zip(found, spelled, strict=True):
        var = scalars.get(arg.arg)
        if var is None:
            kind = read_type.read_type(reader, annotation)
            var = Var(arg.arg, kind, reader.span(arg))
        if direction is Direction.InOut and isinstance(var.type, ScalarType):
            raise reader.fault(arg, f"the scalar parameter '{arg.arg}' cannot be InOut")
        params.append(Param(var, direction))
    for param in params:
        reader.scope.define(param.var.name, param.var)
    return tuple(params)


def _scalar_params(
    reader: Reader, found: list[ast.arg], spelled: list[tuple[Direction, ast.expr]]
) -> dict[str, Var]:
    """The scalar parameters, made first: the types of the others may mention them."""
    scalars: dict[str, Var] = {}
    seen: set[str] = set()
    for arg, (_, annotation) in zip(found, spelled, strict=True):
        reader.new_name(arg, arg.arg)
        if arg.arg in seen:
            raise reader.fault(arg, f"the parameter '{arg.arg}' is given twice")
        seen.add(arg.arg)
        base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        if language_path(reader, base) in (("Scalar",), ("TaskId",)):
            kind = read_type.read_type(reader, annotation)
            scalars[arg.arg] = Var(arg.arg, kind, reader.span(arg))
    for name, var in scalars.items():
        reader.scope.define(name, var)
    return scalars


def _param_annotation(reader: Reader, arg: ast.arg) -> tuple[Direction, ast.expr]:
    annotation = arg.annotation
    if annotation is None:
        raise reader.fault(arg, f"the parameter '{arg.arg}' has no type annotation")
    if isinstance(annotation, ast.Subscript):
        path = language_path(reader, annotation.value)
        if path in (("Out",), ("InOut",)):
            assert path is not None
            return Direction(path[0]), annotation.slice
    return Direction.In, annotation


def _returns(reader: Reader, node: ast.expr | None) -> tuple[Type, ...]:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    if isinstance(node, ast.Subscript):
        is_tuple = isinstance(node.value, ast.Name) and node.value.id == "tuple"
        if is_tuple or language_path(reader, node.value) == ("Tuple",):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(read_type.read_type(reader, item) for item in items)
    return (read_type.read_type(reader, node),)


def _function(text: FunctionText) -> Function:
    reader, node, decoration = text.reader, text.node, text.decoration
    body_nodes, docstring = _without_docstring(node.body)
    attrs, body_nodes = _function_attrs(reader, body_nodes)
    reader.program.positions.skip_comments(node.lineno)
    body: tuple[Stmt, ...] = ()
    if _is_abstract(body_nodes):
        _check_abstract(reader, node, decoration)
    elif body_nodes:
        block = read_stmt.read_block(reader, body_nodes)
        if block.yields:
            raise reader.fault(
                block.end or reader.span(node), "pl.yield_ outside of a loop or branch"
            )
        body = block.stmts
    if docstring and body:
        body = (read_stmt.with_comments(body[0], docstring), *body[1:])
    return Function(
        node.name,
        decoration.type,
        text.signature.params,
        text.signature.returns,
        body,
        decoration.level,
        decoration.role,
        (*decoration.attrs, *attrs),
        decoration.auto_scope,
        decoration.external_source,
        reader.span(node),
    )


def _without_docstring(body: list[ast.stmt]) -> tuple[list[ast.stmt], tuple[str, ...]]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        text = first.value.value
        if isinstance(text, str):
            lines = [line.strip() for line in text.strip().splitlines()]
            return body[1:], tuple(lines)
    return body, ()


def _is_abstract(body: list[ast.stmt]) -> bool:
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return False
    value = body[0].value
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def _check_abstract(reader: Reader, node: ast.FunctionDef, decoration: Decoration) -> None:
    if not read_decorator.may_be_abstract(decoration):
        raise reader.fault(
            node.body[-1],
            f"the body of '{node.name}' is missing",
            "only a SubWorker at level HOST or above, or external_source=, goes without a body",
        )


def _function_attrs(
    reader: Reader, body: list[ast.stmt]
) -> tuple[tuple[tuple[str, object], ...], list[ast.stmt]]:
    """The attributes of a leading `pl.func_attr({...})`, and the statements after it."""
    first = body[0] if body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Call):
        return (), body
    call = first.value
    if language_path(reader, call.func) != ("func_attr",):
        return (), body
    if len(call.args) != 1 or call.keywords:
        raise reader.fault(call, "function attributes are spelled pl.func_attr({...})")
    entries = values.read_attributes(reader, call.args[0])
    return tuple(entry for entry in entries if not read_decorator.is_default(*entry)), body[1:]
