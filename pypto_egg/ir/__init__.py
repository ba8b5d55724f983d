"""The IR: immutable, typed Python objects for everything in PyPTO's text form."""
