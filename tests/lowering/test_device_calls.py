"""InCore functions that call functions: what stays as it is, and what cannot be lowered."""

from __future__ import annotations

import pytest
from kernels import both, executed, function, out, program, tensor

from pypto_egg import lower, optimize
from pypto_egg.errors import LoweringError

F = tensor([16, 64], "FP32")
X = {"x": F}
INTO = {**X, "o": out([16, 64], "FP32")}
RETURNS = function(X, "y = pl.exp(x)\nreturn y", F, "k")
WRITES = function(INTO, "y = pl.exp(x)\nr = pl.assemble(o, y, [0, 0])\nreturn r", F, "k")
INLINE = function(X, "y = pl.exp(x)\nreturn y", F, "k", "Inline")


@pytest.mark.req("C-106")
@pytest.mark.parametrize(
    ("callee", "params", "call"),
    [(WRITES, INTO, "self.k(x, o)"), (INLINE, X, "self.k(x)")],
    ids=["writes its result", "inline"],
)
def test_a_call_that_passes_global_memory_stays(
    callee: str, params: dict[str, str], call: str
) -> None:
    body = f"z = {call}\ny = pl.neg(z)\nreturn y"
    for result in both(program(callee, function(params, body, F, "main"))):
        executed(result)
        assert any(call in line for line in result.text.splitlines())


@pytest.mark.parametrize("rest", ["return z", "y = pl.neg(z)\nreturn y"])
@pytest.mark.parametrize("first", ["callee", "caller"])
def test_a_result_needs_a_buffer_that_device_code_cannot_create(rest: str, first: str) -> None:
    caller = function(X, f"z = self.k(x)\n{rest}", F, "main")
    functions = (RETURNS, caller) if first == "callee" else (caller, RETURNS)
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(program(*functions))
        assert caught.value.code == "E401"
        assert caught.value.message.startswith("InCore function 'main' calls 'k'")
        assert caught.value.span is not None
        assert "from orchestration code" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("callee", "params", "call"),
    [
        (WRITES, INTO, "z = self.k(w, o)"),
        (INLINE, X, "z = self.k(w)"),
        ("", X, "z = self.main(w)"),
    ],
    ids=["writes its result", "inline", "recursive"],
)
@pytest.mark.parametrize("op", ["exp(x)", "transpose(x, 0, 1)"])
def test_a_computed_tensor_cannot_be_passed_on(
    callee: str, params: dict[str, str], call: str, op: str
) -> None:
    square = tensor([16, 16], "FP32")
    body = f"w = pl.{op}\n{call}\nreturn z"
    text = program(callee, function(params, body, F, "main"))
    text = text.replace(F, square)
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(text)
        assert caught.value.message.startswith("'w' is computed on chip and passed to self.")
        assert caught.value.span is not None
