"""What no file of this repository may contain, and how long a source file may be."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {".py", ".c", ".cc", ".cpp", ".h", ".hpp"}
SOFT_LIMIT, HARD_LIMIT = 400, 800  # lines

# (which files, what, why). Patterns are written so that this file does not match them itself.
PATTERNS = [
    (None, re.compile(r"(^|[^A-Za-z0-9_.])/(work|root|farm)/"), "path of one machine"),
    (
        None,
        re.compile(r"(pypi[.]org|pythonhosted[.]org|registry[.]npmjs|deb[.]debian[.])"),
        "host of a package registry",
    ),
    (None, re.compile(r"\bissue #?[0-9]+\b", re.IGNORECASE), "number of an issue: say what it is about"),
    (SOURCES, re.compile(r"\b(TO[D]O|FIX[M]E|XX[X])\b"), "unfinished"),
    (SOURCES, re.compile(r"NotImplementedErro[r]\(\)"), "unfinished"),
    ({".py"}, re.compile(r"pytest\.mark\.(skip|xfail)\b(?!.*reason)"), "test left out without a reason on the line"),
    ({".lock"}, re.compile(r'"https?://(?![^/"]*\.invalid)'), "true address: run ci/uv.py, not uv"),
]
# Words of the tools that some people edit with; the repository is about the project alone. Kept as digests, in lower
# case, of one or two words, so that they do not stand here either.
FOREIGN = {
    "c857d09db23e6822",
    "60965168ce762e94",
    "1f098d286ceeb910",
    "94a168d2da574b00",
    "fbb8037df8cc9050",
    "8cf10d1b0e07c1d8",
    "8e4b48bdb90d6d37",
}
WORD = re.compile(r"[A-Za-z0-9_.-]+")


def digest(text: str) -> str:
    return hashlib.sha256(text.lower().encode()).hexdigest()[:16]


def files() -> list[Path]:
    """Tracked and new files, without what .gitignore names."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def problems(path: Path) -> list[str]:
    """Findings in one file, each "PATH:LINE: what"; none for a file that is not text."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    name = path.relative_to(ROOT)
    found = []
    for number, line in enumerate(lines, 1):
        for suffixes, pattern, why in PATTERNS:
            if (suffixes is None or path.suffix in suffixes) and pattern.search(line):
                found.append(f"{name}:{number}: {why}: {line.strip()[:100]}")
        if path.suffix != ".lock":
            words = [word.strip(".-") for word in WORD.findall(line)]
            pairs = [f"{first} {second}" for first, second in zip(words, words[1:], strict=False)]
            if any(digest(text) in FOREIGN for text in words + pairs):
                found.append(f"{name}:{number}: not about the project: {line.strip()[:100]}")
    if path.suffix in SOURCES and len(lines) > SOFT_LIMIT:
        if len(lines) > HARD_LIMIT:
            found.append(f"{name}: {len(lines)} lines; the limit is {HARD_LIMIT}")
        else:
            print(f"warning: {name}: {len(lines)} lines; {SOFT_LIMIT} is where a file should be split")
    return found


if __name__ == "__main__":
    found = [problem for path in files() for problem in problems(path)]
    print("\n".join(found) or "text: nothing found")
    sys.exit(1 if found else 0)
