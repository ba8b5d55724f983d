"""Module level of a text: imports, dynamic symbols, constants, and what is to be read.

PyPTO language reference, 1.
"""

from __future__ import annotations

import ast

from pypto_egg.ir.expr import Expr
from pypto_egg.text import read_decorator, read_expr
from pypto_egg.text.read_decorator import Decoration
from pypto_egg.text.reader import Reader, construct_name, language_path

Decorated = tuple[ast.FunctionDef, Decoration]


def read_module(reader: Reader, tree: ast.Module) -> tuple[str, list[Decorated]]:
    """The program's name (empty for bare functions) and its functions, not yet read."""
    classes: list[tuple[ast.ClassDef, bool]] = []
    functions: list[Decorated] = []
    for index, node in enumerate(tree.body):
        match node:
            case ast.Import() | ast.ImportFrom():
                _import(reader, node)
            case ast.Assign() | ast.AnnAssign():
                _assignment(reader, node)
            case ast.ClassDef():
                strict = read_decorator.program_strict_ssa(reader, node)
                if strict is None:
                    raise reader.fault(
                        node, f"the class '{node.name}' is not decorated with @pl.program"
                    )
                classes.append((node, strict))
            case ast.FunctionDef():
                functions.append(_function(reader, node))
            case ast.Expr(value=ast.Constant(value=str())) if index == 0:
                continue  # the module's docstring
            case _:
                raise reader.fault(node, f"{construct_name(node)} at module level", _EXPECTED)
    return _chosen(reader, tree, classes, functions)


_EXPECTED = "a text holds imports, pl.dynamic lines and one @pl.program class"


def _chosen(
    reader: Reader,
    tree: ast.Module,
    classes: list[tuple[ast.ClassDef, bool]],
    functions: list[Decorated],
) -> tuple[str, list[Decorated]]:
    if not classes and not functions:
        where = reader.program.positions.at(1, 1)
        raise reader.fault(where, "the text holds no program", _EXPECTED)
    if len(classes) > 1:
        raise reader.fault(
            classes[1][0], "the text holds two programs", "one text states one program"
        )
    if not classes:
        return "", functions
    if functions:
        raise reader.fault(functions[0][0], "a function beside the program", "make it a method")
    node, strict = classes[0]
    reader.program.in_class = True
    return node.name, _methods(reader, node, strict)


def _methods(reader: Reader, node: ast.ClassDef, strict_ssa: bool) -> list[Decorated]:
    """The decorated methods; PyPTO ignores all other members."""
    methods = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            decoration = read_decorator.function_decoration(reader, member, strict_ssa)
            if decoration is not None:
                methods.append((member, decoration))
    if not methods:
        raise reader.fault(
            node, f"the program '{node.name}' has no function decorated with @pl.function"
        )
    return methods


def _function(reader: Reader, node: ast.FunctionDef) -> Decorated:
    decoration = read_decorator.function_decoration(reader, node, strict_ssa=False)
    if decoration is None:
        raise reader.fault(node, f"the function '{node.name}' is not decorated with @pl.function")
    return node, decoration


def _import(reader: Reader, node: ast.Import | ast.ImportFrom) -> None:
    program = reader.program
    if isinstance(node, ast.ImportFrom):
        modules = [
            (f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names
        ]
    else:
        modules = [(alias.name, alias.asname or "") for alias in node.names]
    for module, bound in modules:
        if module == "pypto.language" and bound:
            program.language.add(bound)
        elif module == "pypto.language.distributed" and bound:
            program.distributed.add(bound)
        elif module.split(".")[0] not in ("pypto", "__future__"):
            raise reader.fault(
                node, f"the module '{module}' cannot be imported", "only pypto.language can be"
            )


def _assignment(reader: Reader, node: ast.Assign | ast.AnnAssign) -> None:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    chained = isinstance(node, ast.Assign) and len(node.targets) != 1
    if chained or not isinstance(target, ast.Name) or node.value is None:
        raise reader.fault(node, f"'{ast.unparse(node)}' at module level", _EXPECTED)
    name = reader.new_name(target, target.id)
    value = node.value
    if isinstance(value, ast.Call) and language_path(reader, value.func) == ("dynamic",):
        _dynamic(reader, name, value)
        return
    constant = read_expr.read_value(reader, value)
    if isinstance(constant, Expr):
        raise reader.fault(value, f"'{name}' must be a number or pl.dynamic(\"{name}\")")
    reader.program.constants[name] = constant


def _dynamic(reader: Reader, name: str, call: ast.Call) -> None:
    argument = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        raise reader.fault(call, f'a dynamic symbol is declared by {name} = pl.dynamic("{name}")')
    text = argument.value
    if not text.isidentifier():
        raise reader.fault(argument, f"the symbol name {text!r} is not a Python identifier")
    symbols = reader.program.symbols
    same = next((symbol for symbol in symbols.values() if symbol.name == text), None)
    if same is None:
        same = reader.program.symbol(text, reader.span(call))
    symbols[name] = same
