#!/bin/bash
# SPDX-License-Identifier: MIT
# Disks that are full, files that may not grow, and what a killed `somashim` leaves.
#   full_disk.sh SOMASHIM LIBRARY FILE_LIMIT ALLOC_LOOP CHECK_CORPUS SIM_DIR
set -u
# Disks of its own.
if [ -z "${FULL_DISK:-}" ]; then
	[ "$(id -u)" = 0 ] && root= || root=--map-root-user
	FULL_DISK=1 unshare $root --mount true 2>/dev/null && FULL_DISK=1 exec unshare $root --mount "$0" "$@"
fi
somashim=$(realpath "$1") library=$(realpath "$2") limit=$(realpath "$3") loop=$(realpath "$4") corpus=$(realpath "$5")
export LD_LIBRARY_PATH=$6 SOMASIM_QUIET=1
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-full-test.XXXXXX")
export TMPDIR=$dir/full
mkdir "$dir/full" "$dir/work"
trap 'umount "$dir/full" 2>/dev/null; rm -rf "$dir"' EXIT

fail() { echo "$*"; cat "$dir/out" 2>/dev/null; exit 1; }
# expect STATUS COMMAND...
expect() {
	local want=$1 got=0
	shift
	timeout 60 "$@" 2>&1 | cat >"$dir/out" # a pipe has no limit
	got=${PIPESTATUS[0]}
	[ $got = "$want" ] || fail "$*: status $got, not $want"
}
says() { grep -q -- "$1" "$dir/out" || fail "no '$1'"; }
silent() { ! grep -q -- "$1" "$dir/out" || fail "'$1' is said"; }
cd "$dir/work" || exit 1

# No file may grow: there is no page, and nobody is killed.
for bytes in 0 4096 40000; do
	expect 0 env LD_PRELOAD="$library" "$limit" $bytes
	for variable in JOURNAL METRICS LOG TRACE CHECK_FILE; do
		rm -f "$dir/work/some"
		expect 0 env LD_PRELOAD="$library" SOMASHIM_$variable="$dir/work/some" SOMASHIM_CHECK=order SOMASHIM_STATS=1 "$limit" $bytes
	done
done
# There is room for the beginning of a recording, and for no event.
expect 0 "$somashim" record -o "$dir/work/begun" "$limit" 40000
says 'cannot open SOMASHIM_TRACE .*File too large'
silent '^somashim: recorded in'
# (The software device makes a file of its memory, so it does not start.)
none() { expect "$1" bash -c 'ulimit -f 0; exec "$@"' - "${@:2}"; }
none 0 "$somashim" run true
says 'run: .*File too large: how it is used will not be said'
none 2 "$somashim" check true
says 'check: .*File too large'
none 0 "$somashim" record -o "$dir/work/trace" true
says 'whether it is used will not be said'

# What is left by a process that was killed goes, what is held stays.
touch "$TMPDIR"/somashim-run.{aaaaaa,bbbbbb} "$TMPDIR/somashim-run.cccccc"
mkdir "$TMPDIR/somashim-check.dddddd"
touch "$TMPDIR/somashim-check.dddddd/1.json"
touch -d '1 hour ago' "$TMPDIR"/somashim-run.{aaaaaa,bbbbbb} "$TMPDIR/somashim-check.dddddd"
exec 9>>"$TMPDIR/somashim-run.bbbbbb"
flock -n 9 || fail 'no locks'
expect 0 "$somashim" run "$loop"
expect 0 "$somashim" check "$corpus" right-one_stream
[ "$(ls "$TMPDIR")" = "$(printf 'somashim-run.bbbbbb\nsomashim-run.cccccc')" ] || fail "there is left: $(ls "$TMPDIR")"
exec 9>&-

# A disk of one page, which is taken.
[ -n "${FULL_DISK:-}" ] && mount -t tmpfs -o size=4k none "$TMPDIR" 2>/dev/null || { echo 'this user may not mount'; exit 77; }
echo taken >"$TMPDIR/taken"
expect 0 "$somashim" run "$loop"
says 'somashim: .*used'
expect 0 "$somashim" record -o "$dir/work/trace" "$loop"
says 'recorded in'
expect 9 "$somashim" check --error-exitcode 9 "$corpus" free-without-wait
says 'ERROR SUMMARY: 1 error$'
timeout 60 "$somashim" doctor >"$dir/out" 2>&1
[ $? -lt 128 ] || fail 'doctor is killed'
[ "$(ls "$TMPDIR")" = taken ] || fail "there is left: $(ls "$TMPDIR")"
umount "$TMPDIR"

# A disk that is full when the first finding is made.
mount -t tmpfs -o size=128k none "$TMPDIR"
expect 2 "$somashim" check sh -c 'head -c 1M /dev/zero >"$TMPDIR/taken" 2>/dev/null; exec "$@"' - "$corpus" free-without-wait
says 'cannot write SOMASHIM_CHECK_FILE .*No space left on device: findings come here'
says '^========= Stream-ordered use after free'
says 'check: 1 process could not write all that was found'
