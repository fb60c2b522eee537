"""Conformance: every lowering row against torch on the CPU, by tables that several runners share."""
