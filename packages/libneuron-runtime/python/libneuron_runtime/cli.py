"""The command `neff`: look into NEFF files.

Exit codes: 0 fine, 1 the file is not, 2 wrong usage.
"""

import argparse
import json
import sys
from pathlib import Path

from libneuron_runtime._errors import NeffError
from libneuron_runtime.neff import PROGRAM_MEMBER, Neff, unpack, verify
from libneuron_runtime.program import disassemble, read


def signature(neff: Neff) -> list[str]:
    """A line for each input and output, from neff.json; none when the file has no such member or it is not as expected."""
    lines = []
    try:
        default = json.loads(neff.members["neff.json"])["metadata"]["signatures"]["default"]
        for usage in ("inputs", "outputs"):
            for name, tensor in default[usage].items():
                sizes = ", ".join("?" if size == -1 else str(size) for size in tensor["shape"])
                lines.append(f"  {usage[:-1]:6}  {name}  {tensor['dtype']}[{sizes}]")
    except (KeyError, TypeError, AttributeError, ValueError):
        return []
    return lines


def info(neff: Neff) -> str:
    """Header, signature and members as text."""
    lines = [
        f"name            {neff.name}",
        f"build version   {neff.build_version or '(none)'}",
        f"package version {neff.pkg_version}",
        f"NEFF version    {neff.version_major}.{neff.version_minor}",
        f"cores           {neff.num_tpb}",
        f"uuid            {neff.uuid.hex()}",
        f"hash            {neff.hash[:16].hex()}",
        f"features        0x{neff.feature_bits:x}",
    ]
    if neff.program is None:
        lines.append("program         none: made by another compiler")
    else:
        header = read(neff.program).header
        lines.append(
            f"program         version {header['version']}, {header['slot_count']} slots, {header['scalar_count']} scalars"
        )
    if tensors := signature(neff):
        lines += ["signature", *tensors]
    lines.append("members")
    lines += [f"  {len(data):>10}  {name}" for name, data in neff.members.items()]
    return "\n".join(lines) + "\n"


def dump(neff: Neff) -> str:
    """Disassembly of the program."""
    if neff.program is None:
        raise ValueError(f"there is no member {PROGRAM_MEMBER} to disassemble")
    return disassemble(neff.program)


def run(command: str, data: bytes) -> str:
    """Text that a command prints for a file's bytes. Raises NeffError, ValueError."""
    if command == "verify":
        verify(data)
        return "ok\n"
    return (info if command == "info" else dump)(unpack(data))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="neff", description="Look into NEFF files.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("info", "header, signature and members"),
        ("dump", "disassembly of the program"),
        ("verify", "check container, hash and program"),
    ):
        commands.add_parser(name, help=text).add_argument("file", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)  # exits with 2 on wrong usage
    try:
        sys.stdout.write(run(options.command, options.file.read_bytes()))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has gone, as `neff dump FILE | head` does
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"neff: {options.file}: {error.strerror or error}", file=sys.stderr)
        return 1
    except (NeffError, ValueError) as error:
        print(f"neff: {options.file}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
