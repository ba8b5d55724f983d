"""Cost vectors and the registry of cost models."""

import doctest
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.errors import InternalError, OptionError
from pypto_egg.extract import Problem
from pypto_egg.extract.bottleneck import bottleneck
from pypto_egg.extract.cost import (
    PIPES,
    CostModel,
    CostVector,
    OpInstance,
    cost_model,
    cost_model_names,
    register_cost_model,
)
from pypto_egg.ir.types import UnknownType
from pypto_egg.target import load_target

cycles = st.integers(0, 10**6).map(float)
vectors = st.builds(CostVector, *[cycles] * len(PIPES))


@given(vectors, vectors, st.integers(0, 100))
def test_vectors_add_and_scale_pipe_by_pipe(one, two, times):
    total = one + two * times
    for pipe in PIPES:
        assert getattr(total, pipe) == getattr(one, pipe) + times * getattr(two, pipe)
    assert one * times == times * one
    assert one + two == two + one


@given(vectors)
def test_total_is_the_sum_over_the_pipes(vector):
    assert vector.total == sum(vector.by_pipe().values())
    assert list(vector.by_pipe()) == list(PIPES)


def test_a_negative_cost_is_refused():
    with pytest.raises(InternalError, match=r"a cost of -1\.0 cycles on cube"):
        CostVector(cube=-1.0)
    with pytest.raises(InternalError, match="a cost of nan cycles on mte2"):
        CostVector(mte2=float("nan"))
    with pytest.raises(InternalError):
        CostVector(cube=1.0) * -1


class Flat(CostModel):
    """One scalar cycle for everything."""

    name: ClassVar[str] = "flat-for-tests"

    def price(self, op, target):
        return CostVector(scalar=1.0)


def test_the_document_runs():
    path = Path(__file__).resolve().parents[3] / "docs" / "cost.md"
    found = doctest.testfile(str(path), module_relative=False)
    assert found.attempted >= 9
    assert found.failed == 0


def test_a_registered_model_is_found_by_name():
    assert register_cost_model(Flat) is Flat
    assert register_cost_model(Flat) is Flat
    assert "flat-for-tests" in cost_model_names()
    model = cost_model("flat-for-tests")
    op = OpInstance("tile.exp", (), {}, UnknownType())
    assert model.price(op, load_target("a2a3")).total == 1


@given(st.lists(vectors))
def test_a_kernel_costs_the_serial_sum_unless_the_model_folds_otherwise(kernel):
    assert Flat().fold(kernel) == sum(vector.total for vector in kernel)
    assert (Flat.objective, Flat.not_overlapped) == ("serial", ())


@given(st.lists(vectors, min_size=1))
def test_a_roofline_is_the_busiest_pipe_plus_the_scalar_unit(kernel):
    roofline = cost_model("roofline")
    busy = {pipe: sum(getattr(v, pipe) for v in kernel) for pipe in PIPES}
    scalar = busy.pop("scalar")
    assert roofline.fold(kernel) == max(busy.values()) + scalar
    assert roofline.fold(kernel) <= Flat().fold(kernel)


@given(st.lists(vectors, min_size=1, max_size=4))
def test_the_objective_that_a_model_names_is_its_fold(kernel):
    """One class a vector, all of them roots: the only selection costs what the model folds."""
    model = cost_model("roofline")
    problem = Problem(
        node_class=range(len(kernel)),
        node_children=[[]] * len(kernel),
        node_cost=np.array([v.total for v in kernel]),
        node_vector=np.array([list(v.by_pipe().values()) for v in kernel]),
        pipes=PIPES,
        roots=range(len(kernel)),
    )
    choice = {i: i for i in range(len(kernel))}
    assert bottleneck(choice, problem, model.not_overlapped) == model.fold(kernel)


def test_an_instance_is_its_own_model():
    flat = Flat()
    assert cost_model(flat) is flat


def test_an_unknown_model_lists_the_names():
    with pytest.raises(OptionError, match="no cost model 'mte2_made'") as caught:
        cost_model("mte2_made")
    assert "mte2_mad" in str(caught.value)


def test_two_models_of_one_name_are_refused():
    class Impostor(Flat):
        name: ClassVar[str] = "mte2_mad"

    assert "mte2_mad" in cost_model_names()
    with pytest.raises(OptionError, match="cost model 'mte2_mad' is registered twice"):
        register_cost_model(Impostor)
