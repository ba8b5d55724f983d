"""Programs and functions as PyPTO prints them (PyPTO language reference, 1 and 2)."""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.enums import Direction, FunctionType, Role
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.text.naming import ProgramNames, program_names
from pypto_egg.text.read_decorator import Decoration, may_be_abstract
from pypto_egg.text.style import Style
from pypto_egg.text.write_stmt import INDENT, BlockWriter
from pypto_egg.text.write_type import write_type
from pypto_egg.text.write_value import double_quoted, write_attributes


def print_program(program: Program, *, prefix: str = "pl", concise: bool = False) -> str:
    """The text of a program in PyPTO's canonical form, ending in a newline.

    Args:
        prefix: the name under which the text imports `pypto.language`.
        concise: leave out the annotations of assignments and yields.
    """
    names = program_names(program.functions, _reserved(prefix))
    if not program.name:
        parts = [
            "\n".join(_function(function, names, Style(prefix, concise, in_program=False)))
            for function in _callees_first(program.functions, names)
        ]
        return "\n\n".join(parts) + "\n"
    lines = [f"# pypto.program: {program.name}"]
    if prefix == "pl":
        lines.append("import pypto.language as pl")
    else:
        lines.append(f"from pypto import language as {prefix}")
    lines.append("")
    if names.dynamic:
        lines += [f"{name} = {prefix}.dynamic({double_quoted(name)})" for name in names.dynamic]
        lines.append("")
    lines += [f"@{prefix}.program", f"class {program.name}:"]
    for function in _callees_first(program.functions, names):
        lines += [INDENT + line for line in _function(function, names, Style(prefix, concise))]
    return "\n".join(lines) + "\n"


def print_function(function: Function, *, prefix: str = "pl", concise: bool = False) -> str:
    """The text of one function as it stands outside of a program, ending in a newline."""
    names = program_names((function,), _reserved(prefix))
    return "\n".join(_function(function, names, Style(prefix, concise, in_program=False))) + "\n"


def _reserved(prefix: str) -> tuple[str, ...]:
    return (prefix, "pld", "self")


def _callees_first(functions: tuple[Function, ...], names: ProgramNames) -> list[Function]:
    """Called functions before their callers; the given order where calls form a cycle."""
    by_name = {function.name: function for function in functions}
    done: dict[str, Function] = {}
    for root in by_name:
        path: dict[str, list[str]] = {root: list(names.callees[root])}
        while path:
            name = next(reversed(path))
            callee = next((c for c in path[name] if c in by_name and c not in done), None)
            if callee is None:
                del path[name]
                done.setdefault(name, by_name[name])
                continue
            if callee in path:
                return list(functions)
            path[callee] = list(names.callees[callee])
    return list(done.values())


def _function(function: Function, names: ProgramNames, style: Style) -> list[str]:
    style = replace(style, names=names.functions[function.name])
    writer = BlockWriter(style)
    writer.line(0, _decorator(style.prefix, function))
    writer.line(0, _signature(style, function))
    if function.attrs:
        attrs = write_attributes(style, function.attrs)
        writer.line(1, f"{style.prefix}.func_attr({attrs})")
    if not function.body and _is_abstract(function):
        writer.line(1, "...")
    elif function.body or not function.attrs:
        writer.block(1, function.body)
    return writer.lines


def _decorator(pl: str, function: Function) -> str:
    parts = []
    if function.type is not FunctionType.Opaque:
        parts.append(f"type={pl}.FunctionType.{function.type.name}")
    if function.level is not None:
        parts.append(f"level={pl}.Level.{function.level.name}")
    if function.role is not None:
        parts.append(f"role={pl}.Role.{function.role.name}")
    if not function.auto_scope:
        parts.append("auto_scope=False")
    if function.external_source is not None:
        parts.append(f"external_source={double_quoted(function.external_source)}")
    arguments = f"({', '.join(parts)})" if parts else ""
    return f"@{pl}.function{arguments}"


def _signature(style: Style, function: Function) -> str:
    has_self = style.in_program and function.role is not Role.SubWorker
    params = ["self"] if has_self else []
    params += [_param(style, param) for param in function.params]
    results = [write_type(style, result) for result in function.returns]
    arrow = ""
    if len(results) == 1:
        arrow = f" -> {results[0]}"
    elif results:
        arrow = f" -> tuple[{', '.join(results)}]"
    return f"def {function.name}({', '.join(params)}){arrow}:"


def _param(style: Style, param: Param) -> str:
    kind = write_type(style, param.var.type)
    if param.direction is not Direction.In:
        kind = f"{style.prefix}.{param.direction.name}[{kind}]"
    return f"{style.name(param.var)}: {kind}"


def _is_abstract(function: Function) -> bool:
    return may_be_abstract(
        Decoration(
            function.type,
            function.level,
            function.role,
            external_source=function.external_source,
        )
    )
