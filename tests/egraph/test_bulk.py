"""Terms in the engine's own representation are those of the typed language."""

from __future__ import annotations

import pytest
from egglog import EGraph, eq
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.egraph import bulk
from pypto_egg.egraph.attrs import decode, encode
from pypto_egg.egraph.language import at, binary, dtype, gm, unary, value
from pypto_egg.egraph.snapshot import Snapshot
from pypto_egg.errors import InternalError
from pypto_egg.ir import enums
from pypto_egg.ir.dtype import DTYPES


@pytest.fixture
def egraph() -> EGraph:
    made = EGraph()
    bulk.declare(made)
    return made


def test_a_bulk_term_is_the_typed_term(egraph):
    x = bulk.node("tensor.gm", "x", 0)
    total = bulk.node("tensor.binary", "tensor.add", "", x, bulk.node("tensor.value", 3))
    name = bulk.node("tensor.value", 7)
    bulk.run(egraph, [bulk.equal(name, total)])
    egraph.check(eq(value(7)).to(binary("tensor.add", "", gm("x", 0), value(3))))
    egraph.check_fail(eq(value(7)).to(value(3)))


def test_a_bulk_fact_is_the_typed_fact(egraph):
    x = bulk.node("tensor.gm", "x", 0)
    bulk.run(egraph, [bulk.fact("at", x, 4), bulk.assign("dtype", x, "FP16")])
    egraph.check(at(gm("x", 0), 4))
    egraph.check_fail(at(gm("x", 0), 5))
    egraph.check(eq(dtype(gm("x", 0))).to("FP16"))


@given(extents=st.lists(st.integers(1, 99) | st.sampled_from(["n", "m * 2"]), max_size=4))
def test_vectors_of_extents_are_read_out_as_they_were_put_in(extents):
    made = EGraph()
    bulk.declare(made)
    terms = [
        bulk.node("index", e) if isinstance(e, int) else bulk.node("index.sym", e) for e in extents
    ]
    x = bulk.node("tensor.gm", "x", 0)
    bulk.run(made, [bulk.mention(x), bulk.assign("lead", x, bulk.vector(terms))])
    snapshot = Snapshot(made)
    ((cls, _),) = snapshot.rows("lead")
    assert snapshot.indices(cls) == tuple(extents)


def test_a_snapshot_has_every_node_of_a_class(egraph):
    egraph.register(unary("tensor.neg", "", value(1)), value(2))
    bulk.run(
        egraph,
        [bulk.equal(bulk.node("tensor.value", 2),
                    bulk.node("tensor.unary", "tensor.neg", "", bulk.node("tensor.value", 1)))],
    )  # fmt: skip
    snapshot = Snapshot(egraph)
    ((cls, node),) = snapshot.rows("tensor.unary")
    assert {other.op for other in snapshot.classes[cls]} == {"tensor.unary", "tensor.value"}
    assert snapshot.string(node.children[0]) == "tensor.neg"
    (operand,) = snapshot.nodes(node.children[2], "tensor.value")
    assert snapshot.integer(operand.children[0]) == 1


def test_an_index_without_a_value_is_our_own_fault(egraph):
    egraph.register(gm("x", 0))
    snapshot = Snapshot(egraph)
    ((cls, _),) = snapshot.rows("tensor.gm")
    with pytest.raises(InternalError, match="neither a value nor a key"):
        snapshot.index(cls)


ENUMS = (enums.Mem, enums.TileLayout, enums.PadValue, enums.CompactMode, enums.TensorLayout)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.sampled_from(sorted(DTYPES.values(), key=lambda d: d.name))
    | st.one_of(*(st.sampled_from(list(kind)) for kind in ENUMS))
)  # fmt: skip


@given(kwargs=st.dictionaries(st.text(min_size=1), VALUES, max_size=5))
def test_keyword_arguments_survive_the_e_graph(kwargs):
    again = decode(encode(kwargs))
    assert again == kwargs
    assert {k: type(v) for k, v in again.items()} == {k: type(v) for k, v in kwargs.items()}
    assert list(again) == list(kwargs)


def test_a_keyword_value_that_has_no_text_is_our_own_fault():
    with pytest.raises(InternalError, match="no place in the e-graph"):
        encode({"shape": (1, 2)})
