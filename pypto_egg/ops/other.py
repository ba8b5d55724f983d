"""array.*, system.* and prefetch.* operators: typed where programs compute with the results.

These pass through unchanged, so their keyword arguments are stored as given.
"""

from __future__ import annotations

from pypto_egg.ir.dtype import BOOL, INDEX, TASK_ID
from pypto_egg.ir.types import ArrayType, HandleType, ScalarType, Type, UnknownType
from pypto_egg.ops.registry import Effect, Kwarg, Kwargs, Operand
from pypto_egg.ops.site import EffectRule, Rule, Site, declare, describe, either, scalar
from pypto_egg.ops.tensor_memory import kwarg_dtype


def handle(name: str) -> Rule:
    """A type rule that gives the opaque handle `name`."""
    return lambda site: HandleType(name)


def nothing(site: Site) -> Type:
    """The type of an operator without a result."""
    return UnknownType()


def some(count: int, effect: EffectRule = Effect.READ) -> tuple[Operand, ...]:
    """`count` optional operands of any kind, for operators that are only passed on."""
    return tuple(either(f"arg{i}", optional=True, effect=effect) for i in range(count))


def _array(site: Site) -> ArrayType:
    found = site.args[0].type
    if not isinstance(found, ArrayType):
        raise site.error(0, f"must be an array, got {describe(site.args[0])}")
    return found


def _array_create(site: Site) -> Type:
    extent = site.constant(0)
    if extent < 1:
        raise site.error(0, f"is {extent}; an array has at least 1 element")
    return ArrayType(extent, kwarg_dtype(site))


def _get_element(site: Site) -> Type:
    return ScalarType(_array(site).dtype)


def _update_element(site: Site) -> Type:
    array = _array(site)
    if site.scalar(2) != array.dtype:
        raise site.error(
            2,
            f"has dtype {site.scalar(2).name}; the array holds {array.dtype.name}",
            hint=f"write pl.cast(v, pl.{array.dtype.name})",
        )
    return array


def syncall_effect(kwargs: Kwargs) -> Effect:
    """A soft syncall counts in its workspace; the hardware form touches no memory."""
    return Effect.READ_WRITE if kwargs.get("mode") == "soft" else Effect.NONE


def _declare_arrays() -> None:
    array = either("array")
    dtype = (Kwarg("dtype", "dtype"),)
    declare("array.create", (scalar("n"),), _array_create, "array", dtype, pure=False)
    declare("array.get_element", (array, scalar("index")), _get_element, "array")
    declare(
        "array.update_element",
        (either("array", effect=Effect.READ_WRITE), scalar("index"), scalar("value")),
        _update_element,
        "array",
        reuses_input=0,
        pure=False,
    )


def _declare_barriers() -> None:
    for name in ("bar_v", "bar_m", "bar_all"):
        declare(f"system.{name}", (), nothing, "sync", pure=False)
    for name in ("fence", "sync_set", "sync_wait", "set_ffts"):
        declare(f"system.{name}", some(3), nothing, "sync", pure=False, open_kwargs=True)
    event = (Kwarg("set_pipe", "any"), Kwarg("wait_pipe", "any"), Kwarg("event_id", "any"))
    for name in ("sync_src", "sync_dst"):
        declare(f"system.{name}", (), nothing, "sync", event, pure=False)
    workspace = (either("workspace", optional=True, effect=syncall_effect), *some(2))
    mode = (Kwarg("mode", "str", "hard"),)
    declare("system.syncall", workspace, nothing, "sync", mode, pure=False, open_kwargs=True)
    declare(
        "system.cacheinvalid",
        some(3),
        nothing,
        "sync",
        opaque_effects=True,
        pure=False,
        open_kwargs=True,
    )


def _declare_tasks() -> None:
    def task(site: Site) -> Type:
        return ScalarType(TASK_ID)

    def count(site: Site) -> Type:
        return ScalarType(INDEX)

    def is_valid(site: Site) -> Type:
        site.demand_dtype(0, (TASK_ID,))
        return ScalarType(BOOL)

    declare("system.task_invalid", (), task, "query", instruction=False)
    declare("system.task_dummy", some(4), task, "sync", pure=False, open_kwargs=True)
    declare("system.task_is_valid", (scalar("task"),), is_valid, "query", instruction=False)
    for name in ("available_aiv_count", "available_cluster_count"):
        declare(f"system.{name}", (), count, "query", instruction=False)


def _declare_pipes() -> None:
    for name in ("reserve_buffer", "import_peer_buffer"):
        buffer = handle("Ptr")
        declare(f"system.{name}", some(3), buffer, "comm", pure=False, open_kwargs=True)
    for name in ("aic_initialize_pipe", "aiv_initialize_pipe", "tfree_to_aic", "tfree_to_aiv"):
        declare(f"system.{name}", some(4), nothing, "comm", pure=False, open_kwargs=True)


def _declare_prefetch() -> None:
    for name, result in (
        ("make_context", "PrefetchAsyncContext"),
        ("session", "AsyncSession"),
        ("async_prefetch", "AsyncEvent"),
        ("wait", "UnknownType"),
    ):
        rule = nothing if name == "wait" else handle(result)
        declare(f"prefetch.{name}", some(4), rule, "misc", pure=False, open_kwargs=True)


_declare_arrays()
_declare_barriers()
_declare_tasks()
_declare_pipes()
_declare_prefetch()
