#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the command line: what it prints, refuses, and passes on.
# test_cli.sh SOMASHIM
set -eu
somashim=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-cli.XXXXXX")
trap 'rm -rf "$dir"' EXIT

fail() { echo "$*" >&2; exit 1; }
# status WANT COMMAND...: runs it and compares the exit status.
status() {
	want=$1
	shift
	got=0
	"$@" >"$dir/out" 2>"$dir/err" || got=$?
	[ "$got" = "$want" ] || { cat "$dir/out" "$dir/err" >&2; fail "$*: status $got, not $want"; }
}

status 2 "$somashim"
status 2 "$somashim" nothing
# The nearest subcommand is named.
for wrong in runn:run recrod:record repor:report docter:doctor chek:check; do
	status 2 "$somashim" "${wrong%:*}" x
	grep -q "there is no command '${wrong%:*}'; the nearest is '${wrong#*:}'" "$dir/err" || fail "$wrong: $(cat "$dir/err")"
done
status 0 "$somashim" --version

# The switch of a framework is set for the program, and a choice of the user's own is left alone.
status 0 "$somashim" run --framework list
for name in pytorch jax rocblas cupy rmm; do
	grep -qx "$name" "$dir/out" || fail "--framework list: no $name"
done
for command in "run --quiet" run "record -o $dir/f.trace"; do
	status 0 env -u PYTORCH_ALLOC_CONF "$somashim" $command --framework pytorch -- \
		sh -c 'test "$PYTORCH_ALLOC_CONF" = backend:hipMallocAsync'
done
grep -q '^somashim: PYTORCH_ALLOC_CONF=backend:hipMallocAsync: .*; lost: ' "$dir/err" || fail "record --framework: $(cat "$dir/err")"
status 2 env PYTORCH_ALLOC_CONF=expandable_segments:True "$somashim" run --framework pytorch true
grep -q "PYTORCH_ALLOC_CONF is 'expandable_segments:True' already" "$dir/err" || fail "--framework: $(cat "$dir/err")"
status 2 "$somashim" run --framework cupy true
grep -q 'cupy has no variable: call cupy.cuda.set_allocator(None)' "$dir/err" || fail "--framework cupy: $(cat "$dir/err")"
status 2 "$somashim" run --framework nonesuch true
status 0 "$somashim" options
grep -q '^SOMASHIM_BACKING .*auto|hip|hsa|vmm' "$dir/out" || fail "options: no BACKING"
status 0 "$somashim" options --markdown
status 0 "$somashim" options --json
python3 -c 'import json, sys
rows = {r["name"]: r for r in json.load(sys.stdin)}
assert rows["SOMASHIM_DECAY_MS"]["default"] == "1000", rows
assert rows["SOMASHIM_LIMIT"]["default"] is None, rows
assert all(r["values"] and r["meaning"] for r in rows.values()), rows' <"$dir/out" ||
	fail "options --json: $(cat "$dir/out")"

# Help that was asked for goes to stdout with status 0. Errors are named.
for command in run record check report convert replay generate doctor options; do
	for ask in "$command --help" "$command -h" "help $command"; do
		status 0 "$somashim" $ask
		grep -q "^Usage: somashim $command" "$dir/out" || fail "$ask: $(cat "$dir/out")"
		[ ! -s "$dir/err" ] || fail "$ask: $(cat "$dir/err")"
	done
	status 0 "$somashim" $command --usage
	grep -q "^Usage: somashim $command" "$dir/out" || fail "$command --usage: $(cat "$dir/out")"
	status 2 "$somashim" $command --nonsense
	[ -s "$dir/err" ] || fail "$command --nonsense: nothing is said"
done
status 2 "$somashim" help nothing

