"""pld.* operators: peer transfers, collectives and signals between devices.

What each writes is declared here (C-048); what other devices do to this one's memory meanwhile
is not known, so the operators that wait for them are opaque (C-030).
"""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.ir.dtype import INT32
from pypto_egg.ir.enums import AtomicType, Mem
from pypto_egg.ir.types import ScalarType, TensorType, TileType, Type, tensor_type
from pypto_egg.ops.other import handle, nothing, some
from pypto_egg.ops.registry import Channel, Effect, Kwarg, Kwargs, Operand
from pypto_egg.ops.rules import plain_tile
from pypto_egg.ops.site import Rule, Site, declare, dims, either, tensor, tile
from pypto_egg.ops.tensor_memory import ATOMIC, atomic_effect, kwarg_dtype


def notify_effect(kwargs: Kwargs) -> Effect:
    """AtomicAdd reads and writes the signal, the plain form only writes it (C-051)."""
    return Effect.READ_WRITE if _is_atomic_add(kwargs.get("op")) else Effect.WRITE


def _is_atomic_add(op: object) -> bool:
    return op is AtomicType.Add or str(op).rsplit(".", 1)[-1] == "AtomicAdd"


def _first(site: Site) -> Type:
    return site.args[0].type


def _second(site: Site) -> Type:
    return site.args[1].type


def _rank(site: Site) -> Type:
    return ScalarType(INT32)


def _window(site: Site) -> Type:
    return tensor_type(site.dims(1), kwarg_dtype(site), distributed=True)


def _remote_load(site: Site) -> Type:
    source = site.tensor(0)
    return plain_tile(site.constant_dims(3), source.dtype, Mem.Vec)


def _demand_pair(rule: Callable[[Site], Type]) -> Rule:
    """The rule, for a transfer whose ends must hold the same dtype."""

    def checked(site: Site) -> Type:
        for index in (0, 2):
            if not isinstance(site.args[index].type, TensorType | TileType):
                raise site.error(index, "must be a tensor or a tile")
        site.demand_same_dtype(0, 2)
        return rule(site)

    return checked


def _declare_system() -> None:
    for name in ("rank", "nranks", "world_size"):
        declare(f"pld.system.{name}", some(1), _rank, "query", open_kwargs=True, instruction=False)
    context = handle("CommCtxType")
    declare("pld.system.get_comm_ctx", some(1), context, "query", instruction=False)
    signal = either("signal", effect=notify_effect)
    declare(
        "pld.system.notify",
        (signal, *some(4)),
        nothing,
        "comm",
        (Kwarg("op", "any", None),),
        channel=Channel.DMA,
        pure=False,
        open_kwargs=True,
    )
    for name in ("wait", "defer_wait"):
        waited = (either("signal"), *some(4))
        declare(
            f"pld.system.{name}",
            waited,
            nothing,
            "comm",
            opaque_effects=True,
            pure=False,
            open_kwargs=True,
        )


def _declare_tensors() -> None:
    buffer = handle("WindowBufferType")
    declare("pld.tensor.alloc_window_buffer", some(2), buffer, "misc", pure=False, open_kwargs=True)
    shape, dtype = dims("shape"), (Kwarg("dtype", "dtype"),)
    declare("pld.tensor.window", (either("buffer"), shape), _window, "view", dtype, pure=False)
    target, peer, source = tensor("dst", effect=atomic_effect), either("peer"), tensor("src")
    put = (target, peer, source, *some(3))
    _declare_transfer("pld.tensor.put", put, _demand_pair(_first), (ATOMIC,))
    got = (tensor("dst", effect=Effect.WRITE), peer, source, *some(3))
    _declare_transfer("pld.tensor.get", got, _demand_pair(_first))
    stored = (either("src"), tensor("target", effect=atomic_effect), peer, *some(2))
    _declare_transfer("pld.tensor.remote_store", stored, _second, (ATOMIC,), reuses_input=1)
    for name in (
        "allreduce", "allgather", "reduce_scatter", "broadcast", "all_to_all", "all_to_all_v",
        "barrier",
    ):  # fmt: skip
        declare(
            f"pld.tensor.{name}",
            (
                either("target", effect=Effect.READ_WRITE),
                *(either(f"arg{i}", optional=True, effect=Effect.READ_WRITE) for i in range(5)),
            ),
            nothing if name == "barrier" else _first,
            "comm",
            reuses_input=None if name == "barrier" else 0,
            channel=Channel.DMA,
            opaque_effects=True,
            pure=False,
            open_kwargs=True,
        )


def _declare_transfer(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    kwargs: tuple[Kwarg, ...] = (),
    reuses_input: int = 0,
) -> None:
    declare(
        name,
        operands,
        rule,
        "comm",
        kwargs,
        reuses_input=reuses_input,
        channel=Channel.DMA,
        pure=False,
        open_kwargs=True,
    )


def _declare_tiles() -> None:
    target, peer, source = tensor("dst", effect=atomic_effect), either("peer"), tensor("src")
    stages = tuple(
        tile(name, Mem.Vec, optional=True, effect=Effect.WRITE) for name in ("ping", "pong")
    )
    put = (target, peer, source, *stages, *some(2))
    _declare_transfer("pld.tile.put", put, _demand_pair(_first), (ATOMIC,))
    got = (tensor("dst", effect=Effect.WRITE), peer, source, *stages, *some(2))
    _declare_transfer("pld.tile.get", got, _demand_pair(_first))
    declare(
        "pld.tile.remote_load",
        (tensor("src"), peer, dims("offsets"), dims("shape")),
        _remote_load,
        "comm",
        output_space=Mem.Vec,
        open_kwargs=True,
    )
    stored = (
        tile("src", Mem.Vec),
        tensor("target", effect=atomic_effect),
        peer,
        dims("offsets"),
        *some(1),
    )
    _declare_transfer("pld.tile.remote_store", stored, _second, (ATOMIC,), reuses_input=1)


_declare_system()
_declare_tensors()
_declare_tiles()
