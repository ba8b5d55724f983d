"""What whole kernels cost: trip counts in additive models, products inside simulated ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg
from pypto_egg.errors import LoweringError
from pypto_egg.extract.cost import OpInstance, cost_model, cost_model_names
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.simulate import kernel_of, simulate
from pypto_egg.ir.enums import Mem
from pypto_egg.target import load_target

A2A3 = load_target("a2a3")


def kernel(body, params, result="pl.Tensor[[64, 64], pl.FP32]"):
    lines = "\n".join("        " + line for line in body.strip("\n").split("\n"))
    program = pypto_egg.parse(
        f"""# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f({params}) -> {result}:
{lines}
        return r
"""
    )
    return kernel_of(program)


VECTOR = (
    "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 64], pl.FP32], "
    "y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
)
NEST = """
a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
for i, (t,) in pl.range(0, 3, 1, init_values=(a,)):
    for j, (u,) in pl.range(0, {inner}, 1, init_values=(t,)):
        v: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(u)
        w: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(v)
    z: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(w)
r: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store(z, [0, 0], y)
"""


def instance(call):
    return OpInstance(call.op, tuple(a.type for a in call.args), dict(call.kwargs), call.type)


@pytest.mark.parametrize(("inner", "trips"), [("5", 15), ("n", 24), ("0", 0)])
def test_a_call_counts_as_often_as_its_loops_run(inner, trips):
    """A loop of unknown length counts 8 times."""
    found = kernel(NEST.format(inner=inner), VECTOR)
    assert [(call.op, times) for call, times in executed_calls(found)] == [
        ("tile.load", 1),
        ("tile.exp", trips),
        ("tile.store", 1),
    ]


@given(st.integers(0, 20), st.sampled_from(["mte2_mad", "pypto_l0", "roofline"]))
@settings(max_examples=20)
def test_an_additive_kernel_is_the_fold_of_its_calls(inner, name):
    model, nest = cost_model(name), kernel(NEST.format(inner=inner), VECTOR)
    found = model.kernel_cost(nest, A2A3)(A2A3)
    vectors = [times * model.price(instance(call), A2A3) for call, times in executed_calls(nest)]
    assert found["cycles"] == pytest.approx(model.fold(vectors))
    assert found["vector"] == pytest.approx(sum(v.vector for v in vectors))


def test_a_simulated_kernel_is_its_timeline_and_is_timed_again_on_other_constants():
    nest = kernel(NEST.format(inner="2"), VECTOR)
    cost = cost_model("schedule").kernel_cost(nest, A2A3)
    timeline = simulate(nest, A2A3, "device")
    assert cost(A2A3) == {"cycles": timeline.total_cycles, **timeline.busy}
    for key in ("schedule.device.launch_cycles", "gm.burst_overhead_bytes"):
        other = A2A3.with_(**{key: 100.0})
        assert cost(other)["cycles"] == simulate(nest, other, "device").total_cycles
        assert cost(other)["cycles"] != cost(A2A3)["cycles"]


@pytest.mark.parametrize("name", ["mte2_mad", "pypto_l0", "roofline", "schedule"])
def test_tensor_operations_have_no_price(name):
    tensors = kernel("r: pl.Tensor[[64, 64], pl.FP32] = pl.tensor.exp(x)", VECTOR)
    with pytest.raises(LoweringError, match=r"tensor\.exp"):
        cost_model(name).kernel_cost(tensors, A2A3)(A2A3)


def test_all_models_are_registered():
    assert {"mte2_mad", "pypto_l0", "roofline", "schedule"} <= set(cost_model_names())


MATRIX = (
    "x: pl.Tensor[[64, 128], pl.FP16], w: pl.Tensor[[128, 64], pl.FP16], "
    "q: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
)
LOADS = """
a = pl.tile.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Mat)
b = pl.tile.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
"""
STORE = "\nr: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store(c, [0, 0], y)"


def queues(body, constants="flat"):
    found = simulate(kernel(LOADS + body + STORE, MATRIX), A2A3, constants)
    return found, [event.queue for event in found.events]


@pytest.mark.parametrize("constants", ["flat", "pypto", "device"])
def test_an_operand_in_l0_is_not_moved_again(constants):
    both, _ = queues("c = pl.tile.matmul(a, b)", constants)
    one, _ = queues(
        "e = pl.tile.move(a, target_memory=pl.Mem.Left)\nc = pl.tile.matmul(e, b)", constants
    )
    moves = [event.name for event in one.of("mte1")]
    assert moves.count("tile.move") == 1
    assert one.busy["mte1"] == pytest.approx(both.busy["mte1"])
    assert one.busy["cube"] == both.busy["cube"]


def test_a_bias_in_l1_is_moved_once_and_before_the_product():
    found, order = queues(
        "p = pl.tile.load(q, [0, 0], [1, 64], target_memory=pl.Mem.Mat)\n"
        "c = pl.tile.matmul_bias(a, b, p)"
    )
    bias = 4 * 64 // A2A3.bytes_per_cycle(Mem.Mat, Mem.Bias)
    first = found.of("mte1")[0]
    assert first.end - first.start == bias
    assert order.index("mte1") < order.index("cube")
