"""Plots of the harness' results, for pages and for papers."""
