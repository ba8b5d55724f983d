"""Views of tiles on chip: windows with gaps, windows of padded tiles, views inside of loops."""

from __future__ import annotations

from kernels import both, calls, inout, kernel, out, tensor


def test_a_window_with_gaps_is_copied_before_it_is_reshaped() -> None:
    """Half of a tile's columns lie apart in its buffer; whole rows follow each other."""
    body = (
        "v = pl.exp(x)\nw = pl.slice(v, [{window}], [0, 0])\nr = pl.reshape(w, [256, 1])\nreturn r"
    )
    params, result = {"x": tensor([32, 16], "FP32")}, tensor([256, 1], "FP32")
    for window, copies in (("32, 8", 1), ("16, 16", 0)):
        for lowered in both(kernel(params, body.format(window=window), result)):
            assert len(calls(lowered, "tile.move")) == copies


def test_a_window_of_a_padded_tile_has_its_tensor_s_valid_shape() -> None:
    """The rows at i * 8 are valid whether the product was padded or not."""
    body = """
v = pl.matmul(x, y, b_trans=True, out_dtype=pl.FP32)
c = pl.cast(v, pl.FP16, mode='rint')
for i in pl.range(2):
    w = pl.slice(v, [8, 64], [i * 8, 0])
    u = pl.neg(w)
    h = pl.assemble(z, u, [i * 8, 0])
d = pl.assemble(dst, c, [0, 0])
return d"""
    params = {
        "x": tensor([16, 32], "FP32"), "y": tensor([64, 32], "FP32"),
        "z": inout([16, 64], "FP32"), "dst": out([16, 64], "FP16"),
    }  # fmt: skip
    both(kernel(params, body, tensor([16, 64], "FP16")))


def test_a_view_of_a_carried_handle_stays_inside_its_loop() -> None:
    body = """
for i, (c,) in pl.range(2, init_values=(x,)):
    v = pl.reshape(c, [24, 1])
    u = pl.adds(v, 0.5)
    h = pl.assemble(o, u, [0, 0])
    r = pl.yield_(c)
return r"""
    params = {"x": tensor([1, 24], "BF16"), "o": inout([48, 1], "BF16")}
    both(kernel(params, body, tensor([1, 24], "BF16")))
