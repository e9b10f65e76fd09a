#!/bin/bash
# SPDX-License-Identifier: MIT
# Somebody cuts the pages that a program and the command have mapped: nobody is killed, and nothing is said that is not known.
#   cut_pages.sh SOMASHIM LIBRARY CUT_PAGES
set -u
somashim=$1 library=$2 program=$3
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-cut-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir SOMASHIM_LIVE=$dir/live
mkdir "$SOMASHIM_LIVE"

fail() { echo "$*"; cat "$dir/out"; exit 1; }
# expect STATUS COMMAND...
expect() {
	local want=$1 got=0
	shift
	timeout 60 "$@" >"$dir/out" 2>&1 || got=$?
	[ $got = "$want" ] || fail "$*: status $got, not $want"
}
unknown() { grep -q "^somashim: $1: .*was cut or overwritten: what the program did is not known" "$dir/out" || fail 'it does not say so'; }
silent() { ! grep -q -- "$1" "$dir/out" || fail "'$1' is said"; }

expect 0 env LD_PRELOAD="$library" "$program"
expect 0 "$somashim" run "$program"
unknown run
silent 'not used'
expect 0 "$somashim" record -o "$dir/trace" "$program"
unknown record
# That all findings could be written is not known either.
expect 2 "$somashim" check "$program"
unknown check
