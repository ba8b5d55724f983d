"""The harness: real kernels, solvers and extractors compared, the speed of `optimize`, fuzzing.

`kernels/` holds PyPTO programs as users write them; they are read as text, never imported.
"""

if __name__ != "pypto_egg.bench":
    raise ImportError(
        f"this package was imported as {__name__!r}; its only name is 'pypto_egg.bench' "
        "(write `from pypto_egg.bench import ...`)"
    )
