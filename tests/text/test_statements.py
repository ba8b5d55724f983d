"""Loops, branches, yields, scopes of names, comments (PyPTO language reference, 9)."""

from collections.abc import Callable

import pytest

from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import Var
from pypto_egg.ir.stmt import Assign, For, If, While, Yield
from pypto_egg.text import parse, print_program

Text = Callable[..., str]
T = "pl.Tensor[[16, 64], pl.FP32]"
S = "pl.Scalar[pl.INDEX]"

ROUND_TRIPS = [
    f"for i in pl.range(n):\n    a: {T} = pl.tensor.exp(x)",
    "for i in pl.range(2, n):\n    pass",
    "for i in pl.range(0, n, 2):\n    break",
    "for i in pl.parallel(8):\n    pl.tensor.write(x, [0, i], 1.0)",
    "for i in pl.unroll(0, 8, 2):\n    pl.tensor.write(x, [0, i], 1.0)",
    "for i in pl.range(4):\n    if c:\n        break\n    else:\n        continue",
    f"for i, (p, q) in pl.pipeline(0, 64, 16, stage=2, init_values=(x, n)):\n"
    f"    d: {T} = pl.tensor.exp(p)\n    e: {S} = q + i\n    r, s = pl.yield_(d, e)",
    f'for i, (p,) in pl.range(4, init_values=(x,), attrs={{"k": 1, "s": "v"}}):\n'
    f"    r: {T} = pl.yield_(p)",
    f"while n > 3:\n    a: {T} = pl.tensor.exp(x)\n    break",
    f"for (i, p) in pl.while_(init_values=(0, x)):\n    pl.cond(i < n)\n"
    f"    d: {T} = pl.tensor.neg(p)\n    e: {S} = i + 1\n    j, r = pl.yield_(e, d)",
    f"if c:\n    a: {T} = pl.tensor.exp(x)",
    f"if c:\n    p, q = pl.yield_(x, n)\nelse:\n    a: {T} = pl.tensor.exp(x)\n"
    "    p, q = pl.yield_(a, 0)",
    "return x, n",
    "return",
    "pl.system.bar_all()",
    f"a: {T} = x",
    "buf: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)\n"
    "a: pl.Tile[[16, 64], pl.FP32, pl.MemRef(buf, n * 4, 4096, slots=2)[n], pl.Mem.Vec] = "
    "pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)",
    "a: pl.Tensor[[4, 4, 64], pl.FP32] = pl.tensor.reshape(x, [4, 4, 64])\n"
    "d: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(a, [n, 0, 0], [2, 4, 64], "
    "[2, 4, 64], target_memory=pl.Mem.Vec)",
]


@pytest.mark.parametrize("body", ROUND_TRIPS, ids=lambda body: body.split("\n")[0])
def test_canonical_statements_print_as_read(canonical: Text, body: str) -> None:
    assert canonical(body) == body


def test_elif_prints_as_a_nested_if(canonical: Text) -> None:
    body = "if n > 3:\n    pl.system.bar_v()\nelif c:\n    pl.system.bar_m()\nelse:\n    pass"
    assert canonical(body) == (
        "if n > 3:\n    pl.system.bar_v()\nelse:\n    if c:\n        pl.system.bar_m()"
    )


def test_default_bounds_are_left_out(canonical: Text) -> None:
    body = "for i in pl.range(0, n, 1):\n    pass\nfor j in pl.range(1, n, 1):\n    pass"
    assert canonical(body) == (
        "for i in pl.range(n):\n    pass\nfor j in pl.range(1, n):\n    pass"
    )


def test_a_loop_carries_values(text: Text) -> None:
    body = (
        "for i, (p,) in pl.pipeline(0, 64, 16, stage=2, init_values=(x,)):\n"
        "    r = pl.yield_(p)\n"
        "return r"
    )
    loop, last = parse(text(body)).functions[0].body
    assert isinstance(loop, For)
    assert loop.kind is LoopKind.pipeline
    assert dict(loop.attrs) == {"stage": 2}
    assert [var.name for var in loop.iter_args] == ["p"]
    assert loop.body == (Yield((loop.iter_args[0],)),)
    assert last.values == loop.results
    assert loop.results[0] is not loop.iter_args[0]


def test_a_loop_without_a_yield_names_its_results(text: Text) -> None:
    """Accepted before SSA only: the verifier refuses it later."""
    (loop,) = (
        parse(text("for i, (p,) in pl.range(4, init_values=(x,)):\n    pass")).functions[0].body
    )
    assert isinstance(loop, For)
    assert [var.name for var in loop.results] == ["p_out"]


