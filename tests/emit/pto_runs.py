"""Kernels of tiles and their PTO text, executed on the same inputs."""

from __future__ import annotations

import numpy as np
from pto_machine import execute
from pto_reader import check

from pypto_egg.emit.pto_text import pto_text
from pypto_egg.interp import random_inputs, run
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.types import TensorType


def agree(program: Program, seed: int = 0, **scalars: int | float) -> None:
    """The text of each kernel keeps the rules, and leaves in memory what the kernel leaves.

    Args:
        scalars: values of scalar parameters by name, where random ones would not do.
    """
    text = pto_text(program)
    check(text)
    for function in program.functions:
        if function.type is FunctionType.InCore:
            _agree(program.with_functions((function,)), function, text, seed, scalars)


def _agree(
    program: Program, function: Function, text: str, seed: int, scalars: dict[str, int | float]
) -> None:
    given = random_inputs(function, seed=seed, program=program)
    given |= {name: value for name, value in scalars.items() if name in given}
    poisoned = run(program, _copied(given)).params
    for param in function.params:
        # Results start as zeros, so that parts which nobody writes compare equal too.
        if isinstance(param.var.type, TensorType) and param.var.name not in given:
            given[param.var.name] = np.zeros_like(poisoned[param.var.name])
    wanted = run(program, _copied(given)).params
    arguments = [_argument(given[param.var.name]) for param in function.params]
    execute(text, arguments, name=function.name)
    for param, found in zip(function.params, arguments, strict=True):
        if param.var.name in wanted:
            want = np.ascontiguousarray(wanted[param.var.name]).reshape(-1)
            close = np.allclose(
                found.astype(np.float64), want.astype(np.float64), 2e-2, 2e-2, equal_nan=True
            )
            assert close, f"{function.name}: '{param.var.name}' differs"


def _copied(given: dict) -> dict:
    return {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in given.items()}


def _argument(value: object) -> object:
    return (
        np.ascontiguousarray(value).reshape(-1).copy() if isinstance(value, np.ndarray) else value
    )
