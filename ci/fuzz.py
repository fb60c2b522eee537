"""libFuzzer on what the runtime reads from outside: `.venv/bin/python ci/fuzz.py --minutes 30`.

Each target starts from programs and NEFF files that our own writer makes, runs under the address and undefined-behaviour
sanitizers for its share of the time, and fails on a crash, a leak, a hang or 2 GiB of memory. The corpus is kept in
build/corpus, so that the next run goes on where this one stopped.
"""

from __future__ import annotations

import argparse
import sys

from build import ROOT, RUNTIME, run

TARGETS = ("program", "neff")
BUILD = ROOT / "build/fuzz"
CORPUS = ROOT / "build/corpus"


def write_seeds() -> None:
    """One file a sample program of the runtime's own tests, as a bare program and inside a NEFF."""
    from libneuron_runtime.neff import pack

    sys.path.insert(0, str(RUNTIME / "tests/python"))
    import programs

    samples = [programs.add, programs.row, programs.numbers, programs.alias, programs.matmul, programs.gather]
    for make in (*samples, programs.scatter, programs.scan, programs.tile_grain):
        data = make().to_bytes()
        for target, content in (("program", data), ("neff", pack(data, name=make.__name__))):
            folder = CORPUS / target
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"seed-{make.__name__}").write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    write_seeds()
    compilers = ("-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++")
    switches = ("-DNEURON_FUZZ=ON", "-DNEURON_SANITIZE=address,undefined")
    run("cmake", "-S", RUNTIME, "-B", BUILD, "-G", "Ninja", *compilers, *switches)
    run("cmake", "--build", BUILD, "--target", *(f"fuzz_{name}" for name in TARGETS))
    seconds = max(1, int(60 * options.minutes / len(TARGETS)))
    for name in TARGETS:
        limits = (f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")
        findings = f"-artifact_prefix={BUILD}/finding-{name}-"
        run(BUILD / f"tests/fuzz/fuzz_{name}", *limits, findings, CORPUS / name)


if __name__ == "__main__":
    main()
