"""Lowering of ATen operators to StableHLO, and of StableHLO to NEFF programs."""
