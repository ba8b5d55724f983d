"""Checks that a program keeps the rules its stage promises; each rule is a named property."""

from pypto_egg.verify.finding import Finding, Property, property_named
from pypto_egg.verify.program import STAGES, properties_of, verify_findings, verify_program

__all__ = [
    "STAGES",
    "Finding",
    "Property",
    "properties_of",
    "property_named",
    "verify_findings",
    "verify_program",
]
