"""Checks that a program keeps the rules its stage promises; each rule is a named property."""

from pypto_egg.verify.finding import Finding, Property
from pypto_egg.verify.program import STAGES, verify_findings, verify_program

__all__ = ["STAGES", "Finding", "Property", "verify_findings", "verify_program"]
