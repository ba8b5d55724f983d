"""Sorting: runs of 32 with their indices, and merges of sorted runs; always descending.

A sorted row interleaves value and index, the index's bits in an element of the value's type.
"""

from __future__ import annotations

import numpy as np

from pypto_egg.interp.numbers import widen
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import Value

RUN = 32
MERGE_WAYS = 4


def _pairs(values: np.ndarray) -> np.ndarray:
    """Rows of (value, index) pairs: shape [..., n, 2]."""
    return values.reshape(*values.shape[:-1], -1, 2)


def _sorted_pairs(pairs: np.ndarray) -> np.ndarray:
    """Pairs ordered by value, greatest first; equal values keep their order."""
    order = np.argsort(-widen(pairs[..., 0]), axis=-1, kind="stable")
    return np.take_along_axis(pairs, order[..., None], axis=-2)


@semantics(*both("sort32"))
def sort32(site: OpSite) -> Value:
    source, index = site.shaped(0), site.shaped(1)
    values = source.read()
    if values.shape[-1] % RUN:
        raise site.error(f"{values.shape[-1]} columns are not a multiple of {RUN}")
    bits = index.read(source.valid).astype(f"u{values.dtype.itemsize}").view(values.dtype)
    pairs = np.stack([values, bits], axis=-1)
    runs = pairs.reshape(*values.shape[:-1], -1, RUN, 2)
    flat = _sorted_pairs(runs).reshape(*values.shape[:-1], -1)
    shape = (*source.shape[:-1], 2 * source.shape[-1])
    return site.filled(flat, shape, flat.shape)


@semantics(*both("mrgsort_format1"))
def merge_runs(site: OpSite) -> Value:
    """Every four sorted runs of `block_len` elements merged into one."""
    source = site.shaped(0)
    values = source.read()
    block = site.index(1) * MERGE_WAYS
    width = values.shape[-1]
    parts = [
        _sorted_pairs(_pairs(values[..., at : at + block])).reshape(*values.shape[:-1], -1)
        for at in range(0, width, block)
    ]
    return site.filled(np.concatenate(parts, axis=-1), source.shape, source.valid)


@semantics(*both("mrgsort_format2"))
def merge_lists(site: OpSite) -> Value:
    """Two to four sorted lists merged into one."""
    if site.kwarg("exhausted", False):
        raise site.error("exhausted=True leaves part of the result undefined; not interpreted")
    count = len(site.args) - 1 if site.on_tiles else len(site.args)
    sources = [site.shaped(i) for i in range(count) if site.has(i)]
    rows = np.concatenate([source.read() for source in sources], axis=-1)
    merged = _sorted_pairs(_pairs(rows)).reshape(rows.shape)
    shape = (*sources[0].shape[:-1], sum(source.shape[-1] for source in sources))
    return site.filled(merged, shape, merged.shape)
