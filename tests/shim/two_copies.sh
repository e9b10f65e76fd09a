#!/bin/bash
# SPDX-License-Identifier: MIT
# Two copies of the library in one process: the first one serves, and the other stands aside and is named.
#   two_copies.sh LIBRARY OLD PROGRAM SIM [AUDITOR]
# OLD: what stands for a version that knows nothing of copies. PROGRAM: shim_alloc_loop.
set -u
library=$1 old=$2 program=$3 auditor=${5:-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-copies.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$4 SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4
mkdir "$dir/image"
copy=$dir/image/libsomashim.so
cp "$library" "$copy"
sed 's/somashim_version/SOMASHIM_VERSION/g' "$library" >"$dir/unnamed.so"

fail() { echo "$*"; cat "$dir/out" "$dir/err"; exit 1; }

# starts LIST VARIABLE=VALUE...: the program with these preloads.
starts() {
	local list=$1
	shift
	timeout -s KILL 30 env "$@" LD_PRELOAD="$list" "$program" 6 >"$dir/out" 2>"$dir/err" || fail "$list $*: status $?"
}
# named COUNT SERVES ASIDE
named() {
	[ "$(grep -c 'two copies' "$dir/err")" = "$1" ] || fail "not $1 lines"
	grep -q "two copies of libsomashim are loaded: $2 ([^)]*) serves the program, and $3 ([^)]*) stands aside" "$dir/err" ||
		fail "not '$2' and '$3'"
}
served() { [ "$(grep -c 'allocations 12, frees 12' "$dir/err")" = 1 ] || fail "not served once"; }

starts "$library" SOMASHIM_STATS=1
grep -q 'two copies' "$dir/err" && fail "two copies of one"
starts "$library:$copy" SOMASHIM_STATS=1 && named 1 "$library" "$copy" && served
starts "$copy:$library" SOMASHIM_STATS=1 && named 1 "$copy" "$library" && served
starts "$library:$copy" SOMASHIM_DISABLE=1 && named 1 "$library" "$copy"
starts "$library:$copy:$dir/unnamed.so" SOMASHIM_STATS=1 && named 2 "$library" "$copy" && served
# One file by two paths is one copy.
ln -s "$library" "$dir/link.so"
starts "$library:$dir/link.so" SOMASHIM_STATS=1 && served
grep -q 'two copies' "$dir/err" && fail "two copies of one file"
# Counted once, in the page of somashim run.
[ -n "$auditor" ] && starts "$library:$copy" SOMASHIM_STATS=1 LD_AUDIT="$auditor" && named 1 "$library" "$copy" && served
# An older version behind us is passed over. In front of us it calls us, and we pass everything on.
starts "$library:$old" SOMASHIM_STATS=1 && named 1 "$library" "$old" && served
grep -q '^old: calls 0$' "$dir/out" || fail "the old copy was not passed over"
starts "$old:$library" SOMASHIM_STATS=1 && named 1 "$old" "$library"
grep -q '^old: calls [1-9]' "$dir/out" || fail "the old copy was not called"
grep -q 'allocations' "$dir/err" && fail "the second copy serves, too"
exit 0
