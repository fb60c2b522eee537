"""What the compiler raises."""

from __future__ import annotations


class CompileError(RuntimeError):
    """A module cannot become a program. `where` names the operator (and the user's line, if known)."""

    def __init__(self, where: str, reason: str):
        super().__init__(f"{where}: {reason}" if where else reason)
        self.where = where
        self.reason = reason
