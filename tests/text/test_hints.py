"""What a hint proposes can be written at that place."""

from __future__ import annotations

import pytest

from pypto_egg.errors import ParseError, PyptoEggError, UnknownOpError, VerifyError
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.ops import registry
from pypto_egg.text import parse
from pypto_egg.verify import verify_program

KERNEL = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP16]) -> pl.Tensor[[16, 64], pl.FP16]:
        {body}
        return y
"""


def hint_of(body: str) -> str:
    """The hint of the error that a kernel with this body is."""
    with pytest.raises(PyptoEggError) as caught:
        verify_program(parse(KERNEL.format(body=body)), stage="tensor")
    assert caught.value.hint is not None
    return caught.value.hint


def test_an_operator_that_only_tiles_have_names_what_tensors_have() -> None:
    hint = hint_of("y = pl.relu(x)")
    assert hint == (
        "pl.relu is an operator on tiles, which lowering makes; on tensors write "
        "pl.maximum(x, zero) with zero = pl.full([...], dtype=..., value=0.0)"
    )
    body = "zero = pl.full([16, 64], dtype=pl.FP16, value=0.0)\n        y = pl.maximum(x, zero)"
    verify_program(parse(KERNEL.format(body=body)), stage="tensor")


@pytest.mark.parametrize("name", ["maks", "row_maks", "tensor.row_maks", "expp", "relux"])
def test_only_operators_on_tensors_are_proposed_for_a_tensor(name: str) -> None:
    with pytest.raises(UnknownOpError) as caught:
        parse(KERNEL.format(body=f"y = pl.{name}(x)"))
    hint = caught.value.hint
    if hint is None:
        return
    proposed = hint.removeprefix("did you mean ").removesuffix("?").split(" or ")
    for each in proposed:
        leaf = each.removeprefix("pl.").removeprefix("tensor.")
        found = registry.lookup(f"tensor.{leaf}")
        assert found is not None or leaf in ("load", "store", "move", "create_tile", "tri")


def test_a_near_miss_is_proposed() -> None:
    assert "pl.row_max" in hint_of("y = pl.row_maks(x)")
    assert "pl.tensor.row_max" in hint_of("y = pl.tensor.row_maks(x)")


@pytest.mark.parametrize(
    ("name", "meant"), [("FLOAT16", "FP16"), ("BFLOAT16", "BF16"), ("float32", "FP32")]
)
def test_dtypes_of_other_languages_are_understood(name: str, meant: str) -> None:
    for body in (f"y = pl.cast(x, pl.{name})", f"y: pl.Tensor[[16, 64], pl.{name}] = pl.exp(x)"):
        hint = hint_of(body)
        assert hint.startswith(f"did you mean {meant}? the dtypes are: ")
        assert hint.endswith(", ".join(DTYPES))


def test_a_dtype_that_is_like_none_lists_them() -> None:
    with pytest.raises(ParseError) as caught:
        parse(KERNEL.format(body="y: pl.Tensor[[16, 64], pl.NUMBER] = pl.exp(x)"))
    assert caught.value.hint == f"the dtypes are: {', '.join(DTYPES)}"


def test_a_result_of_another_dtype_says_where_it_was_made() -> None:
    body = "z = pl.exp(x)\n        y = pl.cast(z, target_type=pl.FP32)"
    with pytest.raises(VerifyError) as caught:
        verify_program(parse(KERNEL.format(body=body)), stage="tensor")
    assert "has dtype FP32 instead of the FP16 that is declared" in caught.value.message
    assert caught.value.hint == (
        "y, which tensor.cast makes in line 8, is FP32: return "
        "z = pl.cast(y, target_type=pl.FP16) instead"
    )
