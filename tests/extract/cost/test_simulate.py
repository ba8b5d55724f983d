"""The simulation of kernels, held against the recurrence of pto-isa's simulator written out."""

from __future__ import annotations

from itertools import pairwise
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.simulate import simulate
from pypto_egg.target import load_target

A2A3 = load_target("a2a3")
RATE = {"gm": 135 * 2**30 / 1.85e9, "left": 441 * 2**30 / 1.85e9, "right": 220.5 * 2**30 / 1.85e9,
        "out": 70 * 2**30 / 1.85e9}  # fmt: skip


def recurrence(g):
    """(total, busy cycles by pipe) of a GEMM whose extents are multiples of its tiles.

    Written with the fills of each buffer numbered: fill i waits for the release of fill i - d.
    """
    load_a = floor(2 * g.tm * g.kp / RATE["gm"])
    load_b = floor(2 * g.kp * g.tn / RATE["gm"])
    left = 1 + floor(2 * g.tm * g.tk / RATE["left"])
    right = 1 + floor(2 * g.tk * g.tn / RATE["right"])
    cube = 6 + (g.tm // 16) * (g.tk // 16) * (g.tn // 16)
    drain = 1 + floor(2 * g.tm * g.tn / RATE["out"])
    l0 = g.l0 if g.l0 > 1 else g.l1  # a plain loop within a pipeline is replicated with its body
    start = 2 * g.l1 + 2 * l0 + 1  # one cycle for each buffer that is bound
    mte2 = mte1 = matmul = fix = start
    freed_l1 = {"a": [], "b": []}
    freed_l0 = {"a": [], "b": []}

    def room(freed, depth):
        return freed[-depth] if len(freed) >= depth else 0

    for _ in range((g.m // g.tm) * (g.n // g.tn)):
        drained = fix
        for _ in range(g.k // g.kp):
            mte2 = max(mte2, room(freed_l1["a"], g.l1)) + load_a
            have_a = mte2
            mte2 = max(mte2, room(freed_l1["b"], g.l1)) + load_b
            have_b = mte2
            for _ in range(g.kp // g.tk):
                mte1 = max(mte1, have_a, room(freed_l0["a"], l0)) + left
                in_left = mte1
                mte1 = max(mte1, have_b, room(freed_l0["b"], l0)) + right
                matmul = max(matmul, in_left, mte1, drained) + cube
                freed_l0["a"].append(matmul)
                freed_l0["b"].append(matmul)
            freed_l1["a"].append(in_left)
            freed_l1["b"].append(mte1)
        fix = max(fix, matmul) + drain
    tiles = (g.m // g.tm) * (g.n // g.tn)
    panels, steps = tiles * g.k // g.kp, tiles * g.k // g.tk
    busy = {
        "mte2": panels * (load_a + load_b),
        "mte1": steps * (left + right),
        "cube": steps * cube,
        "fixpipe": tiles * drain,
    }
    return max(mte2, mte1, matmul, fix), busy


@st.composite
def blockings(draw):
    small = st.integers(1, 3)
    tm, tn = 16 * draw(st.integers(1, 8)), 16 * draw(st.integers(1, 8))
    tk = 16 * draw(st.integers(1, 4))
    kp = tk * draw(small)
    sizes = (tm * draw(small), tn * draw(small), kp * draw(small))
    return (*sizes, tm, tn, tk, kp, draw(st.integers(1, 3)), draw(st.integers(1, 3)))


@settings(max_examples=40)
@given(blocking=blockings())
def test_a_gemm_takes_what_the_recurrence_says(gemm, blocking):
    g = gemm(*blocking)
    found = simulate(g.program, A2A3, "flat")
    total, busy = recurrence(g)
    assert found.total_cycles == total
    assert {queue: cycles for queue, cycles in found.busy.items() if cycles} == busy


@settings(max_examples=15)
@given(blocking=blockings(), constants=st.sampled_from(["flat", "hill", "pypto", "device"]))
def test_queues_are_in_order_and_bound_the_total(gemm, blocking, constants):
    found = simulate(gemm(*blocking).program, A2A3, constants)
    for queue, busy in found.busy.items():
        events = found.of(queue)
        assert all(a.end <= b.start + 1e-6 for a, b in pairwise(events))
        assert sum(e.end - e.start for e in events) == pytest.approx(busy)
        assert busy <= found.total_cycles
    begin = min(event.start for event in found.events)
    assert found.total_cycles - begin <= sum(found.busy.values()) + 1e-6


@settings(max_examples=15)
@given(blocking=blockings(), constants=st.sampled_from(["pypto", "device"]))
def test_one_more_buffer_never_slows_a_kernel(gemm, blocking, constants):
    """Binding a buffer takes a cycle in the flat set only. A plain loop in a pipeline of L1 panels
    has as many buffers as that."""
    sizes, (l1, l0) = blocking[:7], blocking[7:]
    deeper = (l0 if l0 > 1 else l1) + 1
    fewer = simulate(gemm(*sizes, l1, l0).program, A2A3, constants).total_cycles
    for more in ((l1 + 1, l0), (l1, deeper)):
        assert simulate(gemm(*sizes, *more).program, A2A3, constants).total_cycles <= fewer + 1e-6


def kernel(body, params="x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"):
    lines = "\n".join("        " + line for line in body.strip("\n").split("\n"))
    return pypto_egg.parse(
        f"""# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f({params}) -> pl.Tensor[[64, 64], pl.FP32]:
{lines}
        return r
"""
    )


STORE = "r: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store({}, [0, 0], y)"


def names(found):
    return [(event.queue, event.name) for event in found.events]


def test_a_chain_of_vector_operations_waits_for_its_load_and_the_store_for_it():
    found = simulate(
        kernel(
            "a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n"
            "b = pl.tile.exp(a)\n" + STORE.format("b")
        ),
        A2A3,
        "flat",
    )
    assert names(found) == [
        ("mte2_aiv", "tile.load"),
        ("vector", "tile.exp"),
        ("mte3", "tile.store"),
    ]
    load, exp, store = found.events
    assert load.start == 2  # two buffers are bound
    assert (exp.start, store.start) == (load.end, exp.end)
    assert found.total_cycles == store.end


def test_independent_loads_and_products_overlap():
    """The second load runs while the first is worked on."""
    found = simulate(
        kernel(
            "a = pl.tile.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
            "b = pl.tile.exp(a)\n"
            "c = pl.tile.load(x, [32, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
            "d = pl.tile.add(b, c)\n" + STORE.format("d")
        ),
        A2A3,
        "flat",
    )
    first, exp, second, add, _ = found.events
    assert second.start == first.end == exp.start
    assert add.start == max(exp.end, second.end)


def test_a_loop_that_needs_data_runs_a_stated_number_of_times():
    found = simulate(
        kernel(
            "a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n"
            "for i, (t,) in pl.range(0, n, 1, init_values=(a,)):\n"
            "    u: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(t)\n"
            "    v: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(u)\n" + STORE.format("v"),
            "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 64], pl.FP32], "
            "y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]",
        ),
        A2A3,
    )
    assert found.assumed == ("a loop of unknown length runs 8 times",)
    assert len(found.of("vector")) == 8


BRANCH = """
a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
if {}:
    b: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(a)
    c: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(b)
else:
    d: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.muls(a, 2.0)
    c: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(d)
"""


def branch(condition):
    params = (
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 64], pl.FP32], "
        "y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
    )
    return simulate(kernel(BRANCH.format(condition) + STORE.format("c"), params), A2A3)


def test_of_a_branch_the_arm_runs_that_is_taken_and_both_if_that_is_not_known():
    unknown = branch("n > 3")
    assert [e.name for e in unknown.of("vector")] == ["tile.exp", "tile.muls"]
    assert unknown.assumed == ("both arms of a branch run whose condition is not known",)


def test_a_load_waits_for_the_store_to_the_same_place_only():
    """Rows 0..32 are written and read back; rows 32..64 are read without waiting."""
    found = simulate(
        kernel(
            "a = pl.tile.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
            "w: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store(a, [0, 0], y)\n"
            "b = pl.tile.load(w, [32, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
            "c = pl.tile.load(w, [16, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
            "d = pl.tile.add(b, c)\n"
            "r: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store(d, [0, 0], w)",
            "x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]",
        ),
        A2A3,
        "flat",
    )
    load, store, other, same, _, _ = found.events
    assert other.start == load.end < store.end
    assert same.start >= store.end


def test_what_uses_a_scalar_waits_for_it():
    found = simulate(
        kernel(
            "a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n"
            "b = pl.tile.exp(a)\n"
            "s: pl.Scalar[pl.FP32] = pl.tile.read(b, [0, 0])\n"
            "c = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n"
            "d = pl.tile.muls(c, s)\n" + STORE.format("d")
        ),
        A2A3,
    )
    by_name = {event.name: event for event in found.events}
    assert by_name["tile.read"].start == by_name["tile.exp"].end
    assert by_name["tile.muls"].start >= by_name["tile.read"].end


PRODUCT = """
a = pl.tile.load(x, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)
b = pl.tile.load(w, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)
c = pl.tile.matmul(a, b)
r: pl.Tensor[[{m}, {n}], pl.FP32] = pl.tile.store(c, [0, 0], y)
"""


@settings(max_examples=20)
@given(
    st.integers(1, 160), st.integers(1, 16).map(lambda n: 16 * n), st.integers(1, 300),
    st.sampled_from(["flat", "pypto", "device"]),
)  # fmt: skip
def test_a_product_with_operands_in_l1_is_cut_for_l0(m, n, k, constants):
    """All of both operands moves at least once, every fractal is multiplied once, and loading and
    multiplying overlap."""
    k = -(-k // 16) * 16
    text = PRODUCT.format(m=m, n=n, k=k).strip("\n").replace("\n", "\n        ")
    program = pypto_egg.parse(
        f"""# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[{m}, {k}], pl.FP16], w: pl.Tensor[[{k}, {n}], pl.FP16],
          y: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]) -> pl.Tensor[[{m}, {n}], pl.FP32]:
        {text}
        return r
"""
    )
    found = simulate(program, A2A3, constants)
    cube, mte1 = found.of("cube"), found.of("mte1")
    fractals = -(-m // 16) * (n // 16) * (k // 16)
    head = {"flat": 6, "pypto": 21, "device": A2A3.device_law.issue_cycles}[constants]
    assert found.busy["cube"] == pytest.approx(fractals + head * len(cube))
    assert len(mte1) >= 2
    assert found.busy["mte1"] >= 2 * n * k / 128
    if len(cube) > 2:
        assert cube[-1].end - mte1[0].start < found.busy["cube"] + found.busy["mte1"]


@pytest.mark.parametrize(("size", "flat_share"), [(1536, 0.69), (3072, 0.96), (6144, 1.04)])
def test_flat_constants_give_the_published_share_of_the_device_time(size, flat_share, data_folder):
    """pto-isa's own simulator, flat mode, bundled schedule: total / measured of its GEMMs."""
    measured = {1536: 71780, 3072: 382395, 6144: 2786100}[size]
    program = pypto_egg.parse_file(data_folder / "gemm_a2a3" / f"gemm_{size}.py.txt")
    found = simulate(program, A2A3, "flat", cores=24)
    assert found.total_cycles / measured == pytest.approx(flat_share, abs=0.006)


def test_bad_requests_are_refused():
    tile = kernel(
        "a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n" + STORE.format("a")
    )
    with pytest.raises(OptionError, match="no constants 'fast'"):
        simulate(tile, A2A3, "fast")
    with pytest.raises(OptionError, match="a5 has no constants 'flat'"):
        simulate(tile, "a5", "flat")
    with pytest.raises(OptionError, match="does not have a kernel 'g'") as caught:
        simulate(tile, A2A3, function="g")
    assert "its kernels are: f" in str(caught.value)
    with pytest.raises(OptionError, match="cores is 0"):
        simulate(tile, A2A3, cores=0)
    tensors = kernel("r: pl.Tensor[[64, 64], pl.FP32] = pl.tensor.exp(x)")
    with pytest.raises(LoweringError, match=r"tensor\.exp cannot be simulated"):
        simulate(tensors, A2A3)


def test_an_operand_where_the_cube_cannot_read_it_is_the_programs_fault():
    program = kernel(
        "a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\n"
        "b: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(a, a)\n" + STORE.format("b")
    )
    with pytest.raises(LoweringError, match=r"tile\.matmul cannot be simulated.*Vec"):
        simulate(program, A2A3)


TURNS = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(
        self, a: pl.Tensor[[128, 64], pl.FP16], b: pl.Tensor[[64, 1024], pl.FP16],
        o: pl.Out[pl.Tensor[[128, 1024], pl.FP32]],
    ) -> pl.Tensor[[128, 1024], pl.FP32]:
        x: pl.Tile[[128, 64], pl.FP16, pl.Mem.Mat] = pl.tile.load(
            a, [0, 0], [128, 64], [128, 64], target_memory=pl.Mem.Mat)
        y: pl.Tile[[64, 1024], pl.FP16, pl.Mem.Mat] = pl.tile.load(
            b, [0, 0], [64, 1024], [64, 1024], target_memory=pl.Mem.Mat)
        l: pl.Tile[[128, 64], pl.FP16, pl.Mem.Left] = pl.tile.extract(
            x, 0, 0, [128, 64], target_memory=pl.Mem.Left)
        for n, (w,) in pl.pipeline(0, 1024, 256, stage=2, init_values=(o,)):
            r: pl.Tile[[64, 256], pl.FP16, pl.Mem.Right] = pl.tile.extract(
                y, 0, n, [64, 256], target_memory=pl.Mem.Right)
            c: pl.Tile[[128, 256], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(l, r)
            s: pl.Tensor[[128, 1024], pl.FP32] = pl.tile.store(c, [0, n], w)
            z: pl.Tensor[[128, 1024], pl.FP32] = pl.yield_(s)
        return z
"""


def test_two_accumulators_take_turns_only_where_l0c_has_room_for_both():
    """128 x 256 FP32 fill L0C of a2a3, so that each product waits for the drain before it."""
    program = pypto_egg.parse(TURNS)
    alone = simulate(program, A2A3).total_cycles
    room = A2A3.with_(**{"memory.Acc.usable_bytes": 2 * 131072})
    assert simulate(program, room).total_cycles < alone
