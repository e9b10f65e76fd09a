#!/bin/bash
# SPDX-License-Identifier: MIT
# `somashim run`: as if it were not there, and what it says at the end.
#   run.sh SOMASHIM ALLOC_LOOP ROUTES PLUGIN STATIC SIM REPLAY_HIP OBSERVE SYNC_LOOP
set -u
somashim=$1 app=$2 routes=$3 plugin=$4 static=$5 sim=$6 replay=$7 observe=$8 loop=$9
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-run-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$sim SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4 SOMASHIM_STATS=0 TMPDIR=$dir
unset LD_PRELOAD LD_AUDIT

fail() { echo "$*"; cat "$dir/err" 2>/dev/null; exit 1; }

# says STATUS PATTERN COMMAND...
says() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$somashim" run ${audit:-} -- "$@" >"$dir/out" 2>"$dir/err" || got=$?
	[ $got = "$want" ] || fail "$*: status $got, not $want"
	[ "$(grep -ci '^somashim: .*used\|^somashim: .*not loaded' "$dir/err")" = 1 ] ||
		fail "$*: not one verdict"
	grep -q "$pattern" "$dir/err" || fail "$*: no '$pattern'"
}

says 0 'used in 1 process$' "$app" 3
says 0 'used in 2 processes$' sh -c "'$app' 3; '$app' 3"
says 0 '[0-9]* by dlsym()' "$routes" handle "$plugin"
says 0 '[0-9]* by dlsym()' "$routes" dlvsym "$plugin"
says 0 '4 by hipGetProcAddress()' "$routes" proc "$plugin"
says 0 'NOT USED, although .* RTLD_DEEPBIND, which needs run --audit' "$routes" deepbind "$plugin"
audit=--audit says 0 '[0-9]* bound past the preload, turned round' "$routes" deepbind "$plugin"
audit=--audit says 0 'used in 1 process; references: [0-9]* bound by name$' "$app" 3
SOMASHIM_API_TABLE=1 LD_LIBRARY_PATH=$sim/amd:$sim says 0 "1 by the runtime's API table" "$app" 3
# What happens in another link namespace is not seen, so it is not denied either.
says 0 'not used: no call into HIP of .*true reached the library (none .* namespace' /bin/true
says 0 'NOT USED, although .*static-hip' "$static-hip"
says 0 'NOT LOADED: .*static is linked statically' "$static"
# What the loader refuses is no static program.
if cc -x c -shared -fPIC -o "$dir/libgone.so" - </dev/null 2>/dev/null &&
	echo 'int main(void) { return 0; }' |
	cc -x c -o "$dir/needs" - -Wl,--no-as-needed "$dir/libgone.so" 2>/dev/null; then
	rm "$dir/libgone.so"
	says 127 'NOT LOADED: the dynamic loader did not start .*needs, for the reason that it printed' "$dir/needs"
fi
built=$(dirname "$somashim")/../shim/libsomashim.so
# A program of another C library would not start with the preload, so it starts without. By its name, this loader is
# musl's. Whatever else is preloaded stays.
loader=$(ldd "$app" | sed -n 's/^\t\(\/[^ ]*\/ld-[^ ]*\) .*/\1/p')
ln -s "$loader" "$dir/ld-musl-test.so.1"
cat >"$dir/other.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { printf("%s|%s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none", getenv("LD_AUDIT") ? "audited" : ""); return 5; }
END
if [ -n "$loader" ] && cc -o "$dir/other" "$dir/other.c" -Wl,--dynamic-linker="$dir/ld-musl-test.so.1" 2>/dev/null; then
	why="other has another C library (its loader is $dir/ld-musl-test.so.1), so it was started without"
	printf '#!%s\n' "$dir/other" >"$dir/other-script"
	printf '#!%s\n' "$dir/other-script" >"$dir/other-scripts"
	printf '#!/usr/bin/env other\n' >"$dir/other-env"
	chmod +x "$dir"/other-*
	for other in other other-script other-scripts other-env; do
		PATH=$dir:$PATH says 5 "^somashim: NOT LOADED: $dir/$why" "$dir/$other"
		[ "$(cat "$dir/out")" = 'none|' ] || fail "$other was started with $(cat "$dir/out")"
	done
	LD_PRELOAD=libm.so.6:$built audit=--audit says 5 "$why" "$dir/other"
	[ "$(cat "$dir/out")" = 'libm.so.6|' ] || fail "not what else is preloaded: $(cat "$dir/out")"
	"$somashim" run --quiet "$dir/other" >"$dir/out" 2>"$dir/err"
	[ $? = 5 ] && [ "$(cat "$dir/out")" = 'none|' ] && [ ! -s "$dir/err" ] || fail "quietly, of another C library"
	"$somashim" record -o "$dir/%p.other" "$dir/other" >"$dir/out" 2>"$dir/err"
	[ $? = 5 ] && grep -q "$why" "$dir/err" || fail "record of another C library"
	"$somashim" check "$dir/other" >"$dir/out" 2>"$dir/err"
	[ $? = 5 ] && grep -q "$why" "$dir/err" && grep -q "nothing was checked" "$dir/err" || fail "check of another C library"
