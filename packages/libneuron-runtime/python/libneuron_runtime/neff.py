"""NEFF files: the container that carries a program.

A NEFF is a header of 1024 bytes and a tar archive. This package writes the archive uncompressed, with the program as the member
`sg00/program.neuronx`, so that it can be mapped.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from libneuron_runtime import _rt

PROGRAM_MEMBER = "sg00/program.neuronx"


@dataclass(frozen=True)
class Neff:
    """A parsed file: fields of the header, and members by name in file order."""

    pkg_version: int
    header_size: int
    data_size: int
    version_major: int
    version_minor: int
    build_version: str
    num_tpb: int
    hash: bytes  # 32 bytes; the first 16 are the MD5 of the file with this field zero
    uuid: bytes
    name: str
    requested_tpb_count: int
    feature_bits: int
    lnc_size: int
    members: dict[str, bytes]

    @property
    def program(self) -> bytes | None:
        """Bytes of the program; None for a file of another compiler."""
        return self.members.get(PROGRAM_MEMBER)


def pack(program: bytes, *, name: str, members: Mapping[str, bytes] | None = None) -> bytes:
    """A NEFF around `program`, with further `members` behind those that describe it. Equal arguments give equal bytes.

    Raises NeffError when the program breaks a rule of the format, or a member's name is no relative path of 1 to 99 printable characters.
    """
    return _rt.pack(program, name, dict(members or {}))


def unpack(neff: bytes) -> Neff:
    """Header and members, of this compiler's files and of others'. Raises NeffError."""
    header, members = _rt.unpack(neff)
    texts = {key: value.decode("utf-8", "replace") for key, value in header.items() if key in ("build_version", "name")}
    return Neff(**(header | texts), members={name.decode("utf-8", "replace"): data for name, data in members})


def verify(neff: bytes) -> None:
    """Checks the container, its hash and every load rule of the program. Raises NeffError."""
    _rt.verify(neff)
