"""Self-contained HTML pages: one file, no network, light and dark."""
