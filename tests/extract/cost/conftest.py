"""Tile programs of a GEMM in every blocking, for the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from pypto_egg.ir.program import Program
from pypto_egg.text import parse


@dataclass(frozen=True)
class Gemm:
    """C[m,n] = A[m,k] B[k,n], fp16, cut into L0 tiles tm x tn x tk and L1 panels of kp along K.

    `l1` and `l0` are the numbers of buffers of each operand there.
    """

    m: int
    n: int
    k: int
    tm: int
    tn: int
    tk: int
    kp: int
    l1: int = 1
    l0: int = 1

    @property
    def program(self) -> Program:
        g = self
        acc = f"pl.Tile[[{g.tm}, {g.tn}], pl.FP32, pl.Mem.Acc]"
        out = f"pl.Tensor[[{g.m}, {g.n}], pl.FP32]"
        outer, inner = (f"pl.{kind}" for kind in (_kind(g.l1), _kind(g.l0)))
        return parse(
            f"""# pypto.program: Gemm
import pypto.language as pl

@pl.program
class Gemm:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(a: pl.Tensor[[{g.m}, {g.k}], pl.FP16], b: pl.Tensor[[{g.k}, {g.n}], pl.FP16],
             c: pl.Out[{out}]) -> {out}:
        for i, (ci,) in pl.range(0, {g.m}, {g.tm}, init_values=(c,)):
            for j, (cj,) in pl.range(0, {g.n}, {g.tn}, init_values=(ci,)):
                s: {acc} = pl.tile.create([{g.tm}, {g.tn}], dtype=pl.FP32, target_memory=pl.Mem.Acc)
                for k, (t,) in {outer}(0, {g.k}, {g.kp}, {_stage(g.l1)}init_values=(s,)):
                    al = pl.tile.load(a, [i, k], [{g.tm}, {g.kp}], target_memory=pl.Mem.Mat)
                    bl = pl.tile.load(b, [k, j], [{g.kp}, {g.tn}], target_memory=pl.Mem.Mat)
                    for q, (u,) in {inner}(0, {g.kp}, {g.tk}, {_stage(g.l0)}init_values=(t,)):
                        a0 = pl.tile.extract(al, 0, q, [{g.tm}, {g.tk}], target_memory=pl.Mem.Left)
                        b0 = pl.tile.extract(bl, q, 0, [{g.tk}, {g.tn}], target_memory=pl.Mem.Right)
                        v: {acc} = pl.tile.matmul_acc(u, a0, b0)
                        w: {acc} = pl.yield_(v)
                    x: {acc} = pl.yield_(w)
                d: {out} = pl.tile.store(x, [i, j], cj)
                cj2: {out} = pl.yield_(d)
            ci2: {out} = pl.yield_(cj2)
        return ci2
"""
        )


def _kind(buffers: int) -> str:
    return "range" if buffers == 1 else "pipeline"


def _stage(buffers: int) -> str:
    return "" if buffers == 1 else f"stage={buffers}, "


@pytest.fixture(scope="session")
def gemm() -> type[Gemm]:
    """GEMM programs by blocking."""
    return Gemm


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The measurements that come with the package."""
    return Path(str(files("pypto_egg.target"))) / "data"
