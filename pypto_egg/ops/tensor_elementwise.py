"""tensor.* elementwise operators and broadcast helpers (PyPTO operator reference, tensor ops)."""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.ir.dtype import (
    BF16,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    UINT16,
    DType,
    promote,
)
from pypto_egg.ir.expr import ConstInt
from pypto_egg.ir.fold import provably_equal, provably_unequal
from pypto_egg.ir.types import TensorType, Type
from pypto_egg.ops.registry import Channel, Effect, Kwarg
from pypto_egg.ops.rules import (
    broadcast,
    demand_equal_dim,
    demand_same_shape,
    fresh_tensor,
    plain_valid,
    shared_valid,
)
from pypto_egg.ops.site import Rule, Site, declare, either, scalar, show_dim, show_shape, tensor

CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
DIV_DTYPES = (INT16, INT32, FP16, FP32)
SUBS_DTYPES = (INT8, INT16, INT32, FP16, FP32, BF16)
ROW_ADD_DTYPES = (INT8, INT16, INT32, FP16, FP32)
HIGH_PRECISION = Kwarg("high_precision", "bool", False)
CMP_TYPE = Kwarg("cmp_type", "int", 0, always=True)

_PAIR = (tensor("lhs"), tensor("rhs"))
_WITH_SCALAR = (tensor("lhs"), scalar("rhs"))
_MIXED = (tensor("lhs"), either("rhs"))


def _pair_dtype(site: Site) -> DType:
    return promote(site.dtype(0), site.dtype(1))


def _pair(site: Site) -> Type:
    shape = broadcast(site, 0, 1)
    valid = shared_valid(site.tensor(0), site.tensor(1))
    return fresh_tensor(shape, _pair_dtype(site), valid)


def _pair_full(site: Site) -> Type:
    return fresh_tensor(broadcast(site, 0, 1), _pair_dtype(site))


def check_high_precision(site: Site, dtype: DType) -> None:
    """Refuse `high_precision=True` on a dtype that has no such routine."""
    if site.kwargs["high_precision"] and dtype not in (FP16, FP32):
        raise site.fault(
            f"high_precision=True needs an FP16 or FP32 result, not {dtype.name}",
            hint="drop high_precision or cast to FP32 first",
        )


def _div(site: Site) -> Type:
    site.demand_dtype(0, DIV_DTYPES)
    site.demand_dtype(1, DIV_DTYPES)
    check_high_precision(site, _pair_dtype(site))
    return _pair(site)


def demand_typed_scalar(site: Site, index: int) -> None:
    """Refuse an INDEX scalar as the operand of tensor arithmetic."""
    wanted = site.dtype(0).name
    if site.scalar(index) == INDEX:
        raise site.error(
            index,
            "has dtype INDEX, which does not combine with tensor elements",
            hint=f"write pl.cast(x, pl.{wanted}) or pl.const(v, pl.{wanted})",
        )


def _with_scalar(site: Site) -> Type:
    demand_typed_scalar(site, 1)
    lhs = site.tensor(0)
    return fresh_tensor(lhs.shape, _pair_dtype(site), plain_valid(lhs))


def _subs(site: Site) -> Type:
    site.demand_dtype(0, SUBS_DTYPES)
    site.demand_dtype(1, SUBS_DTYPES)
    return _keep(site)


def _keep(site: Site) -> Type:
    lhs = site.tensor(0)
    return fresh_tensor(lhs.shape, lhs.dtype, plain_valid(lhs))


def _bits_with_scalar(site: Site) -> Type:
    site.demand_int(0, 1)
    return _keep(site)


def _xors(site: Site) -> Type:
    site.demand_int(0, 1)
    return fresh_tensor(site.tensor(0).shape, site.dtype(0))


def check_shift(site: Site, index: int) -> None:
    """Refuse a constant shift that is negative."""
    amount = site.args[index]
    if isinstance(amount, ConstInt) and amount.value < 0:
        raise site.error(index, f"shifts by {amount.value}; a shift must be >= 0")


def _shift_scalar(site: Site) -> Type:
    check_shift(site, 1)
    return _bits_with_scalar(site)


def _mixed(site: Site) -> Type:
    return _with_scalar(site) if site.is_scalar(1) else _pair(_demand_tensor(site, 1))


def _demand_tensor(site: Site, index: int) -> Site:
    if not isinstance(site.args[index].type, TensorType):
        raise site.error(index, "must be a tensor or a scalar")
    return site


def check_cmp_type(site: Site) -> None:
    """Refuse a comparison code outside 0 (eq) to 5 (ge)."""
    code = site.kwargs["cmp_type"]
    if code not in range(6):
        raise site.fault(f"cmp_type is {code}; allowed: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge")


