#!/bin/sh
# SPDX-License-Identifier: MIT
# One replay of a generated log on the software device:
# replay.sh SOMASHIM REPLAY_HIP SIM_DIR PRELOAD|- KIND ROUNDS [replay_hip options]
set -eu
somashim=$1 app=$2 sim=$3 preload=$4 kind=$5 rounds=$6
shift 6

log=$(mktemp "${TMPDIR:-/tmp}/somashim-replay.XXXXXX")
trap 'rm -f "$log" "$log.stats"' EXIT
"$somashim" generate --rounds "$rounds" --seed 7 -o "$log" "$kind"
asan=${ASAN_OPTIONS:-}
if [ "$preload" = - ]; then
	preload=
else
	# A sanitized preload is never the first library, and the shim leaves its
	# memory to the end of the process on purpose.
	asan=${asan:+$asan:}verify_asan_link_order=0:detect_leaks=0
fi
# env, so that no tool of this script runs with the preload.
env LD_LIBRARY_PATH="$sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" LD_PRELOAD="$preload" \
	ASAN_OPTIONS="$asan" SOMASIM_SEED=7 SOMASHIM_STATS=1 SOMASHIM_LOG="$log.stats" "$app" "$@" "$log"
# The loader goes on without a preload that it can't load.
if [ -n "$preload" ]; then
	cat "$log.stats"
	grep -q 'allocations [1-9]' "$log.stats"
fi
