#!/bin/bash
# SPDX-License-Identifier: MIT
# `somashim record --ring` and `somashim dump --trace`: a program that runs on, is dumped, and is killed.
#   ring.sh SOMASHIM ALLOC_LOOP SIM
set -u
somashim=$(realpath "$1") app=$(realpath "$2") sim=$3
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-ring-test.XXXXXX")
trap 'kill -9 ${pids:-} 2>/dev/null; rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$sim SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4 SOMASHIM_STATS=0
unset LD_PRELOAD LD_AUDIT SOMASHIM_TRACE SOMASHIM_TRACE_RING

fail() { echo "$*"; cat "$dir"/err "$dir"/out 2>/dev/null; exit 1; }
figure() { "$somashim" report --json "$2" | grep -o "\"$1\": [0-9]*" | head -1 | grep -o '[0-9]*$'; }
# The program says who it is, and then runs for long.
program=(sh -c 'echo $$ >"$0.tmp"; mv "$0.tmp" "$0"; exec "$@"' "$dir/pid" "$app" 100000000)
# program_of FILE: its process id, as soon as it records to the file.
program_of() {
	local pid=
	for ((i = 0; i < 6000; i++)); do
		pid=$(cat "$dir/pid") && grep -q "$1" "/proc/$pid/maps" && break
		sleep 0.01
	done 2>/dev/null
	rm -f "$dir/pid"
	echo "$pid"
}

"$somashim" record --ring 1s,4M -o "$dir/ring" "${program[@]}" >"$dir/out" 2>"$dir/err" &
record=$! pids=$record
pid=$(program_of "$dir/ring")
[ -n "$pid" ] || fail "the program does not record"
# Until the first events are too old.
for ((i = 0; i < 6000; i++)); do
	begin=$(od -An -t u8 -j 72 -N 8 "$dir/ring" | tr -d ' ')
	[ "$begin" != 0 ] && break
	sleep 0.05
done
[ "$begin" != 0 ] || fail "the beginning has not moved"

"$somashim" dump --trace -o "$dir/one" "$pid" 2>"$dir/err" || fail "dump: status $?"
grep -q "recorded in $dir/one$" "$dir/err" || fail "the dump is not named"
kill -0 "$pid" || fail "the program has ended"
for what in lost_events unknown_frees lost_frees damaged_places; do
	[ "$(figure $what "$dir/one")" = 0 ] || fail "$what $(figure $what "$dir/one")"
done
[ "$(figure allocations "$dir/one")" -gt 100 ] || fail "few allocations"
"$somashim" report "$dir/one" | grep -q 'main' || fail "no names"
"$somashim" convert --to rmm -o "$dir/one.csv" "$dir/one" || fail "not converted"
"$somashim" replay "$dir/one.csv" >"$dir/out" 2>&1 || fail "not replayed"
(cd "$dir" && "$somashim" dump -T "$pid" 2>err) || fail "no default name"
[ -e "$dir/$pid.trace" ] || fail "another default name"
"$somashim" dump --trace -o - "$pid" >"$dir/three" 2>"$dir/err" || fail "dump -o -: $(cat "$dir/err")"
[ "$(figure allocations "$dir/three")" -gt 100 ] && [ ! -e - ] || fail "dump -o -: $(ls -l "$dir/three")"
# An existing file is not overwritten.
"$somashim" dump --trace -o "$dir/one" "$pid" 2>"$dir/err" && fail "overwritten"
grep -q "$dir/one: File exists" "$dir/err" || fail "no reason"

# On the disk: 4 MiB of events, as much again at most of what older ones left, and the header.
size=$(($(stat -c '%b * %B' "$dir/ring")))
[ $size -le $((2 * 4194304 + 65536)) ] || fail "$size bytes"
kill -9 "$pid"
wait $record
[ "$(figure unknown_frees "$dir/ring")" = 0 ] || fail "killed: $(figure unknown_frees "$dir/ring")"
[ "$(figure damaged_places "$dir/ring")" = 0 ] || fail "killed: damage"
[ "$(figure allocations "$dir/ring")" -gt 100 ] || fail "killed: few allocations"
[ "$("$somashim" report --json "$dir/ring" | grep -o '"seconds": [0-9.]*' | head -1)" ] || fail "no end"

# The dump of a process that has ended, has no ring, or none that records.
"$somashim" dump --trace "$pid" 2>"$dir/err"
[ $? = 1 ] && grep -q "there is no process $pid" "$dir/err" || fail "a dead process"
"$somashim" record -o "$dir/whole" "${program[@]}" >/dev/null 2>&1 &
record=$! pids=$record
pid=$(program_of "$dir/whole")
"$somashim" dump --trace -o "$dir/two" "$pid" 2>"$dir/err"
[ $? = 1 ] && grep -q "is no ring" "$dir/err" || fail "a process without a ring"
[ ! -e "$dir/two" ] || fail "a file of nothing"
kill -9 "$pid"
wait $record
"$somashim" dump --trace $$ 2>"$dir/err"
[ $? = 1 ] && grep -q "does not record" "$dir/err" || fail "a process that does not record"
for size in 0 x 10 3M 1m,2m -5m; do
	"$somashim" record --ring=$size true 2>"$dir/err"
	[ $? = 2 ] && grep -q -- "--ring: '$size' is no time" "$dir/err" || fail "--ring $size is taken"
done

# Files of other users have the names of a recording of root's, and are held: they are not waited for.
[ "$(id -u)" = 0 ] || exit 0
mkdir -m 777 "$dir/shared"
chmod 755 "$dir"
cp "$dir/ring" "$dir/shared/p.1"
chown 65534 "$dir/shared/p.1"
python3 -c '
import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.flock(f, fcntl.LOCK_EX)
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)) # F_OFD_SETLK
print("held", flush=True)
time.sleep(1000)' "$dir/shared/p.1" >"$dir/held" &
pids=$!
for ((i = 0; i < 1000; i++)); do grep -q held "$dir/held" && break; sleep 0.01; done
# The pipe ends when the keeper has ended, too.
timeout 60 "$somashim" record --ring 60s,4M -o "$dir/shared/p.%p" "$app" 60000 64 2>&1 | timeout 60 cat >"$dir/out" ||
	fail "the keeper of the ring outlives its program"
[ "${PIPESTATUS[0]}" = 0 ] || fail "record: status $?"
file=$(grep -o "recorded in .*" "$dir/out" | cut -d' ' -f3)
[ "$(figure lost_events "$file")" = 0 ] || fail "$(figure lost_events "$file") events are lost"
[ "$(od -An -t u8 -j 72 -N 8 "$file" | tr -d ' ')" != 0 ] || fail "the ring was not full"
kill $pids
exit 0
