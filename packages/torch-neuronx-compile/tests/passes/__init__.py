"""The passes: StableHLO in, properties of the program and its results out."""
