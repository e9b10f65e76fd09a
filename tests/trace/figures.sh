#!/bin/bash
# SPDX-License-Identifier: MIT
# The figures of a recording are those that the program reads from its pools, and those of
# SOMASHIM_STATS: exactly, also with many threads, and for processes that end in other ways.
#   figures.sh PRELOAD TRACE_RECORDED TRACE_FIGURES SIM
set -u
preload=$1 app=$2 figures=$3 sim=$4
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-figures-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$sim SOMASIM_QUIET=1
# A child of a process with threads may inherit a lock of the sanitizer's allocator, which a look for leaks waits for.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0
unset LD_PRELOAD LD_AUDIT SOMASHIM_TRACE

fail() { echo "$*"; cat "$dir"/out "$dir"/err "$dir"/figures 2>/dev/null; exit 1; }

# record CASE [NAME=VALUE...]: records the case of the program; its status is the result.
record() {
	local what=$1
	shift
	rm -f "$dir"/trace*
	env SOMASHIM_STATS=1 SOMASHIM_TRACE="$dir/trace" LD_PRELOAD="$preload" "$@" \
		"$app" "$what" >"$dir/out" 2>"$dir/err"
}
# read_back FILE STATE: the file is whole, and this is how its recording ended.
read_back() {
	"$figures" "$1" >"$dir/figures" || fail "$1: $(tail -1 "$dir/figures")"
	grep -qx "problems 0" "$dir/figures" || fail "$1 is damaged"
	grep -qx "lost 0" "$dir/figures" || fail "$1 lost events"
	grep -qx "end $2" "$dir/figures" || fail "$1: not $2"
}
# stats: the table of SOMASHIM_STATS as trace_figures prints it, one line per pool.
stats() {
	sed -n 's/^somashim: //p' "$dir/err" | sed -E -n '
		/^device .* pool \(/ { s/ \(.*//; h }
		/^  allocations/ { s/, hits .*(, out of memory)/\1/; s/^ //; H }
		/^  segments/ { s/.*(, reserved .*), released.*/\1/; H; x; s/\n//g; p }'
}
# same: the file agrees with the program and with SOMASHIM_STATS.
same() {
	read_back "$dir/trace" ended
	[ -s "$dir/out" ] || fail "$*: the program printed nothing"
	while read -r line; do
		grep -qxF "$line" "$dir/figures" || fail "$*: the pool says $line"
	done <"$dir/out"
	stats >"$dir/stats"
	[ -s "$dir/stats" ] || fail "$*: no statistics"
	while read -r line; do
		grep -qxF "$line" "$dir/figures" || fail "$*: the statistics say $line"
	done <"$dir/stats"
}

for how in "SOMASIM_HIP_VERSION=5.7" "SOMASIM_HIP_VERSION=6.4 SOMASHIM_BACKING=vmm" \
	"SOMASIM_HIP_VERSION=7.2 SOMASHIM_FREE_SYNC=never" \
	"SOMASIM_HIP_VERSION=7.2 SOMASHIM_BACKING=hsa SOMASHIM_DECAY_MS=0"; do
	for what in alone threads; do
		record $what $how || fail "$what, $how: status $?"
		same "$what, $how"
		[ "$(sed -n 's/^live //p' "$dir/figures")" -gt 0 ] || fail "$what: nothing is live"
	done
done
export SOMASIM_HIP_VERSION=6.4
record pools || fail "pools: status $?"
same pools
[ "$(grep -c 'pool [0-9]* pool allocations 1, frees 1, .* reserved 0.0 MiB (high 4.0)' "$dir/figures")" = 20 ] ||
	fail "not twenty pools"
record reset || fail "reset: status $?"
read_back "$dir/trace" ended
grep -qx "live 1" "$dir/figures" || fail "reset: blocks outlive it"

# Chunks that move, and growth that fails half-way.
record moves SOMASHIM_BACKING=vmm SOMASHIM_LIMIT=300M || fail "moves: status $?"
same moves
grep -q 'remaps [1-9]' "$dir/err" || fail "nothing moved"

# Limits and a device that is full.
record oom || fail "oom: status $?"
same oom
grep -q "default pool allocations 1, frees 0, out of memory 3," "$dir/figures" || fail "oom"
record oom SOMASHIM_LIMIT=1G || fail "limit: status $?"
same limit

# Processes that end in other ways.
record _exit || fail "_exit: status $?"
read_back "$dir/trace" "killed, or copied while it ran"
grep -q "classic pool allocations 2, frees 1," "$dir/figures" || fail "_exit: events are missing"
record killed
[ $? = 137 ] || fail "killed: status $?"
read_back "$dir/trace" "killed, or copied while it ran"
record fork-before || fail "fork-before: status $?"
[ "$(ls "$dir"/trace* | wc -l)" = 2 ] || fail "fork-before: not two files"
for file in "$dir"/trace*; do
	read_back "$file" ended
	grep -qx "live 1" "$dir/figures" || fail "fork-before: $file"
done
record fork-after || fail "fork-after: status $?"
[ "$(ls "$dir"/trace* | wc -l)" = 1 ] || fail "fork-after: the child has a file"
same fork-after
exit 0
