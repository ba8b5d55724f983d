"""Assignments to windows and results without declaration, brought into SSA form."""

from __future__ import annotations

import pytest

from pypto_egg import lower, optimize
from pypto_egg.analysis.result_types import with_result_types
from pypto_egg.analysis.window_versions import with_window_versions
from pypto_egg.errors import VerifyError
from pypto_egg.interp import compare, random_inputs
from pypto_egg.ir.program import Program
from pypto_egg.text import parse, print_program
from pypto_egg.verify import verify_program

F = "pl.Tensor[[16, 32], pl.FP32]"
MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])


def kernel(body: str, returns: str = f" -> {F}") -> str:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    head = "import pypto.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\n"
    return f"{head}def k(x: {F}, out: pl.Out[{F}], n: pl.Scalar[pl.INDEX]){returns}:\n{lines}"


def versioned(body: str) -> Program:
    """The program in SSA form, found to compute what it did."""
    source = parse(kernel(body))
    result = with_window_versions(source)
    verify_program(result)
    inputs = random_inputs(source.functions[0], program=source)
    assert compare(source, result, inputs).equal
    return result


def test_each_assignment_is_a_variable_and_later_reads_mean_the_last() -> None:
    result = versioned("""
a = pl.exp(x)
out[0:8, :] = x[0:8, :]
out[8:16, :] = x[8:16, :]
b = pl.add(out, a)
out[0:16, :] = b
return out""")
    text = print_program(result)
    for line in (
        "out__ssa_v2: pl.Tensor[[16, 32], pl.FP32] = pl.tensor.assemble(out__ssa_v1, ",
        "pl.tensor.add(out__ssa_v2, a)",
        "return out__ssa_v3",
    ):
        assert line in text


def test_in_loops_and_branches_memory_keeps_its_name_afterwards() -> None:
    result = versioned("""
for i in pl.range(2):
    t = pl.slice(x, [8, 32], [8 * i, 0])
    if i > 0:
        out[8 * i:8 * i + 8, :] = t
    else:
        o = out
        o[0:8, :] = t
return out""")
    assert print_program(result).rstrip().endswith("return out")


def test_a_local_value_is_followed_at_its_own_level() -> None:
    versioned("""
t = pl.full([16, 32], dtype=pl.FP32, value=0.0)
t[0:8, :] = x[0:8, :]
u = pl.add(t, x)
out[:, :] = u
return out""")


@pytest.mark.req("C-004")
@pytest.mark.parametrize(
    "body",
    [
        "y = pl.add(x, x)\ny = pl.mul(y, y)\nreturn y",
        "t = pl.exp(x)\nfor i in pl.range(2):\n    t[0:8, :] = x[0:8, :]\nreturn t",
    ],
    ids=["another value", "a local value in a loop"],
)
def test_what_is_no_store_into_memory_stays_no_ssa_form(body: str) -> None:
    with pytest.raises(VerifyError, match="SSAForm"):
        verify_program(with_window_versions(parse(kernel(body))))


def test_programs_without_window_assignments_are_the_same_object() -> None:
    source = parse(kernel("y = pl.exp(x)\no = pl.assemble(out, y, [0, 0])\nreturn o"))
    assert with_window_versions(source) is source
    assert with_result_types(source) is source


@MAKERS
def test_new_names_are_free(make: object) -> None:
    body = """
out__ssa_v1 = pl.exp(x)
out[0:16, :] = out__ssa_v1
out__tmp_v1 = pl.exp(out)
out[0:8, :] = pl.slice(x, [8, 32], [0, 0])
return out"""
    assert make(kernel(body), verify=True).verified


@MAKERS
def test_a_function_without_annotation_declares_what_it_returns(make: object) -> None:
    result = make(kernel("y = pl.exp(x)\nreturn y, x", ""), verify=True)
    assert result.verified
    assert len(result.program.functions[0].returns) == 2
