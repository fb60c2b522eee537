"""libFuzzer on what the runtime reads from outside: `python3 ci/fuzz.py --minutes 30`, or `--runs 500000`.

The target loads, binds and runs NEFF files under the address and undefined-behaviour sanitizers. It starts from the corpus
of the runtime's tests and fails on a crash, a leak, a hang, 2 GiB of memory, or when too few inputs get to run. What it
finds is kept in build/corpus, so that the next run goes on where this one stopped.

    --coverage   lines of the reader and the loader that the repository's corpus reaches, a file each; fails below 95 %
    --merge      writes the smallest part of build/corpus with the same coverage to the repository's corpus
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from build import ROOT, RUNTIME, attempt, run

BUILD = ROOT / "build/fuzz"
FOUND = ROOT / "build/corpus/neff"
CORPUS = RUNTIME / "tests/fuzz/corpus.tar.gz"
TARGET = BUILD / "tests/fuzz/fuzz_neff"
COMPILERS = ("-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_BUILD_TYPE=Release")
LEAST_EXECUTED = 20  # percent of the inputs
LEAST_COVERED = 95  # percent of the lines of src/neff and src/program
# The power schedule of libFuzzer would take most of the time; files are short.
OPTIONS = ("-entropic=0", "-max_len=16384", "-timeout=20", "-rss_limit_mb=2048", "-reload=0", "-print_final_stats=1")


def unpack(folder: Path) -> None:
    """The repository's corpus, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(CORPUS) as archive:
        archive.extractall(folder, filter="data")


def build_target() -> None:
    switches = ("-DNEURON_FUZZ=ON", "-DNEURON_SANITIZE=address,undefined")
    run("cmake", "-S", RUNTIME, "-B", BUILD, "-G", "Ninja", *COMPILERS, *switches)
    run("cmake", "--build", BUILD, "--target", "fuzz_neff")


def fuzz(limit: str) -> int:
    """Fuzz until `limit`; returns the exit code."""
    unpack(FOUND)
    log = BUILD / "fuzz.log"
    command = [TARGET, *OPTIONS, limit, f"-artifact_prefix={BUILD}/finding-", FOUND]
    print("+", *command, flush=True)
    with log.open("wb") as output:
        code = subprocess.run(command, stderr=output).returncode
    text = log.read_text(errors="replace")
    # A finding is shown whole; of the rest, the totals.
    last = text.splitlines() if code else re.findall(r"^(?:stat::.*|Done .*|fuzz_neff: .*)$", text, re.MULTILINE)
    print(*last[-200:], sep="\n")
    executed = re.search(r"executed ([0-9.]+) %", text)
    if code == 0 and (not executed or float(executed[1]) < LEAST_EXECUTED):
        print(f"ci/fuzz.py: too few inputs got to run, expected {LEAST_EXECUTED} %; see {log}")
        return 1
    return code


def coverage() -> int:
    """Print the share of lines that the repository's corpus reaches; returns the exit code."""
    folder = ROOT / "build/coverage"
    run("cmake", "-S", RUNTIME, "-B", folder, "-G", "Ninja", *COMPILERS, "-DNEURON_COVERAGE=ON")
    run("cmake", "--build", folder, "--target", "fuzz_replay")
    program, profile = folder / "tests/fuzz/fuzz_replay", folder / "fuzz.profdata"
    run(program, CORPUS, LLVM_PROFILE_FILE=str(folder / "fuzz.profraw"))
    run("llvm-profdata", "merge", folder / "fuzz.profraw", "-o", profile)
    sources = [RUNTIME / "src/neff", RUNTIME / "src/program"]
    report = ["llvm-cov", "report", program, f"-instr-profile={profile}", *sources]
    text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    share = 0.0
    for line in text.splitlines():
        # Name, then three columns each for regions, functions and lines: all, missed, share.
        columns = line.split()
        if len(columns) < 10 or not columns[9].endswith("%"):
            continue
        share = float(columns[9].rstrip("%"))
        print(f"{columns[0]:24} {columns[7]:>6} lines, {columns[8]:>4} missed, {share:6.2f} %")
    if share < LEAST_COVERED:
        print(f"ci/fuzz.py: the corpus covers {share} % of the lines, expected {LEAST_COVERED} %")
        return 1
    return 0


def merge() -> int:
    """Replace the repository's corpus by the smallest part of it and of what was found with all their coverage."""
    unpack(FOUND)
    smallest = ROOT / "build/corpus/smallest"
    shutil.rmtree(smallest, ignore_errors=True)
    smallest.mkdir(parents=True)
    if code := attempt(TARGET, "-set_cover_merge=1", "-use_counters=0", *OPTIONS[:2], smallest, FOUND):
        return code
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(smallest.iterdir()):
            member = tarfile.TarInfo(path.name)  # no time and no owner: equal contents give equal archives
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    CORPUS.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    print(f"{len(list(smallest.iterdir()))} files, {CORPUS.stat().st_size} bytes")
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--minutes", type=float, default=30)
    what.add_argument("--runs", type=int)
    what.add_argument("--coverage", action="store_true")
    what.add_argument("--merge", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        sys.exit(coverage())
    build_target()
    if options.merge:
        sys.exit(merge())
    sys.exit(fuzz(f"-runs={options.runs}" if options.runs else f"-max_total_time={max(1, int(60 * options.minutes))}"))


if __name__ == "__main__":
    main()
