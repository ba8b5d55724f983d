"""Every error that pypto-egg raises for a user, each with a stable code.

A message names the user's own tensor or op, what was needed, what the limit is and what to do.
`InternalError` is the exception for faults of pypto-egg itself.
"""

from __future__ import annotations

from pypto_egg.source import Span


class PyptoEggError(Exception):
    """Base of all errors raised for bad input; `code` is stable across versions.

    Args:
        message: what is wrong, in the user's names, with sizes and limits.
        span: the place in the source, when it is known.
        hint: what to do instead.
    """

    code: str = "E000"

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        text = f"{where}{self.code}: {self.message}"
        if self.span:
            text += "\n" + self.span.picture()
        if self.hint:
            text += f"\nhint: {self.hint}"
        return text


class ParseError(PyptoEggError):
    """The text is not PyPTO's Python-syntax IR, or holds a construct that is not supported."""

    code = "E101"


class UnknownOpError(ParseError):
    """An operator that the registry does not know, outside orchestration code."""

    code = "E102"


class TypeCheckError(PyptoEggError):
    """An operator's operands, kwargs or annotation do not fit its type rule."""

    code = "E201"


class VerifyError(PyptoEggError):
    """A program breaks a structural rule (SSA, use before definition, boxes, compactness)."""

    code = "E301"


class LoweringError(PyptoEggError):
    """There is no legal lowering: a value, an op or an access that cannot become tiles."""

    code = "E401"


class AlignmentError(LoweringError):
    """A cube operand's extent is not a whole number of fractals on an axis never padded."""

    code = "E402"


class CoherenceError(LoweringError):
    """One GM tensor is written both by bulk and by scalar stores in one InCore function."""

    code = "E403"


class UnsupportedDTypeError(LoweringError):
    """The target has no instruction for this combination of element types."""

    code = "E404"


class NzError(LoweringError):
    """An NZ tensor has no blocked form, or is used where its byte order cannot be addressed."""

    code = "E410"


class SaturationLimitError(LoweringError):
    """Saturation reached a limit before any lowering was complete."""

    code = "E405"


class PtoTextError(LoweringError):
    """A statement, an operator or a type that has no form in PTO's own text."""

    code = "E411"


class CapacityError(LoweringError):
    """No choice of lowerings fits an on-chip memory space."""

    code = "E501"


class ExtractionError(PyptoEggError):
    """Extraction was asked something impossible, or a solver gave up without an answer."""

    code = "E502"


class OptionError(PyptoEggError):
    """An option, a target, a cost model, an extractor or a ruleset name is not known."""

    code = "E601"


class InterpretError(PyptoEggError):
    """The interpreter cannot run a program: bad inputs, bad addresses, unsupported op."""

    code = "E701"


class WorkLimitError(InterpretError):
    """A run was given a budget of work and used it up."""

    code = "E703"


class VerificationError(PyptoEggError):
    """The tensor program and the tile program computed different values."""

    code = "E702"


class InternalError(Exception):
    """A fault of pypto-egg itself; please report it with the program that caused it."""
