"""Symbolic sizes, StableHLO values, their type rules and their text."""
