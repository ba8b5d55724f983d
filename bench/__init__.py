"""The harness: real kernels, comparisons of alignment choices and cost models, scaling.

`kernels/` holds PyPTO programs as users write them; they are read as text, never imported.
"""

if __name__ != "pypto_egg.bench":
    raise ImportError(
        f"this package was imported as {__name__!r}; its only name is 'pypto_egg.bench' "
        "(write `from pypto_egg.bench import ...`)"
    )
