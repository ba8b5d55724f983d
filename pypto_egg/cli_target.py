"""The target of a command, with constants from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pypto_egg.target import Target

OVERRIDES = click.option(
    "--constants", metavar="FILE", help="TOML file with other constants for the target."
)


def chosen_target(name: str, constants: str | None) -> Target:
    """The target of that name, with the numbers of a TOML file in place of its own.

    Args:
        name: "a2a3", "a5" or an alias.
        constants: a file as `load_overrides` reads it; None changes nothing.

    Raises:
        OptionError: no such target, an unreadable file, an unknown key or a value out of range.
    """
    from pypto_egg.target import load_overrides, load_target

    target = load_target(name)
    return target if constants is None else target.with_(**load_overrides(constants))