# Completion: subcommands, their options, and nothing behind the program.
if [ -n "${COMPLETION:-}" ] && command -v bash >/dev/null; then
	"$COMPLETION" "$somashim" bash >"$dir/completion"
	bash -c '
		compopt() { :; }
		. "$1"
		complete_to() { want=$1; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _somashim
			[ "${COMPREPLY[*]}" = "$want" ] || { echo "$*: ${COMPREPLY[*]}, not $want" >&2; exit 1; }; }
		complete_to "record replay report" somashim re
		complete_to "--output" somashim record --o
		complete_to "--framework" somashim run --f
		complete_to "" somashim run ./program --f' bash "$dir/completion" || fail "completion"
	for shell in zsh fish; do
		"$COMPLETION" "$somashim" $shell >"$dir/completion"
		grep -q 'framework' "$dir/completion" || fail "completion: $shell"
		! command -v $shell >/dev/null || $shell -n "$dir/completion" || fail "completion: $shell"
	done
fi

# A failed write is a failure.
if [ -c /dev/full ]; then
	for command in options --help --version "generate serving"; do
		"$somashim" $command >/dev/full 2>"$dir/err" && fail "$command: written to nowhere"
		grep -q 'cannot write: No space' "$dir/err" || fail "$command: $(cat "$dir/err")"
	done
fi

# Options that contradict each other.
for call in "options --json --markdown" "options -mj" "doctor --save --forget" "doctor --forget --runtime /" \
	"report --run 0 $0" "report --json -o page $0"; do
	status 2 "$somashim" $call
	[ -s "$dir/err" ] && [ ! -s "$dir/out" ] || fail "$call: $(cat "$dir/out" "$dir/err")"
done

# A process is named by plain digits, and top says which ones it looked for.
for pid in 1K 5% 0 -1 0x10 99999999999; do
	for command in "top --once" dump sleep wake; do
		status 2 "$somashim" $command -- "$pid"
		grep -q "'$pid' is no process id" "$dir/err" || fail "$command $pid: $(cat "$dir/err")"
	done
done
status 0 env "SOMASHIM_LIVE=$dir" "$somashim" top --once
grep -q '^No process of this user is served by somashim\.$' "$dir/out" || fail "top: $(cat "$dir/out")"
status 0 env "SOMASHIM_LIVE=$dir" "$somashim" top --once 4194305
grep -q '^Process 4194305 is not served by somashim\.$' "$dir/out" || fail "top: $(cat "$dir/out")"
status 0 env "SOMASHIM_LIVE=$dir" "$somashim" top --once 4194305 4194306
grep -q '^None of the processes 4194305, 4194306 is served by somashim\.$' "$dir/out" ||
	fail "top: $(cat "$dir/out")"

# generate: the same seed gives the same log, another seed another log.
for kind in training serving dataframe handoff amr oneshot weightsync powers; do
	status 0 "$somashim" generate --rounds 2 --seed 3 -o "$dir/a" $kind
	status 0 "$somashim" generate --rounds 2 --seed 3 -o "$dir/b" $kind
	cmp -s "$dir/a" "$dir/b" || fail "$kind: not reproducible"
	status 0 "$somashim" replay --json "$dir/a"
	python3 -m json.tool <"$dir/out" >/dev/null || fail "replay --json: $(cat "$dir/out")"
	for key in reserved_peak used_peak allocations hits driver_calls; do
		grep -q "\"$key\": [0-9]" "$dir/out" || fail "replay --json: no $key"
	done
done
status 2 "$somashim" generate
status 2 "$somashim" generate training --scale 0
status 2 "$somashim" generate training -o "$dir/none/log"
grep -q "generate: $dir/none/log: No such file" "$dir/err" || fail "generate -o: $(cat "$dir/err")"
if [ -c /dev/full ]; then
	status 2 "$somashim" generate serving -o /dev/full
	grep -q "generate: /dev/full: No space" "$dir/err" || fail "generate -o: $(cat "$dir/err")"
