#!/bin/bash
# SPDX-License-Identifier: MIT
# `somashim record`: what a program does with device memory is in the file, with its stacks.
#   record.sh SOMASHIM ALLOC_LOOP TRACE_DUMP SIM AGAIN [PYTHON_PROGRAM]
set -u
somashim=$(realpath "$1") app=$(realpath "$2") dump=$3 sim=$4 again=$(realpath "$5") python=${6:-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-record-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$sim SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4 SOMASHIM_STATS=0
unset LD_PRELOAD LD_AUDIT SOMASHIM_TRACE OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK FLUX_TASK_RANK

fail() { echo "$*"; cat "$dir"/err "$dir"/dump 2>/dev/null; exit 1; }
# has PATTERN: the dump of the file has this line.
has() { grep -q "^$1\$" "$dir/dump" || fail "no '$1'"; }

# The program's output and status are its own; one line says where the recording is.
"$somashim" record -o "$dir/one" "$app" 100 >"$dir/out" 2>"$dir/err" || fail "record: status $?"
[ "$(grep -c '^somashim: recorded in ' "$dir/err")" = 1 ] || fail "not one line"
grep -q "recorded in $dir/one$" "$dir/err" || fail "another file is named"
grep -q '^somashim: 200 allocations and 200 frees in .* s; peak 2.00 MiB in use, 4.00 MiB reserved; all was freed$' \
	"$dir/err" || fail "no figures"
grep -q "^somashim: who held it: somashim report $dir/one   (as a page: " "$dir/err" || fail "no next command"
"$dump" "$dir/one" >"$dir/dump" || fail "not read"
has "alloc [1-9][0-9]*"
has "first alloc: main .*"
has "problems 0"
has "exe .*/alloc_loop"
has "args 2"
allocs=$(sed -n 's/^alloc //p' "$dir/dump")
[ "$allocs" -ge 100 ] || fail "$allocs allocations"
has "free $allocs"
has "runtime 6.4 .*"
has "device 0 at 0000:[0-9a-f]*:[0-9a-f]*.0, [1-9][0-9]* bytes, .*device.*"

# A Python program, which finds HIP by dlsym(). Its stacks lead through the interpreter.
if [ -n "$python" ] && command -v python3 >/dev/null; then
	"$somashim" record -o "$dir/python" python3 "$python" "$sim/libamdhip64.so.6" >"$dir/out" \
		2>"$dir/err" || fail "python: status $?"
	"$dump" "$dir/python" >"$dir/dump" || fail "the recording of Python is not read"
	has "alloc 50"
	has "free 40"
	has "exe .*/python3.*"
	has "args 3"
	case $(python3 -c "import sys; print(sys.version_info[:2])") in # others have no frames of Python
	"(3, 11)" | "(3, 12)" | "(3, 13)") has "first alloc: .* allocate .*<module> .*" ;;
	esac
	has "problems 0"
fi

# The default name, and a relative one.
(cd "$dir" && "$somashim" record "$app" 3 >out 2>err) || fail "default name"
ls "$dir"/alloc_loop.*.trace >/dev/null || fail "no file of the default name"
(cd "$dir" && "$somashim" record -o two.%p sh -c "cd /; '$app' 3; '$app' 3" >out 2>err) ||
	fail "two programs"
[ "$(ls "$dir"/two.* | wc -l)" = 2 ] || fail "not two files"
grep -q 'recorded in 2 files, the first one is ' "$dir/err" || fail "two processes are not named"

# A program that becomes another one has two recordings, and so have two runs of one name.
for name in exec.%p.trace exec.trace; do
	"$somashim" record -o "$dir/$name" "$again" exec 2>"$dir/err" || fail "$name: status $?"
	grep -q 'recorded in 2 files, the first one is ' "$dir/err" || fail "$name: two files are not named"
	[ "$(ls "$dir"/exec.*trace | wc -l)" = 2 ] || fail "$name: not two files"
	for file in "$dir"/exec.*trace; do
		"$dump" "$file" >"$dir/dump" || fail "$file is not read"
		has "alloc 1"
		rm "$file"
	done
done
"$somashim" record -o "$dir/run.trace" "$app" 3 >"$dir/out" 2>"$dir/err" || fail "first run"
cp "$dir/run.trace" "$dir/first"
"$somashim" record -o "$dir/run.trace" "$app" 5 >"$dir/out" 2>"$dir/err" || fail "second run"
grep -q "recorded in $dir/run.2.trace$" "$dir/err" || fail "the second run is not named"
grep -q 'somashim: 10 allocations ' "$dir/err" || fail "the figures are not of the second run"
cmp "$dir/run.trace" "$dir/first" || fail "the first run is lost"
"$dump" "$dir/run.2.trace" >"$dir/dump"
has "alloc 10"

