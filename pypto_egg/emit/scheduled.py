"""The statements of a recipe whose product has an L0 schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pypto_egg.egraph.recipes import Recipe
from pypto_egg.emit.l0_nest import Begin, Nest, assembled, stored
from pypto_egg.emit.names import Names
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.stmt import Assign, Block
from pypto_egg.l0.schedule import OPERANDS

Substituted = Callable[[Call, Mapping[Var, Expr]], Call]
"""A call of the recipe over emitted tiles, given what stands for the recipe's own results."""


def stored_by_tiles(
    recipe: Recipe, store: Call, result: Var, of: Substituted, names: Names
) -> Block:
    """The loops of a product whose tiles are stored as they are made; `result` is all of it."""
    whole = store.args[2]
    assert isinstance(whole, Var)
    return _nest(recipe, of, result.name, names).leaving(whole, stored(store), result)


def scheduled_tile(recipe: Recipe, name: str, of: Substituted, names: Names) -> tuple[Var, Block]:
    """The tile that a scheduled recipe makes, and the statements that make it.

    Args:
        name: the source name of the tile.
    """
    last = recipe.steps[-1]
    result = Var(names.fresh(name, last.role), last.call.type)
    product, *others = recipe.steps
    nest = _nest(recipe, of, result.name, names)
    if not others:
        return result, nest.sum(result, _begin(of(product.call, {})))
    storage, filled, *narrowed = others
    whole = Var(names.fresh(name, storage.role), storage.call.type)
    created = Assign(whole, of(storage.call, {}))
    if not narrowed:
        return result, (created, *nest.leaving(whole, assembled, result))
    full = Var(names.fresh(name, filled.role), filled.call.type)
    statements = nest.leaving(whole, assembled, full)
    call = of(narrowed[0].call, {filled.var: full})
    return result, (created, *statements, Assign(result, call))


def _nest(recipe: Recipe, of: Substituted, label: str, names: Names) -> Nest:
    assert recipe.schedule is not None
    call = of(recipe.steps[0].call, {})
    left, right = (call.args[at] for at in OPERANDS[call.op])
    assert isinstance(left, Var)
    assert isinstance(right, Var)
    return Nest(left, right, recipe.schedule, label, names.unique)


def _begin(product: Call) -> Begin:
    """What the sum of a product starts from."""
    if product.op == "tile.matmul":
        return Begin()
    given = product.args[2 if product.op == "tile.matmul_bias" else 0]
    assert isinstance(given, Var)
    if product.op == "tile.matmul_bias":
        return Begin(bias=given)
    return Begin(acc=given, first=product.args[3] if len(product.args) > 3 else None)
