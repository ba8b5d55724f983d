"""Result types of functions that are written without a return annotation, as `pl.jit` allows."""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Return


def with_result_types(program: Program) -> Program:
    """The program whose functions all declare what they return.

    A function that declares nothing and ends in a return of values gets their types.
    """
    functions = tuple(_declared(function) for function in program.functions)
    if all(new is old for new, old in zip(functions, program.functions, strict=True)):
        return program
    return program.with_functions(functions)


def _declared(function: Function) -> Function:
    last = function.body[-1] if function.body else None
    if function.returns or not isinstance(last, Return) or not last.values:
        return function
    return replace(function, returns=tuple(value.type for value in last.values))