else
	echo "not tried with another C library: no compiler"
fi
# A library that this loader refuses is named with the loader's own reason.
mkdir -p "$dir/copy/bin" "$dir/copy/lib"
cp "$somashim" "$dir/copy/bin/"
kept=$somashim somashim=$dir/copy/bin/somashim
echo "no library" >"$dir/copy/lib/libsomashim.so"
says 0 'NOT LOADED: the dynamic loader refuses the library: .*copy/lib/libsomashim.so' /bin/true
if grep -q 'GLIBC_2\.17' "$built"; then
	sed 's/GLIBC_2\.17/GLIBC_9.99/g' "$built" >"$dir/copy/lib/libsomashim.so"
	says 1 "NOT LOADED: the dynamic loader refuses .*version .GLIBC_9.99. not found" /bin/true
fi
# Without /proc, as in a bare chroot, the library is still found beside the program.
cat >"$dir/bare" <<END
#!/bin/sh
exec unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc && exec "\$@"' sh "\$@"
END
chmod +x "$dir/bare"
if "$dir/bare" true 2>/dev/null; then
	printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$dir/bare" "$kept" >"$dir/somashim"
	chmod +x "$dir/somashim"
	somashim=$dir/somashim
	says 0 'used in 1 process$' "$app" 3
else
	echo "not tried without /proc: unshare is not allowed here"
fi
somashim=$kept
SOMASIM_NO_DEVICE=1 says 2 'not used: no device was found: .' "$app" 3
SOMASHIM_DISABLE=1 says 0 'not used: SOMASHIM_DISABLE is set$' "$app" 3

# One sentence says what the pools did, in terms that need no manual.
says 0 '^somashim: 24 memory calls became [0-9,]* calls of the runtime ([0-9,]* for device memory); 2\.0 MiB in use at most, [0-9.]* MiB held\.$' "$app" 6
says 0 '^somashim: 4,000 memory calls became ' "$app" 1000
# Like with like: all calls into the runtime, of which some take memory and some only ask whether a stream is done.
"$somashim" generate --rounds 2 -o "$dir/amr.csv" amr
for backing in hip hsa; do
	SOMASHIM_BACKING=$backing SOMASHIM_STATS=1 LD_PRELOAD=$observe OBSERVE_OUT=$dir/calls \
		"$somashim" run "$replay" --async --streams 4 --cross 20 "$dir/amr.csv" \
		>"$dir/out" 2>"$dir/err" || fail "$backing: status $?"
	all=$(sed -n 's/.* memory calls became \([0-9,]*\) calls.*/\1/p' "$dir/err" | tr -d ,)
	calls=$(sed -n 's/.* of the runtime (\([0-9,]*\) for .*/\1/p' "$dir/err" | tr -d ,)
	grep -q " memory_calls=$calls " "$dir/calls" || fail "$backing: not $(cat "$dir/calls")"
	[ "$all" = "$(sed -n 's/.*driver calls \([0-9]*\) in.*/\1/p' "$dir/err")" ] ||
		fail "$backing: not the driver calls of the table"
	[ "$calls" -lt "$all" ] || fail "$backing: the program leads to no query"
done
# Which option would help, where one would: idle memory was released, and soon taken again.
advises() { # NAME=VALUE ROUNDS PATTERN: there is one line of advice, or none if PATTERN is empty
	export "$1"
	says 0 'used in 1 process$' "$loop" "$2"
	unset "${1%=*}"
	[ "$(grep -c '^somashim: hits' "$dir/err")" = "$([ "$3" ] && echo 1 || echo 0)" ] || fail "$1: advice"
	grep -q -- "$3" "$dir/err" || fail "$1: not '$3'"
}
advises SOMASHIM_RELEASE_THRESHOLD=0 20 'hits 0\.0 %: 152\.0 MiB .* A larger SOMASHIM_RELEASE_THRESHOLD, or max, '
advises SOMASHIM_DECAY_MS=0 20 'hits 0\.0 %: 152\.0 MiB .* SOMASHIM_RELEASE_THRESHOLD=max keeps idle memory; SOMASHIM_DECAY_MS '
advises SOMASHIM_RELEASE_THRESHOLD=max 20 ''
advises SOMASHIM_DECAY_MS=600000 20 ''
advises SOMASHIM_RELEASE_THRESHOLD=0 1 '' # what was released was not taken again
says 0 '; in the largest process 2\.0 MiB in use' sh -c "'$app' 3; '$app' 3"
says 0 'not used' /bin/true
grep -q 'memory calls' "$dir/err" && fail "calls of a program that made none"

