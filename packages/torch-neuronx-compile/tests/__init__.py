"""Tests of the compiler; a package, so that the suites share the conformance tables."""
