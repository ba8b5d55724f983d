"""Programs at the edge: refused with one clear error, or lowered right."""

from __future__ import annotations

import pytest
from kernels import (
    both,
    executed,
    function,
    incore,
    inout,
    kernel,
    lines,
    loops,
    ops,
    out,
    program,
    stores,
    tensor,
)

from pypto_egg import lower, optimize
from pypto_egg.errors import (
    CapacityError,
    LoweringError,
    OptionError,
    PyptoEggError,
    TypeCheckError,
    UnsupportedDTypeError,
    VerifyError,
)

F = tensor([16, 32], "FP32")
X = {"x": F}
MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])


def refused(text: str, kind: type[PyptoEggError], *parts: str) -> None:
    """Both entry points raise this kind of error with all these words in it."""
    for make in (lower, optimize):
        with pytest.raises(kind) as caught:
            make(text)
        for part in parts:
            assert part in str(caught.value), str(caught.value)


# --- ill-formed --------------------------------------------------------------------------------

ILL_TYPED = {
    "shapes that do not broadcast": ("y = pl.add(x, w)\nreturn y", "tensor.add"),
    "an inner extent that differs": ("y = pl.matmul(x, x, out_dtype=pl.FP32)\nreturn y", "matmul"),
    "a window outside": ("y = pl.slice(x, [16, 33], [0, 0])\nreturn y", "slice"),
    "a reshape that loses elements": ("y = pl.reshape(x, [16, 16])\nreturn y", "reshape"),
    "an axis that is not there": ("y = pl.transpose(x, 0, 2)\nreturn y", "transpose"),
    "a cast to its own type": ("y = pl.cast(x, pl.FP32)\nreturn y", "cast"),
}


@pytest.mark.parametrize("name", ILL_TYPED)
def test_ill_typed_calls(name: str) -> None:
    body, op = ILL_TYPED[name]
    text = kernel({"x": F, "w": tensor([16, 16], "FP32")}, body, F)
    refused(text, PyptoEggError, op, "E2")


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        ("y = pl.exp(x)\nreturn y", tensor([16, 32], "FP16")),
        ("y = pl.exp(x)\nreturn y", tensor([32, 16], "FP32")),
        ("y = pl.row_max(x)\nreturn y", F),
    ],
)
def test_a_result_of_another_type_than_declared(body: str, returns: str) -> None:
    refused(kernel(X, body, returns), PyptoEggError, "y")


@pytest.mark.parametrize("returns", [F, f"tuple[{F}, {F}, {F}]"])
def test_another_number_of_results_than_declared(returns: str) -> None:
    text = kernel(X, "y = pl.exp(x)\nz = pl.abs(x)\nreturn y, z", returns)
    refused(text, PyptoEggError, "2")


@pytest.mark.req("C-004")
def test_use_before_definition() -> None:
    refused(kernel(X, "y = pl.add(x, z)\nz = pl.exp(x)\nreturn y", F), PyptoEggError, "'z'")


@pytest.mark.req("C-004")
def test_a_value_of_an_arm_used_outside() -> None:
    body = "if n > 2:\n    y = pl.exp(x)\nz = pl.neg(y)\nreturn z"
    refused(kernel({**X, "n": "pl.Scalar[pl.INDEX]"}, body, F), VerifyError, "'y'")


def test_arms_that_yield_different_types() -> None:
    body = """
if n > 2:
    a = pl.row_max(x)
    r = pl.yield_(a)
else:
    b = pl.exp(x)
    r = pl.yield_(b)
return r"""
    refused(kernel({**X, "n": "pl.Scalar[pl.INDEX]"}, body, F), PyptoEggError, "r")


def test_a_carry_that_changes_its_type() -> None:
    body = """
for i, (c,) in pl.range(3, init_values=(x,)):
    d = pl.row_max(c)
    r = pl.yield_(d)
return r"""
    refused(kernel(X, body, tensor([16, 1], "FP32")), PyptoEggError, "r")


@MAKERS
@pytest.mark.parametrize(
    "text", ["", "\n", "x = 1\n", "import pypto.language as pl\n", "@pl.program\n"]
)
def test_texts_without_a_program(make: object, text: str) -> None:
    with pytest.raises(PyptoEggError):
        make(text)


