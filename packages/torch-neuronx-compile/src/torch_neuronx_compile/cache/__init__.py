"""Finished programs on disk: one-op programs in one sqlite3 store, graphs in files. Light to import: no torch."""