def _cmp(site: Site) -> Type:
    check_cmp_type(site)
    if site.is_scalar(1):
        demand_typed_scalar(site, 1)
        return fresh_tensor(site.tensor(0).shape, _pair_dtype(site))
    return _pair_full(_demand_tensor(site, 1))


def _bits(site: Site) -> Type:
    site.demand_int(0, 1)
    demand_same_shape(site, 0, 1)
    return _pair(site)


def _xor(site: Site) -> Type:
    site.demand_int(0, 1)
    demand_same_shape(site, 0, 1)
    return _pair_full(site)


def _shift(site: Site) -> Type:
    site.demand_int(0, 1)
    demand_same_shape(site, 0, 1)
    lhs = site.tensor(0)
    return fresh_tensor(lhs.shape, lhs.dtype, shared_valid(lhs, site.tensor(1)))


# --- unary -------------------------------------------------------------------------------------


def _unary(site: Site) -> Type:
    return _keep(site)


def _unary_only(*allowed: DType) -> Rule:
    def rule(site: Site) -> Type:
        site.demand_dtype(0, allowed)
        return _keep(site)

    return rule


def _float_result(site: Site) -> Type:
    source = site.tensor(0)
    dtype = FP32 if source.dtype.is_int else source.dtype
    return fresh_tensor(source.shape, dtype, plain_valid(source))


def _recip(site: Site) -> Type:
    check_high_precision(site, site.dtype(0))
    return _float_result(site)


def check_cast(site: Site) -> DType:
    """The target dtype of a cast, after its mode and its being a real conversion are checked."""
    mode, target = site.kwargs["mode"], site.kwargs["target_type"]
    assert isinstance(target, DType)
    if mode not in CAST_MODES and mode not in range(len(CAST_MODES)):
        raise site.fault(f"mode is {mode!r}; allowed: {', '.join(CAST_MODES)}")
    if site.dtype(0) == target:
        raise site.error(0, f"already has dtype {target.name}", hint="drop the cast")
    return target


def _cast(site: Site) -> Type:
    source = site.tensor(0)
    return fresh_tensor(source.shape, check_cast(site), plain_valid(source))


# --- row and column broadcast ------------------------------------------------------------------


def check_row_vector(site: Site) -> None:
    """Refuse a second operand that is not one column for the rows of the first."""
    site.demand_rank_at_least(0, 2)
    wide, narrow = site.shaped(0), site.shaped(1)
    if narrow.rank < 1 or not provably_equal(narrow.shape[-1], 1):
        raise site.error(
            1,
            f"has shape {show_shape(narrow.shape)}; its last dimension must be 1",
            hint="pass one value a row, shape [M, 1]",
        )
    if narrow.rank == wide.rank:
        demand_equal_dim(site, 1, "rows", narrow.shape[-2], wide.shape[-2])


def check_column_vector(site: Site) -> None:
    """Refuse a second operand that is not one row for the columns of the first."""
    site.demand_rank_at_least(0, 2)
    site.demand_rank_at_least(1, 2)
    wide, narrow = site.shaped(0), site.shaped(1)
    if provably_unequal(narrow.shape[-2], 1):
        raise site.error(
            1,
            f"has shape {show_shape(narrow.shape)}; its row count must be 1",
            hint="pass one value a column, shape [1, N]",
        )
    demand_equal_dim(site, 1, "columns", narrow.shape[-1], wide.shape[-1])


def _row_expand(site: Site) -> Type:
    check_row_vector(site)
    return fresh_tensor(site.tensor(0).shape, _pair_dtype(site))


def _row_expand_add(site: Site) -> Type:
    site.demand_same_dtype(0, 1)
    site.demand_dtype(0, ROW_ADD_DTYPES)
    return _row_expand(site)


def _col_expand(site: Site) -> Type:
    check_column_vector(site)
    return fresh_tensor(site.tensor(0).shape, _pair_dtype(site))


def _expands(site: Site) -> Type:
    target = site.tensor(0)
    return fresh_tensor(target.shape, target.dtype)


def _expand_clone(site: Site) -> Type:
    site.demand_rank(0, 3)
    site.demand_rank(1, 3)
    source, target = site.tensor(0), site.tensor(1)
    grown = []
    for axis, (have, want) in enumerate(zip(source.shape, target.shape, strict=True)):
        if provably_equal(have, want):
            continue
        if have != 1:
            raise site.error(
                0,
                f"has extent {show_dim(have)} on axis {axis}, target has {show_dim(want)}; "
                "only extent 1 expands",
            )
        grown.append(axis)
    if len(grown) > 1:
        raise site.error(
            0, f"expands on axes {grown}; at most one axis may expand", hint="expand in two steps"
        )
    return fresh_tensor(target.shape, _pair_dtype(site))


