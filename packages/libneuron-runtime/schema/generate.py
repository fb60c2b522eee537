"""Generates everything that follows from program.toml: the C++ header, the fuzzer's field tables, the Python writer's
tables and the reference page.

    generate.py header|fields|python|reference OUTPUT   write OUTPUT (only if its content changes)
    generate.py --check reference FILE                  exit 1 unless FILE is what would be written

Needs Python 3.11 (tomllib) and nothing else.
"""

import argparse
import sys
from pathlib import Path

from fields import write_fields
from header import write_header
from reference import write_reference
from schema import read_schema
from tables import write_python

WRITERS = {"header": write_header, "fields": write_fields, "python": write_python, "reference": write_reference}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("what", choices=WRITERS)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    text = WRITERS[args.what](read_schema())
    old = args.file.read_text() if args.file.exists() else None
    if args.check:
        if old != text:
            print(f"{args.file} is not up to date: run {Path(__file__).name} {args.what} {args.file}", file=sys.stderr)
            return 1
    elif old != text:
        args.file.parent.mkdir(parents=True, exist_ok=True)
        args.file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
