"""Facts about programs: regions, aliases of global memory, effects, directions."""
