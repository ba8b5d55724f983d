"""Windows of tensors in global memory as loaded values.

A load of a tensor that the function only reads floats: it may happen anywhere where its offsets
are known, and equal windows are one value. A load of a tensor that is written is pinned to its
statement, and equal windows at other statements are other values.

A tensor in NZ order is loaded into Mat only, as the operand of a product (N-098, Q-37).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pypto_egg.analysis.cache_policy import policy_of
from pypto_egg.analysis.effects import Effects
from pypto_egg.analysis.regions import Region, RegionKind
from pypto_egg.egraph.adjacent import adjacent_windows
from pypto_egg.egraph.bulk import equal, fact, node
from pypto_egg.egraph.facts import Facts
from pypto_egg.egraph.gm import in_bounds, in_nz_order
from pypto_egg.egraph.skeleton import Item, Pin
from pypto_egg.egraph.terms import check_holdable
from pypto_egg.egraph.values import Local, Window, deepest
from pypto_egg.errors import LoweringError, NzError
from pypto_egg.ir.enums import CachePolicy
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.stmt import Stmt
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import free_vars
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.site import show_shape

_BARRIERS = (RegionKind.THEN, RegionKind.ELSE, RegionKind.WHILE, RegionKind.FUNCTION)
_PRODUCTS = {"matmul", "matmul_acc"}


@dataclass(frozen=True)
class _Loaded:
    """A window that is loaded: its value, the families of the ops that read it, and the first."""

    window: Window
    local: Local
    consumers: set[str]
    stmt: Stmt
    name: str


@dataclass
class Windows:
    """The loads of one function.

    Args:
        hoist: whether a read-only load may leave the loop in which it is written.
        pins: loads that the statement being loaded must come after; the caller takes them.
    """

    effects: Effects
    facts: Facts
    policies: Mapping[Var, CachePolicy]
    hoist: bool
    pins: list[Item] = field(default_factory=list)
    _known: dict[str, _Loaded] = field(default_factory=dict)

    def used_by(self, local: Local, consumer: str) -> None:
        """Notes the family of an op that reads the value, if it is a loaded one."""
        if local.window is not None:
            self._known[local.window].consumers.add(consumer)

    def settle(self, duplicate: bool) -> list[Window]:
        """States which windows may be padded as a product's operand.

        Args:
            duplicate: whether a window with a cube and a vector consumer may be loaded twice.

        Returns:
            Windows with both kinds of consumer that may be loaded only once (C-144).
        """
        shared = []
        for known in self._known.values():
            if duplicate or known.consumers <= _PRODUCTS:
                self.facts.add(fact("boxable", known.local.term))
            elif known.consumers & _PRODUCTS:
                shared.append(known.window)
        return shared

    def join(self) -> None:
        """States that windows which lie side by side are slices of one larger load."""
        read_only = {
            id(known.window): known
            for known in self._known.values()
            if self.effects.is_read_only(known.window.handle)
        }
        windows = [known.window for known in read_only.values()]
        for pair in adjacent_windows(windows, self.facts.keys):
            first, second = (read_only[id(window)] for window in (pair.first, pair.second))
            if first.local.home is not second.local.home:
                continue
            both = self.load(pair.both, first.stmt, first.name)
            for known, offsets in zip((first, second), pair.offsets(), strict=True):
                shape = self.facts.keys.indices(known.window.type.shape)
                part = (both.term, self.facts.keys.indices(offsets), shape, shape)
                self.facts.add(equal(known.local.term, node("tensor.slice", *part)))

    def load(self, window: Window, stmt: Stmt, name: str) -> Local:
        """The content of the window as a value.

        Raises:
            LoweringError: its memory is laid out in a way that no load reads.
            NzError: NZ memory that something else than a product reads, or in several planes.
        """
        nz = in_nz_order(window.handle)
        if nz:
            _check_nz(window, stmt)
        elif not window.exact:
            raise LoweringError(
                f"tensor '{window.handle.name}' has layout {_layout(window)}, which is not loaded",
                span=stmt.span,
                hint="pass it as a row-major (ND) tensor",
            )
        read_only = self.effects.is_read_only(window.handle)
        made_at = window.taken or stmt
        point = 0 if read_only else self.point_of(made_at)
        key = self._key(window, point)
        home = self._home(window, made_at)
        if key in self._known:
            known = self._known[key].local
            self.facts.add(fact("at", known.term, home.id))
            return replace(known, home=home)
        local = Local(self.facts.bind(node("tensor.gm", key, point)), window.type, home, key)
        check_holdable(window.type, name, stmt.span)
        self._known[key] = _Loaded(window, local, set(), stmt, name)
        self.facts.describe(local, name)
        if not nz:
            self.facts.offer_vec_extents(local)
        key_of_handle = self.facts.keys.handle(window.handle)
        policy = policy_of(window.handle, self.policies, self.effects.provenance)
        if policy is not None:
            self.facts.keys.cache[key_of_handle] = policy
        handle = node("gm.handle", key_of_handle)
        self.facts.add(fact("located", local.term, handle, self.facts.keys.indices(window.offsets)))
        self.facts.add(
            fact("floating", local.term) if read_only else fact("pinned", local.term, point)
        )
        if not read_only and window.taken is None:
            self.pins.append(Pin(point))
        if len(window.offsets) == 2 and not nz:
            self.facts.add(fact("transposable", handle))
        return local

    def taken(self, window: Window, stmt: Stmt) -> Window:
        """The window as a view that is read here: later writes do not show in it."""
        if window.taken is not None or self.effects.is_read_only(window.handle):
            return window
        self.pins.append(Pin(self.point_of(stmt)))
        return replace(window, taken=stmt)

    def point_of(self, stmt: Stmt) -> int:
        """What tells reads of written memory apart: the statement that reads."""
        return self.effects.regions.position_of(stmt) + 1

    def _key(self, window: Window, point: int) -> str:
        parts = [self.facts.keys.handle(window.handle), str(point)]
        for dims in (window.offsets, window.type.shape, window.type.valid_shape):
            parts.append(",".join(self.facts.keys.text(dim) for dim in dims))
        return "|".join(parts)

    def _home(self, window: Window, stmt: Stmt) -> Region:
        """The outermost region in which a load of the window is right and safe.

        Memory that is not written can be loaded where the view is written down, for all of its
        uses: those in the arms of a branch share the load.
        """
        regions = self.effects.regions
        if not self.effects.is_read_only(window.handle):
            return regions.region_of(stmt)
        here = regions.region_of(window.written or stmt)
        used = [window.handle]
        for dim in (*window.offsets, *window.type.shape, *window.type.valid_shape):
            used.extend(free_vars(dim) if isinstance(dim, Expr) else ())
        home = deepest(*(regions.region_of_var(var) for var in used))
        if any(isinstance(o, Expr) for o in window.offsets) and not self.hoist:
            return here
        return home if in_bounds(window) else deepest(home, barrier_of(here))


def barrier_of(region: Region) -> Region:
    """The innermost region around which code does not run unless this region does."""
    while region.kind not in _BARRIERS:
        assert region.parent is not None
        region = region.parent
    return region


def _check_nz(window: Window, stmt: Stmt) -> None:
    """Refuse to load NZ memory for anything but a product, or more than one matrix of it."""
    name, value = window.handle.name, getattr(stmt, "value", None)
    if isinstance(value, Call):
        decl = lookup(value.op)
        if decl is None or decl.family not in _PRODUCTS:
            raise NzError(
                f"NZ tensor '{name}' is read by {value.op}, which needs it in Vec; NZ memory is "
                "loaded into Mat only, for a product",
                span=value.span or stmt.span,
                hint="keep the tensor ND where it is used like this",
            )
    if window.type.rank != 2:
        raise NzError(
            f"NZ tensor '{name}' is multiplied in a window of {show_shape(window.type.shape)}; a "
            "cube operand from NZ memory is one matrix",
            span=stmt.span,
            hint="loop over the leading axes and take one panel at a time, w[e, r0:r1, c0:c1]",
        )


def _layout(window: Window) -> str:
    handle_type = window.handle.type
    assert isinstance(handle_type, TensorType)
    return "distributed" if handle_type.distributed else handle_type.layout.name
