"""The sizes to try: the table, and what a user writes instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.bench.programs import product
from pypto_egg.bench.workloads import Workload, dtype_name, shapes, workloads
from pypto_egg.errors import OptionError
from pypto_egg.text import parse, print_program


def test_the_table_has_its_sizes_once_each_with_known_types():
    table = workloads()
    assert len(table) == 150
    assert len({one.name for one in table}) == 150
    assert sum(one.is_product for one in table) == 129
    assert shapes(None) == table


def test_what_is_known_of_a_workload():
    (one,) = shapes("q14_dec_q_proj_b5")
    assert (one.m, one.n, one.k, one.batch, one.dtype_a) == (5, 5120, 5120, 1, "BF16")
    (key,) = shapes("q14_dec_qk")
    assert (key.op, key.batch, key.b_trans) == ("attention_qk", 128, True)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_size_is_written_with_an_x(m, n, k):
    assert shapes(f" {m}x{n}X{k} ,") == (Workload(f"{m}x{n}x{k}", m, n, k),)


def test_names_may_have_stars_and_are_taken_once():
    found = shapes("q14_dec_q*,q14_dec_qk,100x256x512")
    names = [one.name for one in found]
    assert {"q14_dec_q_proj", "q14_dec_qk", "100x256x512"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no shapes"), ("nothing*", "no shape 'nothing"), ("1x2", "no shape '1x2'"),
     ("0x16x16", "'0' is no extent"), ("99999999999x1x1", "is no extent")],
)  # fmt: skip
def test_what_is_no_shape_is_refused(text, words):
    with pytest.raises(OptionError, match=words):
        shapes(text)


def test_a_file_needs_only_the_extents(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("M,N,K,dtype_a,name\n5,100,128,,\n7,8,9,int8,mine\n")
    first, second = shapes(str(path))
    assert (first.name, first.dtype_a, first.dtype_out) == ("5x100x128", "BF16", "FP32")
    assert (second.name, second.dtype_b, second.dtype_out) == ("mine", "INT8", "INT32")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m,n\n1,2\n", "no column 'k'"),
        ("m,n,k\n", "no shapes"),
        ("m,n,k\n1,2,x\n", "line 2, k: 'x' is no extent"),
        ("m,n,k,dtype_a\n1,2,3,complex\n", "no element type 'complex'"),
        ("m,n,k,b_trans\n1,2,3,maybe\n", "line 2, b_trans: 'maybe' is neither 0 nor 1"),
        ("m,n,k\n1,2,3\n1,2,3\n", "'1x2x3' is there twice"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, words):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(OptionError, match=words):
        shapes(str(path))


def test_types_have_the_names_of_pypto():
    assert [dtype_name(text) for text in ("bf16", "FP8E4M3", "int8")] == [
        "BF16", "FP8E4M3FN", "INT8",
    ]  # fmt: skip


@pytest.mark.parametrize("one", [one for one in workloads() if one.is_product][::9])
def test_the_program_of_a_product_reads_back(one):
    text = product(one, nz=one.layout_b == "NZ")
    program = parse(text)
    assert print_program(parse(print_program(program))) == print_program(program)
    a, b = (p.var.type.shape for p in program.functions[0].params)
    assert set(a) == {one.m, one.k}
    assert set(b) == {one.n, one.k}
