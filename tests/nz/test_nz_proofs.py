"""Proofs of alignment and sign: every form of the table, and every way to fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import InternalError
from pypto_egg.interp.scalars import evaluate
from pypto_egg.ir.dtype import INDEX, INT32
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import BinOp, ConstInt, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, For
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import walk
from pypto_egg.nz.proofs import PROVABLE_FORMS, Proofs
from pypto_egg.text import parse

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, p: pl.Scalar[pl.INDEX], x: pl.InOut[pl.Tensor[[64], pl.INT32]]):
"""


def proofs_of(body):
    """The proofs of a function and its scalar variables by name; the last one of a name counts."""
    text = HEAD + "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    function = parse(text).functions[0]
    named = {param.var.name: param.var for param in function.params}
    for stmt in walk(function.body):
        if isinstance(stmt, Assign):
            named[stmt.var.name] = stmt.var
        if isinstance(stmt, For):
            named[stmt.var.name] = stmt.var
            named.update((var.name, var) for var in (*stmt.iter_args, *stmt.results))
    return Proofs(function), named


def proven(body, name, divisor):
    """Whether (multiple of divisor, non-negative) hold of the variable `name`."""
    proofs, named = proofs_of(body)
    return proofs.is_multiple(named[name], divisor), proofs.non_negative(named[name])


IN_LOOP = "for nb in pl.range(0, 8, 1):\n    "


@pytest.mark.req("N-061", "N-062", "N-063", "N-090", "N-091")
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("nb * 256", (True, True)),
        ("256 * nb", (True, True)),
        ("nb * 10", (False, True)),
        ("nb * 8", (False, True)),
        ("(nb * 8) * 2", (False, True)),  # some one factor must be a multiple
        ("nb * -16", (True, False)),
        ("p * 256", (True, False)),
    ],
)
def test_assigned_products(value, holds):
    assert proven(f"{IN_LOOP}n0 = {value}\n    pl.tensor.write(x, [n0], 1)", "n0", 16) == holds


@pytest.mark.req("N-064")
@pytest.mark.parametrize(
    ("loop", "divisor", "holds"),
    [
        ("pl.pipeline(512, 4096, 512, stage=2)", 32, (True, True)),
        ("pl.range(8, 4096, 512)", 32, (False, True)),
        ("pl.range(0, 4096, 8)", 16, (False, True)),
        ("pl.range(-512, 4096, 512)", 32, (True, False)),
        ("pl.range(512, 0, -512)", 32, (True, False)),
        ("pl.parallel(0, 64, 16)", 16, (True, True)),
    ],
)
def test_loops_of_constant_start_and_step(loop, divisor, holds):
    body = f"for k0 in {loop}:\n    pl.tensor.write(x, [k0], 1)"
    assert proven(body, "k0", divisor) == holds


@pytest.mark.req("N-065", "N-067")
def test_loops_of_symbolic_start():
    body = """
core = pl.tile.get_block_idx()
for ob in pl.range(core, 100, 24):
    o0 = ob * 256
    pl.tensor.write(x, [o0], 1)
"""
    assert proven(body, "ob", 16) == (False, True)
    assert proven(body, "o0", 16) == (True, True)
    body = body.replace("core, 100", "p, 100")
    assert proven(body, "o0", 16) == (True, False)


@pytest.mark.req("N-065")
def test_step_of_a_loop_may_be_symbolic():
    body = """
count = pl.tile.get_block_num()
stride = count * 32
for o0 in pl.range(0, 4096, stride):
    pl.tensor.write(x, [o0], 1)
"""
    assert proven(body, "o0", 32) == (True, True)
    assert proven(body, "o0", 64) == (False, True)


@pytest.mark.req("N-066")
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("pl.min(800 - o0, 256)", (True, False)),
        ("pl.min(o0, 256)", (True, True)),
        ("pl.min(o0, 250)", (False, True)),
        ("pl.max(o0 - 32, 0)", (True, True)),
        ("pl.max(p, 0)", (False, True)),
        ("pl.max(p * 16, -16)", (True, False)),
    ],
)
def test_min_and_max(value, holds):
    body = f"for o0 in pl.range(0, 800, 16):\n    n = {value}\n    pl.tensor.write(x, [n], 1)"
    assert proven(body, "n", 16) == holds


