"""The account of a lowering: what was decided, what it costs, and what the other ways would."""
