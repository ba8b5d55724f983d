"""The e-graph: sorts, loading a function into it, saturation, and the snapshot taken from it."""