@pytest.mark.req("N-067")
@pytest.mark.parametrize("query", ["get_block_idx", "get_block_num"])
def test_lane_numbers_are_not_negative(query):
    body = f"blk = pl.tile.{query}()\nn0 = blk * 16\npl.tensor.write(x, [n0], 1)"
    assert proven(body, "blk", 2) == (False, True)
    assert proven(body, "n0", 16) == (True, True)


@pytest.mark.req("N-068", "N-072")
@pytest.mark.parametrize("op", ["%", "//"])
def test_remainders_and_quotients_of_non_negative_numbers(op):
    body = f"blk = pl.tile.get_block_idx()\nn0 = (blk {op} 2) * 512\npl.tensor.write(x, [n0], 1)"
    assert proven(body, "n0", 512) == (True, True)
    # Of a dividend of unknown sign nothing is used, although a floor remainder is never negative.
    assert proven(body.replace("blk %", "p %").replace("blk //", "p //"), "n0", 16) == (True, False)
    # The divisor must be a positive constant.
    for divisor in ("p", "-2"):
        assert proven(body.replace(f"{op} 2", f"{op} {divisor}"), "n0", 16) == (True, False)
    # The quotient of a multiple is no multiple.
    body = f"n1 = 512\nn0 = (n1 * p) {op} 16\npl.tensor.write(x, [n0], 1)"
    assert proven(body, "n0", 2) == (False, False)


@pytest.mark.req("N-069", "N-082")
@pytest.mark.parametrize(
    ("value", "holds"),
    [(512, (True, True)), (520, (False, True)), (-16, (True, False)), (0, (True, True))],
)
def test_constants_and_names_of_constants(value, holds):
    proofs, named = proofs_of(f"n0 = {value}\npl.tensor.write(x, [n0], 1)")
    for expr in (value, ConstInt(value), named["n0"]):
        assert (proofs.is_multiple(expr, 16), proofs.non_negative(expr)) == holds


@pytest.mark.req("N-070", "N-071", "N-092")
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("n0 + 64", (True, True)),
        ("n0 + 8", (False, True)),
        ("n0 * nb + n0", (True, True)),
        ("n0 - 256", (True, False)),
        ("(nb - 1) * 256", (True, False)),
        ("-n0", (True, False)),
    ],
)
def test_sums_products_and_differences(value, holds):
    body = f"{IN_LOOP}n0 = nb * 256\n    n1 = {value}\n    pl.tensor.write(x, [n1], 1)"
    assert proven(body, "n1", 16) == holds


@pytest.mark.req("N-075", "N-076")
def test_what_is_never_resolved():
    body = """
m = pl.tensor.read(x, [0])
for i, (off,) in pl.range(0, 4, 1, init_values=(0,)):
    nxt = off + 16
    last = pl.yield_(nxt)
after = last + 0
pl.tensor.write(x, [after], 1)
"""
    for name in ("p", "m", "off", "nxt", "last", "after"):
        assert proven(body, name, 16) == (False, False)
    proofs, named = proofs_of(body)
    assert "'off' is a value carried by a loop" in proofs.unproven_multiple(named["nxt"], 16)
    assert "'last' is the result of a loop" in proofs.unproven_sign(named["after"])
    assert "'p' is a parameter" in proofs.unproven_sign(named["p"])
    assert "tensor.read" in proofs.unproven_multiple(named["m"], 16)


@pytest.mark.req("N-075")
def test_the_reason_names_the_part_that_fails():
    body = """
for nb in pl.range(0, 8, 1):
    n0 = nb * 10
    n1 = n0 + 32
    n2 = n1 - 16
    n3 = pl.max(n2, p)
    pl.tensor.write(x, [n3], 1)
"""
    proofs, named = proofs_of(body)
    reason = proofs.unproven_multiple(named["n1"], 16)
    assert reason == "in 'n1', from 'n0': no factor of (nb * 10) is provably such a multiple"
    assert "(n1 - 16) is a difference" in proofs.unproven_sign(named["n2"])
    assert "neither side of max(n2, p)" in proofs.unproven_sign(named["n3"])
    assert "there is the constant 40" in proofs.unproven_multiple(
        BinOp("+", ConstInt(40), named["p"], INDEX), 16
    )
    assert len(PROVABLE_FORMS) == 7


