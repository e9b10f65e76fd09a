#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What it is worth that hipFree does not wait while nobody can notice (SOMASHIM_FREE_SYNC=auto): microseconds per turn
# of a loop of hipMalloc, one piece of device work, and hipFree, in a program that has only the null stream. On the
# software device, where a launch costs the host 4 us and the kernel runs for 10.
#   bench/debts.sh [--rounds N] [BUILD_DIR]
# The modes take turns, and each figure is the least of all rounds (9). The work of `memset` rows is done by this
# machine's processor, which writes 4 MiB much more slowly than a GPU does.
# Exits 2 where nothing could be measured.
set -uo pipefail
. "$(dirname "$0")/../scripts/usage.sh"
rounds=9
while [ $# != 0 ]; do
	case $1 in
	--rounds) needs_number "$@"; rounds=$2; shift 2 ;;
	-*) wrong_call "there is no option $1" ;;
	*) break ;;
	esac
done
build=${1:-${BUILD:-$(dirname "$0")/../build}}
[ -x "$build/bench/bench_debts" ] || wrong_call "$build has no bench/bench_debts"
unset LD_PRELOAD LD_AUDIT ${!SOMASHIM_@} ${!SOMASIM_@}
export SOMASIM_QUIET=1 SOMASIM_SEED=1 SOMASIM_DELAY_US=0
export SOMASIM_COST=hipLaunchKernel:4,hipMemsetAsync:4 LD_LIBRARY_PATH=$build/sim
for ((round = 0; round < rounds; round++)); do
	for mode in auto always never; do
		LD_PRELOAD=$build/shim/libsomashim.so SOMASHIM_FREE_SYNC=$mode "$build/bench/bench_debts" 1000 |
			sed "s/^/$mode /"
	done
done | awk '
	!(($1, $2) in least) || $3 < least[$1, $2] { least[$1, $2] = $3 }
	!seen[$2]++ { loop[++n] = $2 }
	END {
		printf "%-12s %8s %8s %8s %14s\n", "us per turn", "auto", "always", "never", "always / auto"
		for (i = 1; i <= n; i++) {
			l = loop[i]
			printf "%-12s %8.1f %8.1f %8.1f %14.2f\n", l, least["auto", l], least["always", l],
				least["never", l], least["always", l] / least["auto", l]
		}
		exit n ? 0 : 2
	}'