# In a job, rank 0 speaks for all, and another rank only if it was not served.
for rank in OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK FLUX_TASK_RANK SLURM_PROCID; do
	env $rank=1 "$somashim" run "$app" 3 >"$dir/out" 2>"$dir/err" || fail "$rank=1"
	grep -q '^somashim: ' "$dir/err" && fail "$rank=1: not silent"
	env $rank=1 "$somashim" run true 2>"$dir/err"
	grep -q '^somashim: rank 1 (on .*): not used' "$dir/err" || fail "$rank=1: not served, and silent"
	env $rank=0 "$somashim" run "$app" 3 >"$dir/out" 2>"$dir/err" || fail "$rank=0"
	grep -q '^somashim: rank 0 (on .*): used in 1 process' "$dir/err" || fail "$rank=0: silent"
done
# mpirun in a Slurm job; one table of statistics.
SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=2 "$somashim" run true 2>"$dir/err"
grep -q '^somashim: rank 5 (local rank 2 on ' "$dir/err" || fail "the rank of Slurm, not of mpirun"
for rank in 0 1; do
	env -u SOMASHIM_STATS PMI_RANK=$rank "$somashim" run sh -c 'echo "stats=$SOMASHIM_STATS"' \
		>"$dir/out" 2>/dev/null
	grep -q "^stats=$([ $rank = 1 ] || echo 1)\$" "$dir/out" || fail "rank $rank: $(cat "$dir/out")"
done

# A profiler that starts the program with an LD_PRELOAD of its own is named.
printf '#!/bin/sh\nLD_PRELOAD= LD_AUDIT= exec "$@"\n' >"$dir/rocprof-compute"
chmod +x "$dir/rocprof-compute"
says 0 'rocprof-compute may have replaced LD_PRELOAD: start it first' "$dir/rocprof-compute" "$app" 3
ROCPROFSYS_MODE=trace says 0 'rocprof-sys may have replaced LD_PRELOAD' /bin/true
ROCPROFSYS_MODE=trace says 0 'used in 1 process$' "$app" 3

# A log that cannot be written is no secret, and one that can be is a log.
SOMASHIM_JOURNAL="$dir" says 0 "cannot open SOMASHIM_JOURNAL $dir: Is a directory" "$app" 3
SOMASHIM_LOG="$dir" says 0 "cannot open SOMASHIM_LOG $dir: Is a directory" "$app" 3
SOMASHIM_STATS=1 SOMASHIM_LOG=/dev/full "$somashim" run "$app" 3 >/dev/null 2>"$dir/err"
[ "$(grep -c 'SOMASHIM_LOG /dev/full: No space left on device: messages' "$dir/err")" = 1 ] || fail "the full log is not named once"
grep -q 'allocations 6' "$dir/err" || fail "what does not fit into the log is lost"
SOMASHIM_JOURNAL="$dir/log.%p.csv" says 0 'used in 1 process' "$app" 3
"$somashim" replay --json "$dir"/log.*.csv >"$dir/out" || fail "the log is none"
grep -q '"allocations": 6, "frees": 6,' "$dir/out" || fail "the log: $(cat "$dir/out")"

# Counted in /tmp where TMPDIR is no place for it.
TMPDIR=$dir/none says 0 'used in 1 process' "$app" 3

# It ends as the program ends; what was counted is not lost with one that is killed.
says 7 'not used' sh -c 'exit 7'
says 143 'not used' sh -c 'kill -TERM $$'
says 137 'used in 1 process' sh -c "'$app' 3; kill -KILL \$\$"
"$somashim" run "$dir/none" 2>"$dir/err"
[ $? = 127 ] && ! grep -q 'LOADED\|used' "$dir/err" || fail "no such program"

# What is there is kept, ours is first, and the auditor is there on request.
LD_PRELOAD=libm.so.6 "$somashim" run sh -c 'echo "$LD_PRELOAD|$LD_AUDIT"' 2>"$dir/err" |
	grep -q '^/.*/libsomashim\.so:libm\.so\.6|$' || fail "LD_PRELOAD is lost"
