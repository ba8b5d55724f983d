"""The cache policy that a scope declared for parameters, by parameter (C-086, C-087)."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_egg.analysis.provenance import Provenance
from pypto_egg.errors import LoweringError
from pypto_egg.ir.enums import CachePolicy
from pypto_egg.ir.expr import ConstInt, Expr, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import TensorType

ATTRIBUTE = "cache_policy"


def cache_policies(function: Function) -> dict[Var, CachePolicy]:
    """Parameter -> its declared policy; empty if the function declares none.

    Raises:
        LoweringError: an entry is not a pair of a tensor parameter's index and a policy's number.
    """
    declared = function.attr(ATTRIBUTE)
    if declared is None:
        return {}
    if not isinstance(declared, tuple | list):
        raise _malformed(function, declared)
    return dict(_policy(function, entry) for entry in declared)


def policy_of(
    handle: Expr, policies: Mapping[Var, CachePolicy], provenance: Provenance
) -> CachePolicy | None:
    """The policy of the parameters that a handle may stand for, if they share one."""
    roots = provenance.roots_of(handle)
    found = {policies.get(root.var) for root in roots}
    return found.pop() if len(found) == 1 else None


def _policy(function: Function, entry: object) -> tuple[Var, CachePolicy]:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise _malformed(function, entry)
    index, number = (_number(part) for part in entry)
    known = list(CachePolicy)
    if index is None or number is None or not 0 <= number < len(known):
        raise _malformed(function, entry)
    if not 0 <= index < len(function.params):
        raise _malformed(function, entry)
    var = function.params[index].var
    if not isinstance(var.type, TensorType):
        raise _malformed(function, entry)
    return var, known[number]


def _number(part: object) -> int | None:
    if isinstance(part, CachePolicy):
        return list(CachePolicy).index(part)
    if isinstance(part, ConstInt):
        return part.value
    return part if isinstance(part, int) and not isinstance(part, bool) else None


def _malformed(function: Function, entry: object) -> LoweringError:
    last = len(function.params) - 1
    policies = ", ".join(f"{i} {policy.name}" for i, policy in enumerate(CachePolicy))
    return LoweringError(
        f"function '{function.name}': {ATTRIBUTE} holds {entry!r}, which is not a tensor "
        "parameter's index and a policy",
        span=function.span,
        hint=f"write pairs such as (0, 1): an index from 0 to {last} and one of {policies}",
    )
