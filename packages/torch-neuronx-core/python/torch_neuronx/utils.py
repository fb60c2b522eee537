"""The name under which programs look for the platform target."""

from .devices import _platform_target


def get_platform_target() -> str:
    """ "trn1", "trn2" or "trn3"."""
    return _platform_target()
