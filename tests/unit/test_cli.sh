#!/bin/sh
# SPDX-License-Identifier: MIT
# The command line: what it prints, what it refuses, what it passes through.
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
status 0 "$somashim" --version
status 0 "$somashim" options
grep -q '^SOMASHIM_BACKING .*auto|hip|hsa|vmm' "$dir/out" || fail "options: no BACKING"
status 0 "$somashim" options --markdown

# generate: the same seed is the same log, another is another.
for kind in training serving dataframe handoff amr oneshot weightsync powers; do
	status 0 "$somashim" generate --rounds 2 --seed 3 -o "$dir/a" $kind
	status 0 "$somashim" generate --rounds 2 --seed 3 -o "$dir/b" $kind
	cmp -s "$dir/a" "$dir/b" || fail "$kind: not reproducible"
	status 0 "$somashim" replay --json "$dir/a"
	for key in reserved_peak used_peak allocations hits driver_calls; do
		grep -q "\"$key\": [0-9]" "$dir/out" || fail "replay --json: no $key"
	done
done
status 2 "$somashim" generate
status 2 "$somashim" generate training --scale 0
status 2 "$somashim" generate nothing

# replay: malformed logs are named with line and reason.
status 2 "$somashim" replay "$dir/none"
printf 'Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.0,allocate,0x1,x,0x0\n' >"$dir/bad"
status 2 "$somashim" replay "$dir/bad"
grep -q 'line 2: the size' "$dir/err" || fail "replay: the line is not named"
status 2 "$somashim" replay --backing nothing "$dir/a"
status 2 "$somashim" replay --set NOTHING=1 "$dir/a"
status 0 "$somashim" replay --lag 8 "$dir/a"
status 0 "$somashim" replay --classic "$dir/a"
status 0 "$somashim" replay --try --advise "$dir/a"

# run: exit status and signals are the program's; not twice.
if "$somashim" run -q true 2>"$dir/err"; then
	status 7 "$somashim" run --quiet -- sh -c 'exit 7'
	status 143 sh -c "'$somashim' run -q sh -c 'kill -TERM \$\$'; exit \$?"
	status 127 "$somashim" run -q "$dir/none"
	status 2 env LD_PRELOAD=libsomashim.so "$somashim" run true
	status 0 "$somashim" run sh -c 'echo "$LD_PRELOAD" | grep -q libsomashim.so &&
		[ "$SOMASHIM_STATS" = 1 ]'
else
	grep -q 'libsomashim.so was not found' "$dir/err" || fail "run: $(cat "$dir/err")"
fi
status 2 "$somashim" run