@MAKERS
@pytest.mark.parametrize(
    "options",
    [{"target": "a9"}, {"cost_model": "guess"}, {"verify": "maybe"}],
)
def test_options_that_do_not_exist(make: object, options: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        make(kernel(X, "y = pl.exp(x)\nreturn y", F), **options)
    assert next(iter(options.values())) in str(caught.value)


@MAKERS
def test_something_that_is_no_program(make: object) -> None:
    with pytest.raises(OptionError, match="int"):
        make(7)


# --- trivial -----------------------------------------------------------------------------------


@pytest.mark.req("C-058", "C-106")
@pytest.mark.parametrize("names", ["x", "x, x", "x, w"])
def test_functions_that_return_their_inputs(names: str) -> None:
    count = len(names.split(","))
    arrow = F if count == 1 else f"tuple[{', '.join([F] * count)}]"
    for result in both(kernel({"x": F, "w": F}, f"return {names}", arrow)):
        assert ops(result) == []
        assert len(incore(result).params) == 2


def test_a_function_that_returns_nothing() -> None:
    body = "y = pl.exp(x)\no = pl.assemble(d, y, [0, 0])\nreturn"
    for result in both(kernel({"x": F, "d": out([16, 32], "FP32")}, body, "")):
        assert len(stores(result)) == 1


def test_a_value_returned_twice() -> None:
    for result in both(kernel(X, "y = pl.exp(x)\nreturn y, y", f"tuple[{F}, {F}]")):
        assert ops(result).count("tile.exp") == 1
        assert len(stores(result)) == 2


def test_unused_values_are_not_made() -> None:
    body = "y = pl.exp(x)\nz = pl.sqrt(w)\nu = pl.transpose(z, 0, 1)\nreturn y"
    for result in both(kernel({"x": F, "w": F}, body, F)):
        assert ops(result) == ["tile.load", "tile.exp", "tile.store"]


def test_unused_values_are_no_obstacle() -> None:
    """A slice that no tile could hold, of which nothing is needed."""
    body = "y = pl.exp(x)\ns = pl.slice(y, [3, 5], [1, 1])\nreturn y"
    for result in both(kernel(X, body, F)):
        assert "tile.slice" not in ops(result)


def test_an_unused_loop_is_not_made() -> None:
    body = """
y = pl.exp(x)
for i, (c,) in pl.range(3, init_values=(y,)):
    d = pl.neg(c)
    r = pl.yield_(d)
return y"""
    for result in both(kernel(X, body, F)):
        assert loops(result) == []


def test_writes_of_an_unused_loop_stay() -> None:
    body = """
y = pl.exp(x)
for i, (o,) in pl.range(2, init_values=(d,)):
    s = pl.slice(x, [8, 32], [8 * i, 0])
    t = pl.neg(s)
    p = pl.assemble(o, t, [8 * i, 0])
    r = pl.yield_(p)
return y"""
    for result in both(kernel({"x": F, "d": inout([16, 32], "FP32")}, body, F)):
        assert len(loops(result)) == 1
        assert len(stores(result)) == 2


@pytest.mark.parametrize("bounds", ["0", "0, 0, 1", "4, 4", "5, 2", "0, -3"])
def test_loops_that_never_run(bounds: str) -> None:
    body = f"""
for i, (c,) in pl.range({bounds}, init_values=(x,)):
    d = pl.exp(c)
    r = pl.yield_(d)
y = pl.neg(r)
return y"""
    both(kernel(X, body, F))


def test_a_loop_of_unknown_length() -> None:
    body = """
for i, (c,) in pl.range(n, init_values=(x,)):
    d = pl.sin(c)
    r = pl.yield_(d)
return r"""
    both(kernel({**X, "n": "pl.Scalar[pl.INDEX]"}, body, F))


def test_deep_nesting() -> None:
    depth = 12
    body, value = [], "x"
    for level in range(depth):
        pad = "    " * level
        body.append(f"{pad}for i{level}, (c{level},) in pl.range(2, init_values=({value},)):")
        value = f"c{level}"
    body.append("    " * depth + f"e = pl.sin({value})")
    value = "e"
    for level in reversed(range(depth)):
        body.append("    " * (level + 1) + f"r{level} = pl.yield_({value})")
        value = f"r{level}"
    body.append(f"return {value}")
    result = optimize(kernel(X, "\n".join(body), F), verify=False)
    assert len(loops(result)) == depth


def test_a_long_chain() -> None:
    body = [
        "v0 = pl.abs(x)",
        *(f"v{i} = pl.add(v{i - 1}, x)" for i in range(1, 300)),
        "return v299",
    ]
    result = optimize(kernel(X, "\n".join(body), F), verify=True)
    assert ops(executed(result)).count("tile.add") == 299


# --- sizes -------------------------------------------------------------------------------------


@MAKERS
def test_a_tile_larger_than_its_memory(make: object) -> None:
    big = tensor([512, 512], "FP32")
    with pytest.raises(CapacityError) as caught:
        make(kernel({"x": big}, "y = pl.exp(x)\nreturn y", big))
    error = caught.value
    assert error.code == "E501"
    for part in ("Vec", "188416", "'x' (1048576 bytes)"):
        assert part in error.message
    assert "slice" in error.hint


@MAKERS
def test_many_tiles_that_do_not_fit_together(make: object) -> None:
    big = tensor([128, 128], "FP32")
    body = """
y = pl.exp(x)
z = pl.abs(x)
u = pl.add(y, z)
v = pl.mul(y, z)
w = pl.sub(u, v)
return w"""
    with pytest.raises(CapacityError) as caught:
        make(kernel({"x": big}, body, big))
    assert "65536 bytes" in caught.value.message


@MAKERS
def test_operands_larger_than_l1(make: object) -> None:
    """They are loaded in blocks of K, unless all of the product is needed at once."""
    params = {"a": tensor([64, 8192], "FP16"), "b": tensor([8192, 64], "FP16")}
    body = "y = pl.matmul(a, b, out_dtype=pl.FP32)\n"
    executed(make(kernel(params, body + "return y", tensor([64, 64], "FP32")), verify=True))
    with pytest.raises(CapacityError) as caught:
        make(kernel(params, body + "z = pl.row_max(y)\nreturn z", tensor([64, 1], "FP32")))
    assert "Mat" in caught.value.message
    assert str(64 * 8192 * 2) in caught.value.message


def test_one_element() -> None:
    one = tensor([1, 1], "FP32")
    both(kernel({"x": one}, "y = pl.exp(x)\nreturn y", one))


def test_rank_1_and_rank_3() -> None:
    for shape in ([7], [3, 5, 24], [2, 3, 4, 8]):
        type_ = tensor(shape, "FP32")
        both(kernel({"x": type_}, "y = pl.exp(x)\nz = pl.mul(y, 2.0)\nreturn z", type_))


@pytest.mark.req("C-170")
def test_dynamic_extents_of_vector_kernels() -> None:
    x = tensor(["ROWS", 32], "FP32")
    text = program(
        function({"x": x}, "y = pl.exp(x)\nz = pl.add(y, x)\nreturn z", x),
        before='ROWS = pl.dynamic("ROWS")',
    )
    for result in both(text):
        assert "[ROWS, 32]" in result.text


# --- element types -----------------------------------------------------------------------------


@MAKERS
@pytest.mark.parametrize(("a", "b"), [("FP16", "BF16"), ("FP32", "FP16"), ("INT8", "FP16")])
def test_products_of_different_types(make: object, a: str, b: str) -> None:
    text = kernel(
        {"a": tensor([32, 64], a), "b": tensor([64, 32], b)},
        "y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y",
        tensor([32, 32], "FP32"),
    )
    with pytest.raises((TypeCheckError, UnsupportedDTypeError)) as caught:
        make(text)
    assert "'a'" in str(caught.value) or a in str(caught.value)


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_", "__", "_x", "x_", "x__y", "acc_storage", "tmp_tile", "T"])
def test_odd_names(name: str) -> None:
    for result in both(kernel({name: F}, f"y = pl.row_max({name})\nreturn y",
                              tensor([16, 1], "FP32"))):  # fmt: skip
        assert incore(result).params[0].var.name == name


def test_names_that_lowering_would_use() -> None:
    body = """
x__tile = pl.exp(x)
tmp_tile = pl.row_max(x__tile)
ret0__store = pl.neg(tmp_tile)
return ret0__store"""
    for result in both(kernel(X, body, tensor([16, 1], "FP32"))):
        assigned = [t.split(":")[0] for t in lines(result) if " = pl.tile." in t]
        assert len(set(assigned)) == len(assigned)


@pytest.mark.req("C-106")
def test_two_functions_with_the_same_names_inside() -> None:
    text = program(
        function(X, "y = pl.exp(x)\nreturn y", F, "k1"),
        function(X, "y = pl.neg(x)\nreturn y", F, "k2"),
        function(X, "a = self.k1(x)\nb = self.k2(a)\nreturn b", F, "main", "Orchestration"),
    )
    for result in both(text):
        assert [r.name for r in result.functions] == ["k1", "k2"]


@pytest.mark.parametrize(
    ("call", "shape", "dtype"),
    [
        ("pl.tensor.random(1, 2, 3, 4, 5, 6, [16, 32], dtype=pl.UINT32)", [16, 32], "UINT32"),
        ("pl.tensor.ci(0, [1, 32], dtype=pl.INT32)", [1, 32], "INT32"),
    ],
)
def test_ops_that_cannot_be_lowered_are_named(call: str, shape: list[int], dtype: str) -> None:
    op = call.split("(")[0].removeprefix("pl.")
    refused(kernel(X, f"y = {call}\nreturn y", tensor(shape, dtype)), LoweringError, op, "E401")


# --- texts -------------------------------------------------------------------------------------


@MAKERS
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_do_not_matter(make: object, end: str, mark: str) -> None:
    text = kernel(X, "y = pl.exp(x)\nreturn y", F)
    assert make(mark + text.replace("\n", end)).text == make(text).text


# --- products of one column --------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(16, 1), (1, 1), (17, 1), (1, 16)])
@pytest.mark.parametrize(
    "zeros", ["pl.create_tensor({}, pl.FP32)", "pl.full({}, dtype=pl.FP32, value=0.0)"]
)
def test_a_sum_of_products_that_is_one_column(rows: int, columns: int, zeros: str) -> None:
    """One column lies column-major in Vec, whether it was created there or came out of L0C."""
    shape = [rows, columns]
    body = f"""
z = {zeros.format(shape)}
for k, (acc,) in pl.range(0, 64, 32, init_values=(z,)):
    xk = x[:, k:k + 32]
    wk = w[:, k:k + 32]
    step = pl.matmul_acc(acc, xk, wk, b_trans=True)
    y = pl.yield_(step)
return y"""
    params = {"x": tensor([rows, 64], "BF16"), "w": tensor([columns, 64], "BF16")}
    assert optimize(kernel(params, body, tensor(shape, "FP32")), verify=True).verified
