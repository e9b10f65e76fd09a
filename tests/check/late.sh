#!/bin/bash
# SPDX-License-Identifier: MIT
# Blocks that destructors free at the end of the process are not leaked, also in libraries, whose
# destructors run after those of a preload. Leaks are told however the process ends.
#   late.sh SOMASHIM CHECK_LATE OPENED
set -u
check() {
	local want=$1 text=$2 got=0 out
	shift 2
	out=$("$somashim" check --leak-check full --error-exitcode 9 "$@" 2>&1) || got=$?
	[ $got = "$want" ] && grep -q -- "$text" <<<"$out" || { echo "$*: status $got, no '$text'"; echo "$out"; exit 1; }
}
somashim=$1
check 0 '^========= CHECKED: 4 uses and frees' "$2" linked "$3"
LD_PRELOAD=$(realpath "$3") check 0 '^========= CHECKED: 2 uses and frees' "$2" once # of the library that is preloaded
check 9 '^========= ERROR SUMMARY: 2 errors$' "$2" twice
for how in leak quick now reset; do
	check 9 '^========= LEAK SUMMARY: 4096 bytes leaked in 1 allocation$' "$2" $how
done
