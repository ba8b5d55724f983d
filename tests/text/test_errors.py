"""What is refused, where the caret stands and what the message says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pypto_egg.errors import ParseError, TypeCheckError
from pypto_egg.text import parse, parse_file

Text = Callable[..., str]

# body, line in the body (1-based), column, words
SYNTAX = [
    ("a = lambda: 1", 1, 13, "a lambda is not part of the language"),
    ("a = n if c else n", 1, 13, "a conditional expression is not part of the language"),
    ("a = n\na += 1", 2, 9, "an augmented assignment (+=) is not part of the language"),
    ("a = 1 < n < 3", 1, 13, "a chained comparison"),
    ("a = n ** 2", 1, 13, "the operator ** is not part of the language"),
    ("a = n & 1", 1, 13, "the operator & is not part of the language"),
    ("a = n | 1", 1, 13, "the operator |"),
    ("a = n ^ 1", 1, 13, "the operator ^"),
    ("a = (d := n)", 1, 14, "an assignment expression (:=)"),
    ("a = f'{n}'", 1, 13, "an f-string"),
    ("a = [i for i in x]", 1, 13, "a comprehension"),
    ("a = abs(n)", 1, 13, "'abs' is not a function of the language"),
    ("a = min(n, 1)", 1, 13, "'min' is not a function"),
    ("a = float(n)", 1, 13, "'float' is not a function"),
    ("del x", 1, 9, "del is not part of the language"),
    ("assert c", 1, 9, "assert is not part of the language"),
    ("import os", 1, 9, "an import inside a function"),
    ("try:\n    pass\nfinally:\n    pass", 1, 9, "try is not part of the language"),
    ("a = d = n", 1, 9, "a chained assignment"),
    ("a: pl.Scalar[pl.INT32]", 1, 9, "'a' is declared without a value"),
    ("a = pl.exp(*x)", 1, 20, "a starred argument (*)"),
    ("a = pl.exp(**x)", 1, 22, "a ** argument"),
    ("a = x[0:8:2, :]", 1, 19, "a slice with a step"),
    ("a = x[-1, 0]", 1, 15, "the index -1 is negative"),
    ("a = x[0, 0, 0]", 1, 15, "3 indices for a value of rank 2"),
    ("x[0, 0] = 1.0", 1, 9, "one element cannot be assigned by a subscript"),
    ("a = y", 1, 13, "undefined variable 'y'"),
    ("a = 'text'", 1, 13, "a str literal is not a value of the language"),
    ("a = 1e999", 1, 13, "the number is not finite"),
    ("a = 99999999999999999999", 1, 13, "the integer does not fit 64 bits"),
    ("a = 1 // 0", 1, 13, "division by zero"),
    ("a = 1 << 64", 1, 13, "a shift by 64 bits"),
    ("n", 1, 9, "'n' does nothing; only calls stand alone"),
    ("pl = n", 1, 9, "'pl' is reserved"),
    ("self = n", 1, 9, "'self' is reserved"),
    ("a = pl.yield_(x)", 1, 9, "pl.yield_ outside of a loop or branch"),
    ("if c:\n    a = pl.yield_(x)", 2, 13, "needs an else that yields as well"),
    ("if c:\n    a = pl.yield_(x)\nelse:\n    pass", 4, 13, "both branches of an if must end"),
    ("if c:\n    a = pl.yield_(x)\nelse:\n    d = pl.yield_(x)", 4, 13,
     "the branches yield different names: (a) and (d)"),
    ("if c:\n    a = pl.yield_(x)\n    d = n\nelse:\n    pass", 2, 13,
     "pl.yield_ must be the last statement of its block"),
    ("for i in pl.range(4):\n    a = pl.yield_(x)", 2, 13, "a loop without init_values"),
    ("for i, (p,) in pl.range(4, init_values=(x,)):\n    pl.yield_(p)", 2, 13,
     "the last pl.yield_ of a loop must name the results"),
    ("for i, (p,) in pl.range(4, init_values=(x,)):\n    a, d = pl.yield_(p, p)", 2, 13,
     "2 yielded values for 1 init_values"),
    ("for i, (p, q) in pl.range(4, init_values=(x,)):\n    pass", 1, 13,
     "2 iteration arguments for 1 init_values"),
    ("for i, (p,) in pl.range(4):\n    pass", 1, 13, "needs init_values"),
    ("for i in range(4):\n    pass", 1, 18, "'range(4)' cannot be looped over"),
    ("for i in pl.range(1, 2, 0):\n    pass", 1, 33, "the step of a loop must not be 0"),
    ("for i in pl.unroll(n):\n    pass", 1, 18, "the bounds of pl.unroll must be constants"),
    ("for i in pl.pipeline(4):\n    pass", 1, 18, "pl.pipeline needs stage=N"),
    ("for i in pl.range(4):\n    pass\nelse:\n    pass", 4, 13, "for ... else"),
    ("for i in pl.range(4, step=2):\n    pass", 1, 35, "pl.range has no keyword 'step'"),
    ("break", 1, 9, "break outside of a loop"),
    ("for i in pl.parallel(4):\n    continue", 2, 13, "continue inside of a pl.parallel loop"),
    ("for i, (p,) in pl.range(4, init_values=(x,)):\n    d = n\n    r = pl.yield_(p)\na = d", 4, 13,
     "undefined variable 'd'"),
    ("with x:\n    pass", 1, 14, "'x' opens no region"),
    ("with pl.at(role=pl.Role.SubWorker):\n    pass", 1, 14, "pl.at needs level="),
    ("with pl.cluster(nam=1):\n    pass", 1, 29, "pl.cluster has no keyword 'nam'"),
    ("with pl.scope():\n    pass", 1, 14, "an AUTO pl.scope()"),
    ("a = self.g(x)", 1, 13, "this program has no function 'g'"),
    ("pl.static_assert(1 > 2, 'no')", 1, 9, "static assertion failed: 'no'"),
    ("pl.static_assert(n > 2)", 1, 26, "is not known while reading"),
    ("a = pl.range(3)", 1, 13, "stands in the header of a for loop"),
    ("a = pl.Mem.Vec", 1, 13, "'pl.Mem.Vec' is not a value"),
    ("pl.func_attr({1: 2})", 1, 23, "the key of an attribute must be a string"),
    ("a = pl.const(n, pl.INT32)", 1, 22, "the value of pl.const must be a literal"),
    ("a = [n, 2][5]", 1, 13, "there is no element 5"),
]  # fmt: skip

TYPES = [
    ("a = self.k(x)", 1, 13, "k takes 11 arguments (x, h, z, idx, src, n, b, u, f, c, t), got 1"),
    ("a = x + x", 1, 13, "'+' needs scalars, got pl.Tensor[[16, 64], pl.FP32]"),
    ("a = f * 2", 1, 13, "'*' cannot combine FP16 and INDEX"),
    ("a = c + c", 1, 13, "'+' cannot combine BOOL and BOOL"),
    ("a = n and c", 1, 13, "'and' needs BOOL operands"),
    ("a = not n", 1, 13, "'not' cannot be applied to INDEX"),
    ("if n:\n    pass", 1, 12, "the condition is pl.Scalar[pl.INDEX]"),
    ("a = pl.add(2.0, x)", 1, 13, "pl.add: the scalar must be on the right"),
    ("a = pl.add(x, n)", 1, 13, "has dtype INDEX"),
    ("a = pl.add(x, pl.load(x, [0, 0], [16, 64]))", 1, 13, "operand 'rhs' must be a tensor"),
    ("a = pl.exp(n)", 1, 13, "pl.exp needs a tensor or a tile operand"),
    ("a = pl.const(300, pl.INT8)", 1, 13, "300 is outside of INT8 (-128..127)"),
    ("a: pl.Tensor[[16, 32], pl.FP32] = pl.exp(x)", 1, 12,
     "annotated pl.Tensor[[16, 32], pl.FP32], but the value is pl.Tensor[[16, 64], pl.FP32]"),
    ("a: pl.Tensor[[16, 64], pl.FP16] = pl.exp(x)", 1, 12, "but the value is"),
    ("a: pl.Tensor[[16], pl.FP32] = pl.exp(x)", 1, 12, "but the value is"),
    ("a: pl.Tile[[16, 64], pl.FP32] = pl.exp(x)", 1, 12, "but the value is"),
    ("a: pl.Scalar[pl.INT32] = b > 1", 1, 12,
     "annotated pl.Scalar[pl.INT32], but the value is pl.Scalar[pl.BOOL]"),
    ("a: pl.Scalar[pl.FP32] = 3", 1, 33, "but the value is pl.Scalar[pl.INDEX]"),
    ("a = pl.exp(x)\na = pl.exp(h)", 2, 9, "cannot reassign 'a' with a different type"),
    ("a, d = pl.exp(x)", 1, 9, "2 names for one value"),
    ("a = pl.exp(x, x)", 1, 13, "takes at most 1 arguments"),
    ("a = pl.tensor.slice(x)", 1, 13, "tensor.slice takes 3 to 5 operands"),
    ("a = pl.tensor.slice(x, offset=[0, 0])", 1, 13, "needs the operand 'shape'"),
    ("a = pl.exp(x, foo=1)", 1, 13, "tensor.exp has no keyword argument 'foo'"),
    ("a = pl.cast(x)", 1, 13, "needs the keyword argument 'target_type'"),
    ("a = pl.load(x, [0, 0], [16, 64], target_memory=pl.PadValue.min)", 1, 56,
     "target_memory= takes a member of pl.Mem"),
    ("a = pl.matmul(h, h, b_trans=1)", 1, 37, "b_trans= takes a literal bool, got '1'"),
    ("a = pl.slice(x, 3, [0, 0])", 1, 25, "operand 'shape' must be a list, got '3'"),
    ("for i in pl.range(1.5):\n    pass", 1, 27, "an integer scalar is needed here"),
    ("a = n[0]", 1, 13, "a value of type pl.Scalar[pl.INDEX] has no elements"),
    ("if c:\n    a = pl.yield_(x)\nelse:\n    a = pl.yield_(h)", 4, 13,
     "the result 'a' is pl.Tensor[[16, 64], pl.FP32] in one branch"),
    ("for i, (p,) in pl.range(4, init_values=(x,)):\n    r = pl.yield_(h)", 2, 13,
     "'r' carries pl.Tensor[[16, 64], pl.FP32] into the loop"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "line", "column", "words"), SYNTAX, ids=[case[0].split("\n")[-1] for case in SYNTAX]
)
def test_what_is_not_in_the_language(
    text: Text, body: str, line: int, column: int, words: str
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text(body), "kernel.py")
    _check(caught.value, line, column, words)


@pytest.mark.parametrize(
    ("body", "line", "column", "words"), TYPES, ids=[case[0].split("\n")[-1] for case in TYPES]
)
def test_types_that_do_not_fit(text: Text, body: str, line: int, column: int, words: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        parse(text(body), "kernel.py")
    _check(caught.value, line, column, words)


def _check(error: ParseError | TypeCheckError, line: int, column: int, words: str) -> None:
    assert words in error.message
    assert error.span is not None
    assert (error.span.line, error.span.column) == (line + 6, column)
    assert f"kernel.py:{line + 6}:{column}" in str(error)


MODULES = [
    ("", 1, 1, "the text holds no program"),
    ("import os\n", 1, 1, "the module 'os' cannot be imported"),
    ("x = [1]\n", 1, 5, "'x' must be a number or pl.dynamic"),
    ("M = pl.dynamic(1)\n", 1, 5, "a dynamic symbol is declared by"),
    ("print(1)\n", 1, 1, "Python's Expr at module level"),
    ("class P:\n    pass\n", 1, 1, "the class 'P' is not decorated with @pl.program"),
    ("@pl.program\nclass P:\n    pass\n", 2, 1, "has no function decorated with @pl.function"),
    ("def f():\n    pass\n", 1, 1, "the function 'f' is not decorated"),
    ("@pl.function\ndef f(a):\n    pass\n", 2, 7, "the parameter 'a' has no type annotation"),
    ("@pl.function\ndef f(*a):\n    pass\n", 2, 1, "parameters are plain names"),
    ("@pl.function\ndef f():\n    ...\n", 3, 5, "the body of 'f' is missing"),
    ("@pl.function(kind=1)\ndef f():\n    pass\n", 1, 19, "pl.function has no argument 'kind'"),
    (
        "@pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)\ndef f():\n    pass\n",
        1, 2, "InCore functions have level CHIP_DIE, not HOST",
    ),
    ("@pl.function\ndef f():\n    pass\n@pl.function\ndef f():\n    pass\n", 5, 1, "defined twice"),
    ("@pl.function\ndef f(:\n", 2, 7, "not valid Python"),
    ("@pl.function\ndef f():\n  pass\n pass\n", 4, 6, "not valid Python"),
    (
        "M = pl.dynamic('M')\n@pl.function\ndef f():\n    for i in pl.range(M):\n        pass\n",
        4, 23, "the dynamic symbol 'M' is used, but is no dimension of any type",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line", "column", "words"), MODULES)
def test_module_level(source: str, line: int, column: int, words: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(source)
    assert words in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


def test_columns_count_characters(text: Text) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text("größe = n; breite = y"))
    assert caught.value.span is not None
    assert caught.value.span.column == 29
    assert caught.value.span.picture().endswith(" " * 32 + "^")


def test_a_name_that_ended_with_its_block_is_explained(text: Text) -> None:
    body = "for i, (p,) in pl.range(4, init_values=(x,)):\n    d = n\n    r = pl.yield_(p)\na = d"
    with pytest.raises(ParseError, match="undefined variable 'd'") as caught:
        parse(text(body))
    assert "line 8" in str(caught.value.hint)


@pytest.mark.parametrize(
    "deep",
    ["(" * 250 + "n" + ")" * 250, "-" * 5000 + "n", "n + " * 3000 + "n", "[" * 150 + "]" * 150],
    ids=["parentheses", "unary", "sum", "lists"],
)
def test_deep_nesting_is_refused(text: Text, deep: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text(f"a = {deep}"))
    assert "deep" in caught.value.message or "nested" in caught.value.message


def test_deep_blocks_are_refused(text: Text) -> None:
    chain = "if c:\n    pass\n" + "elif c:\n    pass\n" * 120
    with pytest.raises(ParseError, match="nested more than 90 levels"):
        parse(text(chain.rstrip()))


@pytest.mark.parametrize(
    "text_", ["\0", "a\0b", "x = 'a\n", "\ud800", "# coding: utf-9\n", "\f", "\\"]
)
def test_odd_texts(text_: str) -> None:
    with pytest.raises(ParseError):
        parse(text_)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"cannot read .*missing\.py: No such file"):
        parse_file(tmp_path / "missing.py")
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ParseError, match="is not UTF-8 text"):
        parse_file(binary)
