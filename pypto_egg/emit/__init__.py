"""From a selection back to a program: placement, names, signatures, call sites."""
