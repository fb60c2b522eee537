#!/usr/bin/env bash
# System packages that CI needs beyond a compiler and Python. Asks apt only when something is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build  # the build
  python3-venv           # ci/uv.py, where there is no uv
  ccache                 # the same sources are built for the wheel, the C++ tests and the sanitizers
  doctest-dev zlib1g-dev # the runtime's tests; zlib for compressed NEFF members
  clang libclang-rt-dev  # libFuzzer
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "ci/install.sh: no apt-get here; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
