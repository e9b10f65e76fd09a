#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which entries of suite `shim` play one program on several releases, and which of those reach an edge of the library
# that no other entry reaches. Prints them with the processor time of each, and fails if one that runs with
# scripts/test.sh --long only (tests/repeats) reaches what no entry of the default suite does. Needs clang. Half an
# hour on two cores; what threads do by chance differs from run to run.
#   scripts/suite.sh [BUILD]     BUILD (build): a plain build, with its tests
set -euo pipefail
. "$(dirname "$0")/usage.sh"
case ${1:-} in -*) wrong_call "there is no option $1" ;; esac
build=${1:-$(dirname "$0")/../build}
[ -d "$build" ] || wrong_call "no directory $build"
build=$(realpath "$build")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
clang -O1 -fPIC -c tests/reached.c -o "$tmp/reached.o"
CC=clang CFLAGS=-fsanitize-coverage=edge,trace-pc-guard LDFLAGS=$tmp/reached.o \
	meson setup "$tmp/build" -Dbench=false -Dtests=false -Dsim=false -Doptimization=1 >/dev/null
ninja -C "$tmp/build" shim/libsomashim.so >"$tmp/log" || { tail -20 "$tmp/log" >&2; exit 2; }
python3 scripts/suite.py "$build" "$tmp/build/shim/libsomashim.so" "$tmp" tests/repeats
