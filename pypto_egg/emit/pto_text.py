"""The PTO MLIR text of lowered kernels.

A tile variable becomes a buffer, `pto.alloc_tile` at the head of the function; what works in place
keeps the buffer of its operand. A GM parameter becomes one view, made before it is first used, and
each access a partition of it. Everything that has no form here is refused by name. Source: PyPTO,
BlockNzTensorViews ("generated code") and its PTO code generation; PTOAS, PTO IR manual.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pypto_egg.emit.hazards import hazards
from pypto_egg.emit.pto_calls import write_call
from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Global
from pypto_egg.emit.pto_regions import write_branch, write_loop, write_while
from pypto_egg.emit.pto_scalars import dtype_type
from pypto_egg.emit.pto_types import check_assembler, element_type, plain_name
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Stmt, While
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import defined_by

ASSEMBLER = "0.61"
_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def pto_text(program: Program, *, assembler: str = ASSEMBLER) -> str:
    """The PTO MLIR text of a lowered program's kernels, one `func.func` each.

    Args:
        program: of tiles. Functions that run outside the cores are not part of this form.
        assembler: the version of PTOAS that is to read the text.

    Raises:
        PtoTextError: there is no kernel, or a part of one has no form.
        NzError: an NZ tensor that is not of rank 5, or that this assembler does not take.
        OptionError: `assembler` is no version.
    """
    kernels = [function for function in program.functions if function.type in _KERNELS]
    if not kernels:
        raise PtoTextError(
            f"program '{program.name}' has no function that runs in a core",
            hint="PTO text is made of functions of type InCore, AIC or AIV",
        )
    check_assembler(kernels, assembler)
    lines = ["module {"]
    for function in kernels:
        lines.extend(_function(function))
    return "\n".join((*lines, "}", ""))


def _function(function: Function) -> list[str]:
    kernel = Kernel(function)
    head = _signature(kernel)
    if function.external_source is not None:
        raise kernel.refused("the external source", function.span)
    for hazard in hazards(function):
        raise kernel.refused(
            f"'{hazard.lost.name}', which is overwritten while it is still needed,",
            hazard.lost.span,
            "copy it before an operator works in its place",
        )
    _block(kernel, function.body)
    kernel.emit("return")
    inner = [*kernel.scalars.constant_lines(), *_used(kernel.operands.allocated, kernel.body)]
    return [f"  {head}", *(f"    {line}" for line in (*inner, *kernel.body)), "  }"]


def _used(allocated: list[str], body: list[str]) -> list[str]:
    """The buffers that a body names: one that was only created may have got another type."""
    named = set(re.findall(r"%\w+", "\n".join(body)))
    return [line for line in allocated if line.split(" ", 1)[0] in named]


def _signature(kernel: Kernel) -> str:
    arguments = []
    for position, param in enumerate(kernel.function.params):
        var, kind, argument = param.var, param.var.type, f"%arg{position}"
        if isinstance(kind, TensorType):
            element = element_type(kind.dtype, var.name, var.span)
            kernel.globals[var] = Global(argument, kind, var.name)
            arguments.append(f"{argument}: !pto.ptr<{element}>")
            continue
        scalar = dtype_type(kind.dtype) if isinstance(kind, ScalarType) else None
        if scalar is None:
            raise kernel.refused(f"parameter '{var.name}'", var.span)
        kernel.scalars.bind(var, (argument, scalar))
        arguments.append(f"{argument}: {scalar}")
    return f"func.func @{plain_name(kernel.function.name)}({', '.join(arguments)}) {{"


def _block(kernel: Kernel, block: Block, own: Sequence[Var] = ()) -> None:
    kernel.local.append({*own, *(var for stmt in block for var in defined_by(stmt))})
    for stmt in block:
        _statement(kernel, stmt)
    kernel.local.pop()


def _statement(kernel: Kernel, stmt: Stmt) -> None:
    match stmt:
        case Assign():
            _assign(kernel, stmt)
        case Eval(value=Call() as call):
            write_call(kernel, None, call, call.span or stmt.span)
        case For():
            write_loop(kernel, stmt, _block)
        case While():
            write_while(kernel, stmt, _block)
        case If():
            write_branch(kernel, stmt, _block)
        case Return():
            if kernel.depth:
                raise kernel.refused("a return inside a loop or branch", stmt.span)
            for value in stmt.values:
                kernel.memory(value, stmt.span)
        case _:
            raise kernel.refused(f"the statement {type(stmt).__name__}", stmt.span)


def _assign(kernel: Kernel, stmt: Assign) -> None:
    var, value = stmt.var, stmt.value
    span = stmt.span or var.span or kernel.function.span
    if isinstance(value, Call):
        write_call(kernel, var, value, value.span or span)
    elif isinstance(value, Var) and not isinstance(var.type, ScalarType):
        kernel.renamed(var, value, span)
    elif isinstance(var.type, ScalarType):
        kernel.scalars.bind(var, kernel.scalars.value(value, f"'{var.name}'", span))
    else:
        raise kernel.refused(f"the value of '{var.name}'", span)