fi
# Who cannot write all of it (here by its limit on a file's size) says so, and leaves what was there before.
echo old >"$dir/killed"
for name in killed new; do
	got=0
	(ulimit -f 1; exec "$somashim" generate --rounds 9 -o "$dir/$name" training) 2>"$dir/err" || got=$?
	[ $got = 2 ] && grep -q "generate: $dir/$name: File too large" "$dir/err" || fail "generate -o: a limit: $got"
done
[ "$(cat "$dir/killed")" = old ] || fail "generate -o: half a file took the place of a whole one"
[ ! -e "$dir/new" ] || fail "generate -o: half a file has the name of a whole one"
# What cannot be replaced is written where it is: a link, a pipe. Modes stay.
ln -s killed "$dir/link"
chmod 640 "$dir/killed"
status 0 "$somashim" generate --seed 3 --rounds 2 -o "$dir/link" powers
[ -L "$dir/link" ] && cmp -s "$dir/a" "$dir/killed" || fail "generate -o: not through a link"
status 0 "$somashim" generate --seed 3 --rounds 2 -o "$dir/killed" powers
[ "$(stat -c %a "$dir/killed")" = 640 ] || fail "generate -o: another mode"
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/through" &
status 0 "$somashim" generate --seed 3 --rounds 2 -o "$dir/pipe" powers
wait
cmp -s "$dir/a" "$dir/through" && [ -p "$dir/pipe" ] || fail "generate -o: not through a pipe"
# A signal leaves nothing beside the file, and is still how the command ends. One that is ignored stays ignored.
for signal in 1 2 3 15; do
	env --default-signal=$signal "$somashim" generate --rounds 16777216 -o "$dir/killed" training &
	while [ ! -s "$dir/killed.$!.part" ] && kill -0 $!; do sleep 0.01; done
	kill -$signal $!
	got=0
	wait $! 2>/dev/null || got=$?
	[ $got = $((128 + signal)) ] || fail "generate -o: status $got after signal $signal"
done
(trap '' HUP; exec "$somashim" generate --rounds 2000 -o "$dir/new" training) &
while [ ! -s "$dir/new.$!.part" ] && [ ! -e "$dir/new" ]; do sleep 0.01; done
kill -HUP $! 2>/dev/null
wait $! && [ -s "$dir/new" ] || fail "generate -o: SIGHUP ended what ignores it"
[ -z "$(find "$dir" -name '*.part')" ] || fail "generate -o: a part is left"
# "-" is standard output.
status 0 "$somashim" generate --seed 3 --rounds 2 -o - powers
cmp -s "$dir/a" "$dir/out" || fail "generate -o -: something else"
status 2 "$somashim" record -o - true
grep -q 'a recording is a file' "$dir/err" || fail "record -o -: $(cat "$dir/err")"
status 2 "$somashim" generate nothing
grep -q "no kind 'nothing'" "$dir/err" || fail "generate: the kind is not named"

# replay: malformed logs are reported with line and reason.
status 2 "$somashim" replay "$dir/none"
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.0,allocate,0x1,x,0x0\n' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'line 2: the size' "$dir/err" || fail "replay: the line is not named"
# malformed ROWS WORD: the error message has the line and the word.
malformed() {
	{
		echo 'Thread,Time,Action,Pointer,Size,Stream'
		printf "$1"
	} >"$dir/bad"
	for how in "" "--backing vmm" "--json"; do
		status 2 "$somashim" replay $how "$dir/bad"
		grep -q "$2" "$dir/err" || fail "replay: '$2' is not in: $(cat "$dir/err")"
	done
}
# A snapshot is read as a whole. One that memory cannot hold is refused before it is read.
printf '\200\004' >"$dir/bad"
if truncate -s 1T "$dir/bad" 2>"$dir/err"; then
	status 2 "$somashim" replay "$dir/bad"
	grep -q 'larger than half of the memory' "$dir/err" || fail "replay: $(cat "$dir/err")"