@pytest.mark.req("N-080")
def test_only_powers_of_two_are_proven():
    proofs, _ = proofs_of("pl.tensor.write(x, [0], 1)")
    for divisor in (8, 16, 32):
        assert proofs.is_multiple(divisor * 3, divisor)
    for divisor in (24, 0, -16):
        with pytest.raises(InternalError, match="wrap-around"):
            proofs.is_multiple(48, divisor)
    assert proofs.known_divisor(48) == 16


@pytest.mark.req("N-078", "N-079", "N-080")
def test_constants_wrap_at_their_width():
    big = ConstInt(1 << 24, INT32)
    wrapped = BinOp("*", big, ConstInt(256, INT32), INT32)
    negative = BinOp("*", ConstInt(1 << 23, INT32), ConstInt(256, INT32), INT32)
    proofs, _ = proofs_of("pl.tensor.write(x, [0], 1)")
    assert evaluate(wrapped, None) == 0
    assert evaluate(negative, None) == -(1 << 31)
    assert proofs.is_multiple(wrapped, 16)
    assert proofs.non_negative(wrapped)
    assert proofs.is_multiple(negative, 16)
    assert not proofs.non_negative(negative)


# Random straight-line programs over a loop: whatever is proven holds, with 32-bit wrap-around.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["+", "-", "*", "min", "max", "%", "//"]),
        st.integers(0, 7),
        st.one_of(st.integers(0, 7), st.sampled_from([-32, -3, 1, 2, 8, 16, 48, 1 << 20])),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.req("N-062", "N-080")
@settings(max_examples=150)
@given(STEPS, st.sampled_from([(0, 1), (16, 16), (-16, 32), (3, 5)]), st.integers(0, 3))
def test_proven_facts_hold_when_executed(steps, loop, trip):
    start, step = loop
    kind = ScalarType(INT32)
    variables = [Var("p", kind), Var("i", kind)]
    values = {variables[0]: -7, variables[1]: start + trip * step}
    body = []
    for op, left, right, constant in steps:
        lhs = variables[left % len(variables)]
        rhs = ConstInt(right, INT32) if constant else variables[right % len(variables)]
        number = right if constant else values[rhs]
        if op in ("%", "//") and number == 0:
            continue
        var = Var(f"v{len(variables)}", kind)
        value = BinOp(op, lhs, rhs, INT32)
        body.append(Assign(var, value))
        values[var] = evaluate(value, values.__getitem__)
        variables.append(var)
    stop = ConstInt(start + 4 * step, INT32)
    loop_stmt = For(
        LoopKind.range,
        variables[1],
        ConstInt(start, INT32),
        stop,
        ConstInt(step, INT32),
        tuple(body),
    )
    proofs = Proofs(Function("f", FunctionType.InCore, (), (), (loop_stmt,)))
    for var, value in values.items():
        assert value % proofs.known_divisor(var) == 0
        # A sum or product of non-negative numbers counts as one, as long as it does not wrap.
        small = all(abs(v) < 1 << 14 for v in values.values())
        if proofs.non_negative(var) and small:
            assert value >= 0


def test_long_chains_take_no_stack():
    kind = ScalarType(INDEX)
    first = Var("n0", kind)
    body, last = [Assign(first, ConstInt(64))], first
    for i in range(1, 3000):
        var = Var(f"n{i}", kind)
        body.append(Assign(var, BinOp("+", last, ConstInt(16), INDEX)))
        last = var
    deep = last
    for _ in range(3000):
        deep = BinOp("+", deep, last, INDEX)
    proofs = Proofs(Function("f", FunctionType.InCore, (), (), tuple(body)))
    assert proofs.is_multiple(deep, 16)
    assert proofs.non_negative(deep)
    assert not proofs.is_multiple(BinOp("+", deep, ConstInt(8), INDEX), 16)