# A program that forks and ends: what goes on is said, and recorded.
"$somashim" record -o "$dir/fork.%h.%r.%q{PART}.trace" "$again" fork "$dir/go" 2>"$dir/err" || fail "fork: status $?"
grep -q "processes that it started run on: they record to $dir/fork" "$dir/err" || fail "a child is not said"
grep -q "nothing was recorded" "$dir/err" && fail "nothing is said of a child that runs on"
: >"$dir/go"
file=$dir/fork.$(uname -n).0..trace
for ((i = 0; i < 6000; i++)); do
	{ "$dump" "$file" >"$dir/dump" && grep -q '^end ended$' "$dir/dump"; } 2>/dev/null && break
	sleep 0.01
done
has "alloc 1"

# With segments of their own no block comes from the free blocks of a stream.
SOMASHIM_IPC_WHOLE=64K "$somashim" record -o "$dir/whole" "$app" 20 >"$dir/out" 2>"$dir/err" || fail whole
[ "$("$somashim" report --json "$dir/whole" | grep -o '"hits": [0-9]*' | sort -u)" = '"hits": 0' ] ||
	fail "segments of their own count as hits"

# What was never freed is said, also of the larger of two processes; the next command can be pasted into a shell.
"$somashim" record -o "$dir/it's %p" sh -c "'$app' 2; '$again' exec" 2>"$dir/err" >"$dir/out" || fail "three processes"
grep -q '^somashim: the largest process: ' "$dir/err" || fail "not the largest process"
eval "$(sed -n 's/^somashim: who held it: somashim report \(.*\)   (as.*/set -- \1/p' "$dir/err")"
[ $# = 3 ] && [ -e "$1" ] && [ -e "$2" ] && [ -e "$3" ] || fail "the command does not name the files: $*"
"$somashim" record -o "$dir/leak" "$again" keep 2>"$dir/err" >"$dir/out" || fail "leak: status $?"
grep -q '; never freed [0-9.]* .iB: 1 block$' "$dir/err" || fail "a block that was never freed is not said"

# A program that uses no device; the status of the program; the rank of a job.
"$somashim" record -o "$dir/none" sh -c 'exit 7' 2>"$dir/err"
[ $? = 7 ] || fail "the status is not the program's"
grep -q "nothing was recorded in $dir/none: " "$dir/err" || fail "nothing is not said"
[ ! -e "$dir/none" ] || fail "a file of nothing"
SLURM_PROCID=5 "$somashim" record -o "$dir/rank" "$app" 3 >"$dir/out" 2>"$dir/err" || fail rank
"$dump" "$dir/rank" >"$dir/dump"
has "rank 5"
grep -q '^somashim: recorded' "$dir/err" && fail "rank 5 speaks"

# Other files whose names begin alike are not recordings of it.
"$somashim" record -o "$dir/q.trace" sh -c "'$app' 3; echo page >$dir/q.trace.html; : >$dir/q.trace2" \
	>"$dir/out" 2>"$dir/err" || fail "foreign files"
grep -q "recorded in $dir/q.trace$" "$dir/err" || fail "foreign files count"

# Killed: what was recorded is there.
timeout -s KILL 2 "$somashim" record -o "$dir/killed" "$app" 100000000 >"$dir/out" 2>&1
"$dump" "$dir/killed" >"$dir/dump" || fail "not read after kill -9"
has "problems 0"
for ((i = 0; i < 6000; i++)); do # the program ends just after `somashim`
	grep -q '^end still running$' "$dir/dump" || break
	sleep 0.01
	"$dump" "$dir/killed" >"$dir/dump"
done
has "end killed, or copied while it ran"

# A place that becomes one where nothing can be written: said, and the program runs.
mkdir "$dir/gone"
"$somashim" record -o "$dir/gone/x" sh -c "rmdir '$dir/gone'; '$app' 3" >"$dir/out" 2>"$dir/err" ||
	fail "the program did not run"
grep -q 'somashim: .*SOMASHIM_TRACE' "$dir/err" || fail "no reason"
# A directory that is none is refused before the program runs; only the program knows one with %p.
mkdir "$dir/folder"
mkfifo "$dir/fifo"
for name in missing/x "$dir/missing/x.%h" "$dir/one/x" folder "$dir/folder/" . /dev/full fifo /proc/x; do
	(cd "$dir" && "$somashim" record -o "$name" touch ran 2>err)
	[ $? = 2 ] && grep -q "record: $name: [NIi]" "$dir/err" || fail "$name is not refused"
done
[ ! -e "$dir/ran" ] || fail "the program ran"
"$somashim" record -o "$dir/no.%p/x" true 2>"$dir/err" || fail "%p in the directory: status $?"
exit 0