fi
a=1,00:00:00.0,allocate
malformed "" 'no allocation'
malformed "$a,0x10,5\n" 'line 2: fewer'
malformed "$a,0x10,5,0x0,9\n" 'line 2: more'
malformed "$a,0x10,5,0x0\n$a,0x10,5,0x0\n" 'line 3: the pointer is allocated already'
malformed "$a,0x10,9223372036854775807,0x0\n" 'line 2: more is live than any device'
malformed "$a,0x10,4398046511104,0x0\n\n$a,0x20,1,0x0\n" 'line 4: more is live'
malformed "$a,0x10,4398046511105,0x0\n" 'line 2: more is live'
# Blocks from before the log, of which one is too large when their list has just become longer.
for count in 1 64; do
	before=$(seq "$count" | sed 's/.*/1,00:00:00.0,free,0x&000,5,0x0\\n/' | tr -d '\n')
	malformed "${before}1,00:00:00.0,free,0x10,9999999999999,0x0\n" "line $((count + 2)): more is live"
done
malformed "$a,0x10,5,0x0\n1,25:00:00.0,free,0x10,5,0x0\n" 'line 3: the time'
malformed "$a,0x10,5,0x0\n1,00:00:00.0,fre\n" 'line 3: '
# A file without line ends is neither read for ever nor into all memory.
malformed "$a,0x10,5,0x0\n\0\0\0" 'line 3: not text'
if [ -c /dev/zero ]; then
	status 2 timeout 20 "$somashim" replay /dev/zero
	grep -q 'line 1: not text' "$dir/err" || fail "/dev/zero: $(cat "$dir/err")"
fi
status 2 sh -c 'yes "" | tr "\n" x | timeout 20 "$1" replay -' sh "$somashim"
printf '\200\004cos\nsystem\n.' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'would run code' "$dir/err" || fail "a pickle that runs code: $(cat "$dir/err")"
# A large dictionary that each of many entries refers to is refused, not searched for ever.
{
	printf '\200\004}(X\015\000\000\000device_traces](](}q\000('
	awk 'BEGIN { for (i = 0; i < 70000; i++) printf "NN" }'
	printf 'X\006\000\000\000actionX\004\000\000\000oomsu'
	awk 'BEGIN { for (i = 0; i < 70000; i++) printf "h" }' | sed 's/h/h@/g' | tr '@' '\000'
	printf 'eeu.'
} >"$dir/bad"
status 2 timeout 20 "$somashim" replay "$dir/bad"
grep -q 'entry 0 has more than' "$dir/err" || fail "many keys: $(cat "$dir/err")"
printf '\200\004}.' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
# A log ends in the middle of a line where the disk was full or the program was killed.
for last in 1,00:00:00.0,fre 1,00:00:00.0,free,0x 1 "$a,0x20,5,0x"; do
	printf "Thread,Time,Action,Pointer,Size,Stream\n$a,0x10,5,0x0\n$last" >"$dir/cut"
	status 0 "$somashim" replay --json "$dir/cut"
	grep -q '"allocations": 1, "frees": 0,' "$dir/out" || fail "cut off: $(cat "$dir/out")"
	grep -q 'line 3 is cut off' "$dir/err" || fail "cut off: $(cat "$dir/err")"
done
# A complete last line counts, with its line end or without.
printf "Thread,Time,Action,Pointer,Size,Stream\n$a,0x10,5,0x0" >"$dir/cut"
status 0 "$somashim" replay "$dir/cut"
[ ! -s "$dir/err" ] || fail "not cut off: $(cat "$dir/err")"
# The largest accepted value works.
{ echo 'Thread,Time,Action,Pointer,Size,Stream'; echo "$a,0x10,4398046511104,0x0"; } >"$dir/big"
for backing in hip hsa vmm; do
	status 0 "$somashim" replay --backing $backing "$dir/big"
	grep -q 'host metadata  *[1-9]' "$dir/out" || fail "replay: no host memory"
