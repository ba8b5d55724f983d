"""`python -m pypto_egg` is the `pypto-egg` command."""

from pypto_egg.cli import main

if __name__ == "__main__":
    main()
