#!/bin/sh
# SPDX-License-Identifier: MIT
# run_selftest.sh SOMASHIM LIBRARY PROGRAM: `somashim run` tries vmm once for a runtime, driver and device, and remembers
# what it found. Nobody else tries it unasked.
somashim=$1 library=$2 program=$3
export SOMASIM_QUIET=1 SOMASIM_DELAY_US=0 SOMASIM_HIP_VERSION=7.2 SOMASHIM_STATS=0 SOMASHIM_VERBOSE=1
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-run-selftest.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/state"
export XDG_STATE_HOME="$dir/state" TMPDIR="$dir"

# run BACKING TRIED [VARIABLE=VALUE..] [-- OPTION..]: what a program gets under `run`, and what is said to be tried
# ("": nothing is).
run() {
	which=$1 tried=$2
	shift 2
	variables= what="$*"
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		variables="$variables $1"
		shift
	done
	[ $# = 0 ] || shift
	out=$(env $variables "$somashim" run "$@" "$program" 2>&1) || wrong "status $?"
	case $out in *"backing: $which"*) ;; *) wrong "not $which" ;; esac
	case $out in *'run on'*) wrong 'a process is left' ;; esac
	got=$(printf '%s\n' "$out" | sed -n 's/^somashim: virtual memory was tried, once .*: \(.*\) ([0-9.]* s; .*/\1/p')
	[ "$got" = "$tried" ] || wrong "not '$tried' but '$got'"
}

wrong() {
	echo "$what: $*: $out"
	exit 1
}

# Not asked for, or with nobody to ask.
run hip '' A=1 -- --no-self-test
run hip '' A=1 -- --quiet
run hip '' XDG_STATE_HOME="$dir/none/none"
out=$(LD_PRELOAD=$library "$program" 2>&1) what=preload
case $out in *'backing: hip (auto: vmm was not tried; '*1.03*1.09*'somashim run or doctor --save'*) ;; *) wrong 'no offer' ;; esac
run hip '' SOMASHIM_BACKING=hip
run hip '' SOMASHIM_REMEMBER=0
run hip '' SOMASIM_QUIRKS=no-vmm
[ -z "$(find "$dir" -name 'verdict-*')" ] || wrong "$(find "$dir")"

# Once for each device and runtime.
run vmm 'it works' A=1
run vmm '' A=1
run vmm 'it works' SOMASIM_HIP_VERSION=6.4
run hip 'it does not work, and pools go on without it' SOMASIM_ARCH=gfx90a SOMASIM_QUIRKS=phys-bound
run hip '' SOMASIM_ARCH=gfx90a
# What the user has set for the program is not the test's.
rm "$dir"/state/somashim/verdict-*
run vmm 'it works' SOMASHIM_LIMIT=64M SOMASHIM_TRACE="$dir/trace" SOMASHIM_FREE_SYNC=never
[ "$(find "$dir" -name 'trace*' | wc -l)" = 1 ] || wrong 'not one recording'
[ "$(find "$dir/state" -name 'verdict-*' | wc -l)" = 1 ] || wrong "$(find "$dir/state")"
# A device without room says nothing about it.
rm "$dir"/state/somashim/verdict-*
run hip 'nothing was found out' SOMASIM_VRAM=256M
[ -z "$(find "$dir" -name 'verdict-*')" ] || wrong "$(find "$dir")"

# A test that did not end is made once more, and then no more.
run vmm 'it works' A=1
file=$(find "$dir/state" -name 'verdict-*')
sed -i 's/passed/begun/' "$file"
run vmm 'it works' A=1
sed -i 's/passed/begun again/' "$file"
run hip 'it does not work, and pools go on without it' A=1
run hip '' A=1

# Processes that start at the same time make one test. The others wait for it.
rm "$file"
for i in 1 2 3; do
	"$somashim" run "$program" >"$dir/out.$i" 2>&1 &
done
wait
for i in 1 2 3; do
	grep -q 'backing: vmm ' "$dir/out.$i" || { cat "$dir/out.$i"; exit 1; }
done
# So do processes of one run.
rm "$file"
out=$("$somashim" run sh -c "'$program' & '$program' & wait" 2>&1) what='two processes'
[ "$(printf '%s\n' "$out" | grep -c 'backing: vmm ')" = 2 ] || wrong 'not vmm twice'
[ "$(printf '%s\n' "$out" | grep -c 'was tried')" = 1 ] || wrong 'not tried once'
exit 0