done
status 2 "$somashim" replay --json --advise "$dir/a"
# Standard input can be the log; -- ends the options.
status 0 sh -c '"$1" replay --json - <"$2"' sh "$somashim" "$dir/a"
status 0 sh -c 'cat "$2" | "$1" replay -- -' sh "$somashim" "$dir/a"
status 0 sh -c 'cat "$2" | "$1" replay /dev/stdin' sh "$somashim" "$dir/a"
# A packed log may come by a pipe, in pieces or cut off.
for tool in gzip xz zstd; do
	command -v $tool >/dev/null || continue
	status 0 sh -c '"$3" -c "$2" | "$1" replay -' sh "$somashim" "$dir/a" $tool
	status 0 sh -c '"$3" -c "$2" | { dd bs=1 count=2 2>/dev/null; sleep 0.1; cat; } |
		"$1" replay -' sh "$somashim" "$dir/a" $tool
	status 2 sh -c '"$3" -c "$2" | head -c 100 | "$1" replay -' sh "$somashim" "$dir/a" $tool
	# Where TMPDIR is no place for it, it goes through /tmp.
	status 0 env "TMPDIR=$dir/none" sh -c '"$3" -c "$2" | "$1" replay -' sh "$somashim" "$dir/a" $tool
done
# That the tool failed is seen even if whoever starts us ignores SIGCHLD.
if command -v gzip >/dev/null; then
	gzip -c "$dir/a" >"$dir/packed"
	head -c $(($(wc -c <"$dir/packed") - 1)) "$dir/packed" >"$dir/cut"
	status 2 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$somashim" replay "$dir/cut"
fi
# A pickle of protocol 0 begins as zstd does; those of protocol 1 have no mark either.
printf '}q\001(U\015device_traces]u.' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'protocol 0 or 1' "$dir/err" || fail "protocol 1: $(cat "$dir/err")"
printf '(dp0\nVdevice_traces\np1\n(lp2\ns.' >"$dir/bad"
for how in 'replay "$2"' 'replay - <"$2"' 'replay /dev/stdin <"$2"'; do
	status 2 sh -c "\"\$1\" $how" sh "$somashim" "$dir/bad"
	grep -q 'protocol 0' "$dir/err" || fail "protocol 0: $(cat "$dir/err")"
done
for short in T Th Thr; do # not even as long as a mark
	status 2 sh -c 'printf "$2" | "$1" replay -' sh "$somashim" $short
	grep -q 'line 1: expected the header' "$dir/err" || fail "$short: $(cat "$dir/err")"
done
# What is no log is said to be what it is.
printf '{"segments": [], "device_traces": [[]]}' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'JSON: .* pickle' "$dir/err" || fail "JSON: $(cat "$dir/err")"
for reader in report "convert --to folded"; do
	status 2 "$somashim" $reader "$dir/a"
	grep -q 'no recording of somashim: a log of allocations' "$dir/err" || fail "$reader: $(cat "$dir/err")"
	[ -p "$dir/fifo" ] || mkfifo "$dir/fifo"
	status 2 timeout 20 "$somashim" $reader "$dir/fifo"
	grep -q 'not a regular file' "$dir/err" || fail "$reader of a FIFO: $(cat "$dir/err")"
done
if command -v gzip >/dev/null; then
	printf 'SMSTRACE\0' | gzip >"$dir/bad"
	status 2 "$somashim" replay "$dir/bad"
	grep -q 'a recording that is packed' "$dir/err" || fail "packed: $(cat "$dir/err")"
	status 2 "$somashim" report "$dir/bad"
	grep -q 'no recording of somashim: it is packed' "$dir/err" || fail "packed: $(cat "$dir/err")"
fi
# A clone of a repository whose large files were not fetched.
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'a Git LFS pointer' "$dir/err" || fail "pointer: $(cat "$dir/err")"
status 2 "$somashim" replay --backing nothing "$dir/a"
status 2 "$somashim" replay --set NOTHING=1 "$dir/a"
status 0 "$somashim" replay --lag 8 "$dir/a"
status 0 "$somashim" replay --classic "$dir/a"