def _declare_pairs() -> None:
    rules: dict[str, tuple[Rule, str | None]] = {
        "add": (_pair, None),
        "sub": (_pair, None),
        "mul": (_pair, None),
        "fmod": (_pair, "tile.fmod"),
        "part_add": (_pair_full, "tile.part_add"),
        "part_mul": (_pair_full, "tile.part_mul"),
        "part_max": (_pair_full, "tile.part_max"),
        "part_min": (_pair_full, "tile.part_min"),
        "and": (_bits, "tile.and"),
        "or": (_bits, "tile.or"),
        "xor": (_xor, None),
        "shl": (_shift, "tile.shl"),
        "shr": (_shift, "tile.shr"),
    }
    for name, (rule, lowers_to) in rules.items():
        declare(f"tensor.{name}", _PAIR, rule, "binary", lowers_to=lowers_to)
    declare("tensor.div", _PAIR, _div, "binary", (HIGH_PRECISION,))
    for name in ("maximum", "minimum"):
        declare(f"tensor.{name}", _MIXED, _mixed, "binary")
    declare("tensor.cmp", _MIXED, _cmp, "cmp", (CMP_TYPE,))


def _declare_scalars() -> None:
    rules: dict[str, Rule] = {
        "adds": _with_scalar,
        "muls": _with_scalar,
        "divs": _with_scalar,
        "fmods": _with_scalar,
        "subs": _subs,
        "ands": _bits_with_scalar,
        "ors": _bits_with_scalar,
        "shls": _shift_scalar,
        "shrs": _shift_scalar,
    }
    for name, rule in rules.items():
        declare(f"tensor.{name}", _WITH_SCALAR, rule, "binary_scalar", lowers_to=f"tile.{name}")
    declare("tensor.xors", _WITH_SCALAR, _xors, "binary_scalar")


def _declare_unary() -> None:
    source = (tensor("input"),)
    plain: dict[str, Callable[[Site], Type]] = {
        "neg": _unary,
        "abs": _unary,
        "not": _unary_only(INT16, UINT16),
        "exp": _float_result,
        "sqrt": _float_result,
        "sin": _unary_only(FP32),
        "cos": _unary_only(FP32),
    }
    for name, rule in plain.items():
        declare(f"tensor.{name}", source, rule, "unary", lowers_to=f"tile.{name}")
    precise = (HIGH_PRECISION,)
    declare("tensor.recip", source, _recip, "unary", precise, lowers_to="tile.recip")
    declare("tensor.rsqrt", source, _float_result, "unary", precise)
    log = _unary_only(FP16, FP32)
    declare("tensor.log", source, log, "unary", precise, lowers_to="tile.log")
    kwargs = (Kwarg("target_type", "dtype"), Kwarg("mode", "any", "round", always=True))
    declare("tensor.cast", source, _cast, "cast", kwargs, lowers_to="tile.cast")


def _declare_broadcasts() -> None:
    for name in ("mul", "div", "sub", "max", "min", "expdif", "add"):
        rule = _row_expand_add if name == "add" else _row_expand
        operands = (tensor("tensor"), tensor("row_vec"))
        op = f"row_expand_{name}"
        declare(f"tensor.{op}", operands, rule, "row_expand", lowers_to=f"tile.{op}")
    for name in ("add", "sub", "mul", "div", "max", "min", "expdif"):
        operands = (tensor("tensor"), tensor("col_vec"))
        op = f"col_expand_{name}"
        declare(f"tensor.{op}", operands, _col_expand, "col_expand", lowers_to=f"tile.{op}")
    row = (tensor("target"), tensor("row_vec"))
    declare("tensor.row_expand", row, _row_expand, "row_expand", lowers_to="tile.row_expand")
    column = (tensor("target"), tensor("col_vec"))
    declare("tensor.col_expand", column, _col_expand, "col_expand", lowers_to="tile.col_expand")
    fill = (tensor("target"), scalar("value"))
    declare("tensor.expands", fill, _expands, "fill", lowers_to="tile.expands")
    declare(
        "tensor.expand_clone",
        (tensor("input"), tensor("target", effect=Effect.WRITE)),
        _expand_clone,
        "misc",
        reuses_input=1,
        channel=Channel.DMA,
        pure=False,
    )


_declare_pairs()
_declare_scalars()
_declare_unary()
_declare_broadcasts()
