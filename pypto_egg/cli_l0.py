"""`pypto-egg l0`: the schedules of one product."""

from __future__ import annotations

import sys

import click

from pypto_egg.cli_streams import write_text
from pypto_egg.cli_target import OVERRIDES, chosen_target


@click.command(short_help="Rank the L0 schedules of a product.")
@click.argument("shape", metavar="MxNxK")
@click.option("--dtype", default="bf16", show_default=True, help="Of both operands.")
@click.option("--target", default="a2a3", show_default=True, help="a2a3, a5 or an alias.")
@click.option(
    "--cost-model",
    default="pypto_l0",
    show_default=True,
    help="mte2_mad, pypto_l0, roofline or schedule.",
)
@OVERRIDES
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many to print."
)
@click.option("--json", "json_file", metavar="OUT", help="Write them as JSON.")
def l0(
    shape: str,
    dtype: str,
    target: str,
    cost_model: str,
    constants: str | None,
    top: int,
    json_file: str | None,
) -> None:
    """Rank all legal L0 schedules of a product whose operands are in L1.

    Global memory is not part of it. PyPTO's own choice is marked.
    """
    from pypto_egg.extract.cost.model import cost_model as find
    from pypto_egg.report.l0_table import l0_json, l0_table, product_from
    from pypto_egg.report.table import show

    chip, model = chosen_target(target, constants), find(cost_model)
    product = product_from(shape, dtype, chip)
    if json_file is not None:
        write_text(json_file, l0_json(product, model, chip, top))
    if json_file != "-":
        show(l0_table(product, model, chip, top), sys.stdout)