# A stream that the pools let wait for another one on the device gets no further behind for that, and ends.
status 0 "$somashim" generate --seed 7 -o "$dir/kind" weightsync
status 0 "$somashim" replay --backing vmm --lag 50 --vram 4400M "$dir/kind"

# What growing cost. All that is held at the peak was taken.
for backing in hip vmm; do
	status 0 "$somashim" replay --json --backing $backing "$dir/a"
	python3 -c 'import json, sys
r = json.load(sys.stdin)
g = r["growth"]
assert g["took_bytes"] - g["gave_bytes"] <= r["reserved_peak"] <= g["took_bytes"], r
assert g["took_calls"] + g["gave_calls"] + g["map_calls"] + g["unmap_calls"] == r["driver_calls"], r
assert g["set_access_calls"] == r["set_access"], r
assert (g["map_calls"] > 0) == (sys.argv[1] == "vmm"), r' $backing <"$dir/out" || fail "growth: $(cat "$dir/out")"
done

# A clock: virtual time, so the same each time; what is not given has its default.
status 2 "$somashim" replay --clock --lag 8 "$dir/a"
for option in --host-us --device-us --queue --segment-us --chunk-us; do
	status 2 "$somashim" replay $option 0 "$dir/a"
	status 0 "$somashim" replay $option 1 "$dir/a"
	grep -q '^waits  *[0-9]' "$dir/out" || fail "$option is no clock: $(cat "$dir/out")"
done
status 0 "$somashim" replay "$dir/a"
grep -q '^waits' "$dir/out" && fail "a clock that nobody asked for"
status 0 "$somashim" generate --seed 3 -o "$dir/kind" serving
status 0 "$somashim" replay --classic --clock "$dir/kind"
cp "$dir/out" "$dir/once"
status 0 "$somashim" replay --classic --clock "$dir/kind"
cmp "$dir/once" "$dir/out" || fail "a clock that is not virtual"
for how in '' --no-remap; do
	status 0 "$somashim" replay --clock --backing vmm --json $how "$dir/kind"
	python3 -c 'import json, sys
assert (json.load(sys.stdin)["remaps"] == 0) == (len(sys.argv) > 1)' $how <"$dir/out" || fail "remaps $how: $(cat "$dir/out")"
done
status 0 "$somashim" replay --classic --json --clock --host-us 5 "$dir/kind"
python3 -c 'import json, sys
r = json.load(sys.stdin)
c = r["clock"]
calls = r["allocations"] + r["frees"]
assert c["host_ns"] == 5000 and c["device_ns"] == 6000 and c["queue"] == 1024, c
# The device is the bottleneck: it works from the first call on, but for where it waits for the host.
assert c["device_end_us"] == 5 + 6 * calls + c["idle_us"], (c, calls)
assert c["waits"] > 0 and c["waited_us"] >= c["idle_us"] >= 0, c
assert c["idle_share"] == round(c["idle_us"] / c["device_end_us"], 4), c' <"$dir/out" ||
	fail "replay --clock: $(cat "$dir/out")"
# What the driver's calls take passes on the same clock.
for how in "hip --segment-us 50" "vmm --chunk-us 20"; do
	status 0 "$somashim" replay --json --host-us 5 --backing $how "$dir/kind"
	python3 -c 'import json, sys
r = json.load(sys.stdin)
c = r["clock"]
assert c["driver_us"] == int(sys.argv[3]) * (r["driver_calls"] + r["set_access"]) > 0, r
assert c["device_end_us"] == 5 + 6 * (r["allocations"] + r["frees"]) + c["idle_us"], r' $how <"$dir/out" ||
		fail "replay $how: $(cat "$dir/out")"
