#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs random programs of the oracle that nobody has run before, and lists the seeds that fail. Exits with 1 if any does.
#
# The seeds begin at a number that is drawn, or at --start, and are printed. A run that was stopped goes on where it was if it
# is given the same --state, a folder. Processes take blocks of seeds in turn, so all of them have work until the end.
#
#   scripts/oracle-long.sh [--count N] [--start SEED] [--jobs J] [--minutes M] [--state DIR] [BUILD]
set -u
. "$(dirname "$0")/usage.sh"
count=10000000
block=20000
start=
jobs=$(nproc)
minutes=
state=
build=$(dirname "$0")/../build
while [ $# -gt 0 ]; do
	case $1 in
	--count) needs_number "$@"; count=$2; shift 2 ;;
	--start) needs_number "$@"; start=$2; shift 2 ;;
	--jobs) needs_number "$@"; jobs=$2; shift 2 ;;
	--minutes) needs_number "$@"; minutes=$2; shift 2 ;;
	--state) needs_value "$@"; state=$2; shift 2 ;;
	-*) wrong_call "there is no option $1" ;;
	*) build=$1; shift ;;
	esac
done
oracle=$build/tests/oracle/oracle
[ -x "$oracle" ] || wrong_call "no $oracle: run ninja -C $build"
if [ -z "$state" ]; then
	state=$(mktemp -d) || exit 2
	trap 'rm -rf "$state"' EXIT
fi
mkdir -p "$state" || exit 2
if [ -e "$state/seeds" ]; then
	read -r start count <"$state/seeds"
else
	# Ten digits or so, away from the small numbers that the tests use.
	[ -n "$start" ] || start=$((10000000000 + $(od -An -N4 -tu4 /dev/urandom) * 10))
	echo "$start $count" >"$state/seeds"
fi
# One run, one oracle: a copy, so that a build meanwhile changes nothing.
[ -e "$state/oracle" ] || cp "$oracle" "$state/oracle" || exit 2
blocks=$(((count + block - 1) / block))
end=${minutes:+$((SECONDS + 60 * minutes))}
echo "seeds $start to $((start + count - 1)), $jobs at a time"

# All programs of one block. After a failure it goes on behind the seed that failed.
run_block() {
	seed=$((start + $1 * block))
	last=$((seed + block < start + count ? seed + block : start + count))
	while [ $seed -lt $last ]; do
		said=$("$state/oracle" --start $seed --count $((last - seed)) --jobs 1 --no-shrink 2>&1) && break
		said=$(echo "$said" | tail -1)
		bad=$(echo "$said" | sed -n 's/^\(FAILED \)\?seed \([0-9]*\)[: ].*/\2/p')
		[ -n "$bad" ] || said="block $1: $said" # the oracle itself is broken
		echo "$said" | tee -a "$state/failed"
		[ -n "$bad" ] || return
		seed=$((bad + 1))
	done
	: >"$state/done.$1"
}

# Every jobs-th block, from the given one on.
worker() {
	for ((i = $1; i < blocks; i += jobs)); do
		[ -z "$end" ] || [ $SECONDS -lt "$end" ] || return
		[ -e "$state/done.$i" ] || run_block $i
	done
}

# In braces, or an edit of this file would change a run that is under way.
{
	trap 'kill $(jobs -p)' INT TERM
	for ((k = 0; k < jobs; k++)); do
		worker $k &
	done
	wait
	run=$(find "$state" -name 'done.*' | wc -l)
	bad=$(sort -u "$state/failed" 2>/dev/null | wc -l)
	echo "$((run < blocks ? run * block : count)) of $count programs from seed $start, $bad failed"
	[ "$bad" = 0 ] || { sort -u "$state/failed"; exit 1; }
	exit 0
}
