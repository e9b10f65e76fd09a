#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Lays out the C files as .clang-format says, and wraps comments that are wider than 100 columns.
#   scripts/format.sh [--check] [FILE...]     --check: changes nothing, and fails if a file would change
# Without FILEs: every C file of the tree. Macros, and what stands between `clang-format off` and `on`, stay as
# they are. Needs a checkout, and clang-format 14, because other versions lay out differently; exits 77 without.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
check= files=()
[ "${1:-}" != --check ] || { check=yes; shift; }
for file in "$@"; do
	[ -f "$file" ] || wrong_call "there is no file $file"
	files+=("$(realpath "$file")")
done
cd "$(dirname "$0")/.."

git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "format.sh: no checkout" >&2; exit 77; }
for name in clang-format-14 clang-format; do
	if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
		exec python3 scripts/format.py "$name" "$check" "${files[@]}"
	fi
done
echo "format.sh: no clang-format 14" >&2
exit 77
