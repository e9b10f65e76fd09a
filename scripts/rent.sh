#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What each rule of the pools earns: replays fixed logs on a core in which one rule at a time can be switched off
# (core/base/rent.h). Prints a table, and fails if a rule earns nothing on any setting, or if docs/placement.md
# has another table.
#   scripts/rent.sh [--write] [--seed N] [BUILD_DIR]    --write puts the table into docs/placement.md
# BUILD_DIR (a new temporary one) keeps the build between runs.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
seed=3 write= # these eight logs have one that exchanges segments for ever
while [ $# != 0 ]; do
	case $1 in
	--write) write=--write; shift ;;
	--seed) needs_number "$@"; seed=$2; shift 2 ;;
	-*) wrong_call "there is no option $1" ;;
	*) break ;;
	esac
done
cd "$(dirname "$0")/.."
. scripts/draw.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build=${1:-$tmp/build}
[ -f "$build/build.ninja" ] ||
	meson setup "$build" -Dtests=false -Dbench=false -Dc_args=-DSS_RENT >/dev/null
ninja -C "$build" cli/somashim >"$tmp/log" || { tail -20 "$tmp/log" >&2; exit 2; }
mkdir "$tmp/logs"
draw_logs "$build/cli/somashim" "$tmp/logs" 8 "$seed"
python3 scripts/rent.py "$build/cli/somashim" "$tmp/logs" docs/placement.md $write