done
# A queue of one command: the host waits for each, 2 us of its 12, unless it waited already.
status 0 "$somashim" replay --json --queue 1 "$dir/kind"
python3 -c 'import json, sys
r = json.load(sys.stdin)
full = r["clock"]["queue_full_us"]
assert 0 < full <= 2 * (r["allocations"] + r["frees"] - 1), r' <"$dir/out" ||
	fail "replay --queue 1: $(cat "$dir/out")"
status 0 "$somashim" replay --try --advise "$dir/a"
grep -q '^# a log has no synchronizations' "$dir/out" || fail "--try: no footnote"
status 0 "$somashim" replay --try --classic "$dir/a"

# Advice is for what is clearly better: not a device's worth of calls for half a hundredth of
# the peak, and not the first of two that are alike after the peak alone.
# advised KIND WORD
advised() {
	status 0 "$somashim" generate --seed 3 --rounds 3 -o "$dir/kind" "$1"
	status 0 "$somashim" replay --advise "$dir/kind"
	tail -n 1 "$dir/out" | grep -q "$2" || fail "$1 is advised: $(cat "$dir/out")"
}
advised oneshot '^export SOMASHIM_BACKING=vmm$'
advised handoff '^# nothing'
advised weightsync '^# nothing'
advised amr '^export SOMASHIM_BACKING=vmm$'
grep -q '^# run somashim doctor first' "$dir/out" || fail "vmm is advised without a word"

# Allocations that do not fit are counted and reported; a replay that cannot begin is refused.
status 1 "$somashim" replay --json --vram 20M "$dir/kind"
grep -q 'out of memory: [1-9][0-9]* of [0-9]* allocations failed, first in line [1-9]' "$dir/err" ||
	fail "--vram: $(cat "$dir/err")"
status 2 "$somashim" replay --vram 0 "$dir/kind"
grep -q -- '--vram' "$dir/err" || fail "--vram 0: $(cat "$dir/err")"
status 2 "$somashim" replay --device 1 "$dir/kind"
grep -q 'one device' "$dir/err" || fail "--device of a CSV: $(cat "$dir/err")"
awk 'BEGIN {
	print "Thread,Time,Action,Pointer,Size,Stream"
	for (i = 1; i <= 65600; i++)
		printf "1,00:00:00.0,allocate,%d,512,%d\n", i * 512, i
}' >"$dir/streams"
for how in --json --try; do
	status 2 "$somashim" replay $how "$dir/streams"
	grep -q 'room for 65536' "$dir/err" || fail "many streams: $(cat "$dir/err")"
done
long=$(printf '%0512d' 0)
status 2 "$somashim" replay --set "LOG=$long" "$dir/a"
grep -q 'LOG: the value is too long' "$dir/err" || fail "a long path: $(cat "$dir/err")"

# A replay does not write to files that the environment names for programs.
echo mine >"$dir/mine"
for variable in JOURNAL LOG REPORT TRACE; do
	status 0 env "SOMASHIM_$variable=$dir/mine" "$somashim" replay "$dir/a"
	[ "$(cat "$dir/mine")" = mine ] || fail "replay wrote into SOMASHIM_$variable"
done

# run: exit status and signals are those of the program; its preload takes the place of one that is there.
if "$somashim" run -q true 2>"$dir/err"; then
	status 7 "$somashim" run --quiet -- sh -c 'exit 7'
	status 143 sh -c "'$somashim' run -q sh -c 'kill -TERM \$\$'; exit \$?"
	status 127 "$somashim" run -q "$dir/none"
	status 0 env LD_PRELOAD=libsomashim.so "$somashim" run true
	status 0 "$somashim" run sh -c 'echo "$LD_PRELOAD" | grep -q libsomashim.so &&
		[ "$SOMASHIM_STATS" = 1 ]'
else
	grep -q 'libsomashim.so was not found' "$dir/err" || fail "run: $(cat "$dir/err")"
fi
status 2 "$somashim" run