LD_AUDIT= "$somashim" run --audit sh -c 'echo "$LD_AUDIT"' 2>"$dir/err" |
	grep -q '^/.*/libsomashim-audit\.so$' || fail "no auditor"

# It may be there already, as in an image that sets LD_PRELOAD: then it takes that place. By another name it is not it.
preload() { LD_PRELOAD=$1 "$somashim" run sh -c 'echo "$LD_PRELOAD"' 2>/dev/null; }
here=$(preload "")
there=$dir/elsewhere/libsomashim.so
mkdir "$dir/elsewhere" && cp "$built" "$there" && cp "$built" "$dir/elsewhere/notlibsomashim.so"
[ "$(preload "$here")" = "$here" ] || fail "twice: $(preload "$here")"
[ "$(preload "libm.so.6 $there:libdl.so.2 $here")" = "libm.so.6:$here:libdl.so.2" ] ||
	fail "not in its place: $(preload "libm.so.6 $there:libdl.so.2 $here")"
[ "$(preload "$dir/elsewhere/notlibsomashim.so")" = "$here:$dir/elsewhere/notlibsomashim.so" ] || fail "another's place"
for old in "$here" "$there"; do
	LD_PRELOAD=$old says 0 'used in 1 process$' "$app" 3
done
# One within another: both say it, and the outer one counts what the inner one has counted.
says 0 'used in 1 process$' "$somashim" run --quiet -- "$app" 3
"$somashim" run -- sh -c "'$somashim' run -- '$app' 3; '$somashim' record -o '$dir/%p.t' -- '$app' 3" \
	>"$dir/out" 2>"$dir/err" || fail "nested: status $?"
[ "$(grep -c 'used in 1 process$' "$dir/err")" = 1 ] && grep -q 'used in 2 processes$' "$dir/err" &&
	grep -q '^somashim: recorded in ' "$dir/err" || fail "nested"

# until COMMAND: for ten seconds.
until_true() {
	for _ in $(seq 200); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}
state() { sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
is() { case $(state "$1") in $2) ;; *) false ;; esac; }
gone() { [ -z "$(state "$1")" ] || [ "$(state "$1")" = Z ]; }

# starts TRAPS: $run and $child, which has set them.
starts() {
	rm -f "$dir/pid" "$dir/got"
	"$somashim" run bash -c "$1
		echo \$\$ >$dir/new; mv $dir/new $dir/pid
		while :; do sleep 0.05; done" 2>"$dir/err" &
	run=$!
	until_true test -s "$dir/pid" || fail "did not start"
	child=$(cat "$dir/pid")
}

# Signals sent to it go to the program, which decides.
starts "trap 'echo usr1 >$dir/got' USR1; trap 'exit 5' TERM"
kill -USR1 $run
until_true test -s "$dir/got" || fail "SIGUSR1 did not arrive"
kill -TERM $run
wait $run
[ $? = 5 ] || fail "SIGTERM was not the program's"

# Those that end a program by default as well: of batch systems, and of real time.
for signal in XCPU RTMIN+3; do
	starts "trap 'exit 5' $signal"
	kill -s $signal $run
	wait $run
	[ $? = 5 ] || fail "SIG$signal was not the program's"
done

# Stopped and continued together, as a terminal does. In a process group of its own, since the
# kernel ignores SIGTSTP in a group without a shell.
set -m
starts ""
set +m
kill -TSTP "$child"
until_true is $run T || fail "not stopped with the program"
kill -CONT $run
until_true is "$child" '[RS]' || fail "not continued"
# Whoever stops the program alone may continue it alone.
kill -STOP "$child"
until_true is "$child" T || fail "not stopped"
kill -CONT "$child"
until_true is "$child" '[RS]' || fail "not continued alone"
kill -KILL "$child"
until_true gone $run || fail "the end of a program that was stopped goes unnoticed"
wait $run
[ $? = 137 ] || fail "SIGKILL did not end it"

# SIGCHLD may be ignored by whoever starts us. Then the program has it ignored, too.
ignoring() { timeout -s KILL 60 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$@"; }
for quiet in "" --quiet; do
	ignoring "$somashim" run $quiet grep SigIgn: /proc/self/status \
		>"$dir/out" 2>"$dir/err" || fail "SIGCHLD ignored: status $?"
	[ $((0x$(sed 's/.*\t//' "$dir/out") & 0x10000)) != 0 ] || fail "SIGCHLD is not ignored"
done

# And the program does not outlive it.
starts ""
kill -KILL $run
wait $run 2>/dev/null
until_true gone "$child" || fail "the program is left behind"
rm -f "$dir"/somashim-run.*
exit 0
