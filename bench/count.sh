#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Counts the instructions of a pure hit, which do not depend on the load of the machine.
#   bench/count.sh BUILD_DIR WHICH LIMIT
# The program repeats an allocation and its free of one size. The loop of some 30 instructions is
# included. Exits 77 without valgrind or libmimalloc (which the program needs).
set -u
. "$(dirname "$0")/../scripts/usage.sh"
[ $# = 3 ] || wrong_call "three arguments are needed"
build=$1 which=$2 limit=$3
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
{
	echo "Thread,Time,Action,Pointer,Size,Stream"
	for i in $(seq 200); do
		echo "1,00:00:00.000001,allocate,0x$i,4096,1"
		echo "1,00:00:00.000001,free,0x$i,4096,1"
	done
} >"$tmp/log.csv"
# Often enough that the lock of the stream cache has an owner before the count begins.
SOMASIM_VRAM=7G SOMASIM_QUIET=1 SOMASIM_SEED=1 SOMASIM_DELAY_US=0 LD_LIBRARY_PATH=$build/sim \
	LD_PRELOAD=$build/shim/libsomashim.so valgrind --tool=callgrind \
	--callgrind-out-file=/dev/null --toggle-collect=counted \
	"$build/bench/bench_pair" "$tmp/log.csv" "$which" 16 >"$tmp/out" 2>"$tmp/err" || {
	grep -q libmimalloc "$tmp/err" && { echo "skipped: no libmimalloc"; exit 77; }
	cat "$tmp/err"
	exit 1
}
ir=$(sed -n 's/.*Collected : //p' "$tmp/err") pairs=$(tail -1 "$tmp/out")
each=$((ir / pairs))
echo "$which: $each instructions per pair, at most $limit"
[ "$each" -le "$limit" ]