def test_branches_share_their_results(text: Text) -> None:
    body = "if c:\n    r = pl.yield_(x)\nelse:\n    r = pl.yield_(x)\na = pl.exp(r)"
    branch, use = parse(text(body)).functions[0].body
    assert isinstance(branch, If)
    assert isinstance(use, Assign)
    assert use.value.args == branch.results


def test_a_name_assigned_twice_is_one_variable(text: Text) -> None:
    body = "a = pl.exp(x)\na = pl.neg(a)\nif c:\n    d = pl.exp(a)\nelse:\n    d = pl.neg(a)\ne = d"
    first, second, branch, last = parse(text(body)).functions[0].body
    assert isinstance(first, Assign)
    assert isinstance(second, Assign)
    assert isinstance(branch, If)
    assert isinstance(last, Assign)
    assert first.var is second.var
    assert branch.then[0].var is branch.orelse[0].var is last.value


def test_an_iteration_argument_is_never_reassigned(text: Text) -> None:
    body = "for i, (p,) in pl.range(4, init_values=(x,)):\n    p = pl.exp(p)\n    r = pl.yield_(p)"
    (loop,) = parse(text(body)).functions[0].body
    assert isinstance(loop, For)
    assert loop.body[0].var is not loop.iter_args[0]
    assert loop.body[1].values == (loop.body[0].var,)


def test_each_loop_has_its_own_variable(canonical: Text) -> None:
    body = "for i in pl.range(2):\n    pass\nfor i in pl.range(3):\n    pass"
    assert canonical(body).split("\n")[2] == "for i_1 in pl.range(3):"


def test_a_yield_inside_of_the_last_region_ends_the_loop(text: Text) -> None:
    body = (
        "for i, (p,) in pl.range(4, init_values=(x,)):\n"
        "    with pl.scope(mode=pl.ScopeMode.MANUAL):\n"
        "        r = pl.yield_(p)\n"
        "return r"
    )
    program = parse(text(body, "Orchestration"))
    assert f"r: {T} = pl.yield_(p)" in print_program(program)
    assert print_program(parse(print_program(program))) == print_program(program)


def test_conditions_of_carried_loops_see_the_iteration_arguments(text: Text) -> None:
    body = "for (i,) in pl.while_(init_values=(n,)):\n    pl.cond(i < 3)\n    j = pl.yield_(i)"
    (loop,) = parse(text(body)).functions[0].body
    assert isinstance(loop, While)
    assert loop.cond.lhs is loop.iter_args[0]


def test_comments_stand_above_their_statement(canonical: Text) -> None:
    body = (
        '"""What it does.\n\n        In two lines."""\n'
        "# first\n"
        "a = pl.exp(x)  # trailing\n"
        "pl.static_print(a)  # of a statement that vanishes\n"
        "for i in pl.range(  # of the header\n"
        "    4\n"
        "):\n"
        "    # inside\n"
        "    b1 = pl.exp(a)\n"
        "    # closes the block: dropped\n"
        "#\n"
        "return a"
    )
    assert canonical(body) == (
        "# What it does.\n#\n# In two lines.\n# first\n# trailing\n"
        f"a: {T} = pl.tensor.exp(x)\n"
        "# of a statement that vanishes\n# of the header\n"
        "for i in pl.range(4):\n"
        "    # inside\n"
        f"    b1: {T} = pl.tensor.exp(a)\n"
        "#\n"
        "return a"
    )


def test_static_statements_leave_nothing(canonical: Text) -> None:
    assert canonical("pl.static_assert(2 > 1, 'fine')\npl.static_print(x)\npass") == "pass"


def test_results_take_the_annotated_type(text: Text) -> None:
    body = (
        "a = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)\n"
        "if c:\n    r: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(a)\n"
        "else:\n    r: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.yield_(a)"
    )
    _, branch = parse(text(body)).functions[0].body
    assert isinstance(branch, If)
    assert branch.results[0].type.space.name == "Vec"


def test_parameters_and_module_constants_are_in_scope() -> None:
    program = parse(
        "N = 4\nK: int = N * 2\n@pl.function\ndef f(a: pl.Tensor[[K], pl.FP32]):\n    b = a[0:N]\n"
    )
    (stmt,) = program.functions[0].body
    assert isinstance(stmt, Assign)
    assert isinstance(stmt.var, Var)
    assert stmt.var.type.shape == (4,)
