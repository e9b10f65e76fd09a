#!/bin/bash
# SPDX-License-Identifier: MIT
# `somashim check`: what it prints, writes and exits with.
#   command.sh SOMASHIM CHECK_CORPUS CHECK_FAULT PYTHON CHECK_OWN_CODE
set -u
somashim=$1 corpus=$2 faults=$3 python=$4 own_code=$5
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-check-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir

fail() { echo "$*"; cat "$dir/err" 2>/dev/null; exit 1; }
# check STATUS ARGUMENT...
check() {
	local want=$1 got=0
	shift
	"$somashim" check "$@" >"$dir/out" 2>"$dir/err" || got=$?
	[ $got = "$want" ] || fail "$*: status $got, not $want"
}
says() { grep -q -- "$1" "$dir/err" || fail "no '$1'"; }
silent() { grep -q -- "$1" "$dir/err" && fail "'$1' is said"; true; }

check 0 "$corpus" free-without-wait
says '^========= Stream-ordered use after free: hipFreeAsync on stream 1 is not ordered after hipMemsetAsync on stream 2$'
says '^=========     Record an event on stream 2 after hipMemsetAsync, and let stream 1 wait for it before hipFreeAsync\.$'
says 'Host Frame: free_without_wait .*wrong\.c:'
says '^========= ERROR SUMMARY: 1 error$'
silent '__libc_start\|_start '
# As clang builds programs, without an index of addresses.
if command -v objcopy >/dev/null; then
	objcopy --remove-section=.debug_aranges "$corpus" "$dir/no_index"
	check 0 "$dir/no_index" free-without-wait
	says 'Host Frame: free_without_wait .*wrong\.c:'
	rm "$dir/no_index"
fi
check 9 --error-exitcode 9 "$corpus" free-without-wait
check 0 --error-exitcode 9 "$corpus" right-one_stream
says '^========= ERROR SUMMARY: 0 errors$'
check 7 --error-exitcode 9 sh -c "'$corpus' double-free; exit 7"

# A copy with memory that is not pinned may have made the host wait: nothing is said, but it is counted.
check 0 --error-exitcode 9 "$corpus" right-pageable_upload
says 'NOT CHECKED: 1 whose order is not known,'
check 0 --error-exitcode 9 "$corpus" right-pinned_copy_and_poll
says 'NOT CHECKED: 2 whose order is not known,'

# Calls that fail, once for each place, with the words of the runtime.
check 0 --error-exitcode 9 "$corpus" right-failing_calls
says '^========= ERROR SUMMARY: 0 errors$'
for which in all explicit; do
	check 9 --error-exitcode 9 --report-api-errors $which --json="$dir/found.json" "$corpus" right-failing_calls
	says '^========= ERROR SUMMARY: 18 errors, 6 of them different$'
	says '^========= API error: hipMalloc returned hipErrorOutOfMemory (2): out of memory$'
	says '^========= API error: hipHostMalloc returned '
	says '^========= API error: hipEventRecord returned '
	says '^========= API error: hipStreamWaitEvent returned '
	says '^========= API error: hipMallocAsync returned hipErrorInvalidValue (1): invalid argument$'
	says 'Host Frame: failing_calls .*commands\.c:'
	says '^=========     Seen 3 times$'
	silent 'Address'
done
# Those of a library in the folder of the runtime are told with `all`.
mkdir "$dir/rocm"
for folder in ${LD_LIBRARY_PATH//:/ }; do
	for file in "$folder"/lib*.so*; do
		[ ! -e "$folder/libamdhip64.so" ] || [ ! -f "$file" ] || cp "$file" "$dir/rocm"
	done
done
cp "$corpus" "$dir/rocm"
LD_LIBRARY_PATH=$dir/rocm check 0 --error-exitcode 9 --report-api-errors explicit "$dir/rocm/${corpus##*/}" right-failing_calls
LD_LIBRARY_PATH=$dir/rocm check 9 --error-exitcode 9 --report-api-errors all "$dir/rocm/${corpus##*/}" right-failing_calls
rm -r "$dir/rocm"

# A fill that never arrived is the runtime's fault, and the summary counts the block.
for n in 1 2; do
	SOMASIM_FAIL=hipMemsetAsync:$n=lost check 0 --error-exitcode 9 "$corpus" right-two_blocks_and_a_wait
	says "somashim: check: the runtime has lost a memset of 256 bytes"
	says 'the bytes of 1 block$'
done
SOMASIM_FAIL=hipMemsetAsync:3=lost check 0 --error-exitcode 9 "$corpus" right-two_blocks_and_a_wait
silent 'has lost'
for program in leak right-hip_malloc_and_hip_free; do
	SOMASIM_FAIL=hipMemsetAsync:%1=lost check 0 --error-exitcode 9 "$corpus" $program
	says 'the bytes of 1 block$'
done

# What the code of the program says of its kernels is so whatever is in a library.
check 9 --error-exitcode 9 "$own_code"
says 'Use after free: hipLaunchKernel of fill on stream 1'
says ' 0 kernel launches and 0 graph'

# What was never written: copied to the host, or freed.
check 9 --error-exitcode 9 --tool init "$corpus" right-copies_what_is_new
says '^========= Uninitialized memory: hipMemcpyAsync copies to the host 4096 bytes that were never written$'
says '^========= Uninitialized memory: hipMemcpy copies to the host 1000 bytes that were never written$'
says '^========= ERROR SUMMARY: 2 errors$'
check 9 --error-exitcode 9 --tool unused "$corpus" right-frees_what_is_new
says '^========= Unused memory: hipFreeAsync of a block that was never written$'
says '^========= Unused memory: hipFree of a block that was never written$'
says '^========= ERROR SUMMARY: 2 errors$'
check 0 --error-exitcode 9 --tool init "$corpus" right-copies_what_is_half_new
check 9 --error-exitcode 9 --tool init --init-percent 50 "$corpus" right-copies_what_is_half_new
check 0 --error-exitcode 9 --tool init --init-percent 51 "$corpus" right-copies_what_is_half_new
for program in right-copies_what_a_kernel_may_have_written right-copies_what_is_written; do
	check 0 --error-exitcode 9 --tool init,unused,bounds "$corpus" $program
	silent 'never written'
done
check 0 --error-exitcode 9 --tool all "$corpus" right-frees_what_is_new
check 2 --init-percent 101 "$corpus" leak

# Kernels by name, and their first launches.
check 9 --error-exitcode 9 --kernel-name fil "$corpus" kernel-before-allocation
check 9 --error-exitcode 9 --kernel-name kne=fill "$corpus" kernel-before-allocation
check 9 --error-exitcode 9 --kernel-name kns=ill "$corpus" kernel-before-allocation
check 0 --error-exitcode 9 --kernel-name kne=fil "$corpus" kernel-before-allocation
check 0 --error-exitcode 9 --kernel-name copy "$corpus" graph-kernel-after-free
check 9 --error-exitcode 9 --kernel-name copy "$corpus" use-on-another-stream
check 9 --error-exitcode 9 --launch-count 1 "$corpus" kernel-before-allocation
check 0 --error-exitcode 9 --launch-count 1 "$corpus" second-launch-after-free
check 9 --error-exitcode 9 --launch-count 2 "$corpus" second-launch-after-free
check 0 --error-exitcode 9 --launch-count 1 --kernel-name copy "$corpus" second-launch-after-free
check 2 --kernel-name '' "$corpus" leak
check 2 --launch-count some "$corpus" leak

# Tools and halves of the order.
check 0 --error-exitcode 9 "$corpus" leak
check 9 --error-exitcode 9 --leak-check full "$corpus" leak
says '^========= LEAK SUMMARY: 4096 bytes leaked in 1 allocation$'
check 9 --error-exitcode 9 --tool leak "$corpus" leak-of-many
check 0 --error-exitcode 9 --tool free "$corpus" free-without-wait
check 0 --error-exitcode 9 --track-stream-ordered-races use-before-alloc "$corpus" free-without-wait
check 9 --error-exitcode 9 --track-stream-ordered-races use-after-free "$corpus" free-without-wait
check 9 --error-exitcode 9 --track-stream-ordered-races use-before-alloc "$corpus" use-on-another-stream

check 9 --error-exitcode 9 "$corpus" write-past-end
says '^========= Out of bounds: 3 bytes were written behind the block, the first 0 bytes past its end$'
check 0 --error-exitcode 9 --padding 16 "$corpus" write-far-past-end
check 2 --padding 1M "$corpus" write-past-end

check 9 --error-exitcode 9 --tool poison "$corpus" use-after-free
says '^========= Write after free: 4096 bytes of the freed block have changed, the first at offset 0$'
says '^=========     Freed by hipFreeAsync on stream 1 '

# A page behind a block that is not mapped, and what was given back.
check 134 --tool guard "$corpus" large-past-end
says '^========= Memory access fault by the device, 0 bytes past the end of a block$'
says '^=========     Allocated by hipMallocAsync on stream 1 '
check 134 --tool all "$corpus" large-after-hip-free
says '^========= Memory access fault by the device inside a block that was freed$'
says '^=========     Freed by hipFree$'
check 134 --tool guard --guard 4K "$corpus" write-past-end
check 0 --error-exitcode 9 --tool guard "$corpus" write-past-end
check 0 --error-exitcode 9 --tool all --guard 4K --padding-front 64 "$corpus" right-what_pointers_are
check 9 --error-exitcode 9 --padding-front 64 "$corpus" before-start
says '^========= Out of bounds: 3 bytes were written in front of the block, the first 8 bytes before it$'
check 9 --error-exitcode 9 --padding-front 64 "$corpus" fill-from-before-start
says '^========= Out of bounds: hipMemsetAsync of 16 bytes begins 8 bytes before the block$'
check 2 --padding-front 1M "$corpus" leak
check 2 --guard some "$corpus" leak

# Other processes cannot have such a block, which is said once.
check 0 --error-exitcode 9 --tool guard "$corpus" right-handles
[ "$(grep -c 'hipIpcGetMemHandle refuses a block of 3145216 bytes' "$dir/err")" = 1 ] || fail "who refuses is not said once"
[ "$(grep -c '^no handle$' "$dir/err")" = 2 ] || fail "a guarded block has a handle"
check 0 --error-exitcode 9 --tool guard --guard 4M "$corpus" right-handles
silent 'refuses\|^no handle$'

# Nothing orders the free after the fill of the padding, so the padding is not read.
check 0 --tool bounds "$corpus" free-before-allocation
says 'whose pointers are not known, and the bytes of 1 block$'
check 0 --tool bounds "$corpus" past-end-and-events
says 'whose pointers are not known, and the bytes of 0 blocks$'

# The device faults at an address of a block that is gone.
export SOMASHIM_BACKING=vmm
check 134 "$faults" 5000
says '^========= Memory access fault by the device inside a block that was freed$'
says '^=========     Freed by hipFreeAsync on stream 1 '
check 134 "$faults" 5000 own
says '^========= Memory access fault by the device inside a block that was freed$'
says '^the program is told of event 0$'
says '^somasim: device page fault'
# Handlers that several threads register at once are all told.
for i in 1 2 3 4 5; do
	check 134 "$faults" 5000 threads
	[ "$(grep -c '^the program is told of event 0$' "$dir/err")" = 6 ] || fail "not all handlers are told"
done
check 134 "$faults" 0x800000
says '^========= Memory access fault by the device, 0 bytes past the end of a block that was freed$'
"$somashim" run "$faults" 5000 own >/dev/null 2>"$dir/err"
says '^the program is told of event 0$'
unset SOMASHIM_BACKING

# Files.
check 0 --json="$dir/found.json" --sarif "$dir/found.sarif" --log-file "$dir/log" "$corpus" use-on-another-stream
grep -q 'ERROR SUMMARY: 1 error' "$dir/log" || fail "no report in the file"
python3 - "$dir" <<'END' || fail "the JSON files"
import json, sys
found = json.load(open(sys.argv[1] + '/found.json'))
assert found['errors'] == 1 and len(found['processes']) == 1, found
finding = found['findings'][0]
assert finding['fault'] == 'use-before-alloc' and finding['size'] == 4096, finding
assert any(f.get('function') == 'use_on_another_stream' for f in finding['use']['frames']), finding
sarif = json.load(open(sys.argv[1] + '/found.sarif'))
assert sarif['version'] == '2.1.0', sarif
run = sarif['runs'][0]
result = run['results'][0]
assert result['ruleId'] in [r['id'] for r in run['tool']['driver']['rules']], result
assert result['locations'][0]['physicalLocation']['region']['startLine'] > 0, result
assert 'let stream 2 wait' in result['message']['text'], result
assert all(r['shortDescription']['text'] for r in run['tool']['driver']['rules']), run
END

# Many findings: the file has each call and its stack once, and the report has all of each finding.
check 9 --error-exitcode 9 --json="$dir/found.json" sh -c "'$corpus' many 20 30; cp $dir/somashim-check.*/*.json '$dir/lines'"
says '^========= ERROR SUMMARY: 600 errors$'
[ "$(grep -c 'Host Frame: allocate ' "$dir/err")" = 600 ] || fail "not each finding has the stack of its allocation"
python3 - "$dir" <<'END' || fail "the stacks of many findings"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + '/lines')]
sites = [f[k] for f in lines if f['kind'] == 'finding' for k in ('use', 'alloc', 'free')]
told = [s for s in sites if isinstance(s, dict)]
assert len(sites) == 1800 and len(told) == 20 + 30 + 1, len(told)
assert len({s['site'] for s in told}) == len({s['stack'] for s in told if 'frames' in s}) == len(told), told
assert {s for s in sites if not isinstance(s, dict)} <= {s['site'] for s in told}
found = json.load(open(sys.argv[1] + '/found.json'))['findings']
stacks = {tuple(json.dumps(f[k]['frames']) for k in ('use', 'alloc', 'free')) for f in found}
assert len(found) == len(stacks) == 600, len(stacks)
streams = [s['stream'] for s in told]
assert sum('kind' in s for s in streams) == 1 and len({s['number'] for s in streams}) == 1, streams[:3]
assert all(f[k]['stream']['kind'] == 'non-blocking' for f in found for k in ('use', 'alloc', 'free'))
assert not any(x in f[k] for f in found for k in ('use', 'alloc', 'free') for x in ('stack', 'site', 'linker_name'))
END
check 9 --error-exitcode 9 --print-limit 5 "$corpus" many 2 5
says '^========= NOT PRINTED: 5 findings (--print-limit 5)$'
says '^========= ERROR SUMMARY: 10 errors$'
[ "$(grep -c '^=========     Fault: ' "$dir/err")" = 5 ] || fail "not five findings are printed"
# A merged report is the same.
cp "$dir/found.json" "$dir/first.json"
check 0 --json="$dir/found.json" --merge "$dir/lines"
python3 -c 'import json, sys; a, b = [json.load(open(f))["findings"] for f in sys.argv[1:]]
assert a == b' "$dir/first.json" "$dir/found.json" || fail "the merged report differs"

# The name of a folder may be any bytes, but a URI and JSON may not. Sources in the current folder are relative to it.
odd=$dir/$'a b#%\xc3\xa9 \xff'
mkdir "$odd"
cp "$corpus" "$odd/it"
tool=$(realpath "$somashim")
(cd "$(dirname "$0")/../.." && "$tool" check --sarif "$dir/found.sarif" "$odd/it" double-free) 2>"$dir/err" || fail "an odd folder: $?"
says '^========= ERROR SUMMARY: 1 error$'
silent 'NOT READ'
python3 - "$dir" <<'END' || fail "the URIs"
import json, re, sys
def uris(x):
    if isinstance(x, dict):
        if 'artifactLocation' in x:
            yield x['artifactLocation']['uri']
        x = list(x.values())
    if isinstance(x, list):
        for y in x:
            yield from uris(y)
found = set(uris(json.load(open(sys.argv[1] + '/found.sarif'))))
assert found and all(re.fullmatch(r"(file:///)?([\w/.~+-]|%[0-9A-F]{2})+", u, re.ASCII) for u in found), found
assert any(u.startswith('file:///') and u.endswith('/a%20b%23%25%C3%A9%20%EF%BF%BD/it') for u in found), found
END
check 0 --sarif "$dir/found.sarif" "$corpus" double-free
grep -q '"uri": "\(file:///.*/\)\?tests/check/wrong_frees\.c"' "$dir/found.sarif" || fail "no path from the top folder"
rm -r "$odd"

# What repeats is told once, and counted.
check 0 --json="$dir/found.json" --sarif "$dir/found.sarif" "$corpus" use-after-free-three-times
says '^=========     Seen 3 times$'
says '^========= ERROR SUMMARY: 3 errors, 1 of them different$'
python3 - "$dir" <<'END' || fail "the counts"
import json, sys
found = json.load(open(sys.argv[1] + '/found.json'))
assert [f['count'] for f in found['findings']] == [3] and found['errors'] == 3, found
results = json.load(open(sys.argv[1] + '/found.sarif'))['runs'][0]['results']
assert [r['occurrenceCount'] for r in results] == [3], results
END
check 0 --json="$dir/found.json" sh -c "'$corpus' use-after-free-three-times & '$corpus' use-after-free-three-times; wait"
says '^========= ERROR SUMMARY: 6 errors, 1 of them different$'

# Two lines of Python are two places, although they are one call stack of the interpreter.
if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; then
	check 0 --json="$dir/found.json" --sarif "$dir/found.sarif" "$python" "$(dirname "$0")/ordered.py"
	says '^========= ERROR SUMMARY: 2 errors$'
	for line in 22 23; do says "^=========         Python Frame: Layer.forward (.*ordered\.py:$line)$"; done
	[ "$(grep -c 'Python Frame: <module> .*ordered\.py:29)$' "$dir/err")" = 2 ] || fail "who called it is not said"
	grep -q '"startLine": 23' "$dir/found.sarif" || fail "no line of Python"
	echo 'use-before-alloc Layer.forward' >"$dir/known"
	check 0 --error-exitcode 9 --suppressions "$dir/known" "$python" "$(dirname "$0")/ordered.py"
fi

# Each call is named as what it did.
check 0 "$corpus" interior-free
says '^=========     Freed by hipFreeAsync on stream 1 '
silent '    Used by'
check 0 "$corpus" free-on-null-stream
says '^=========     Freed by hipFreeAsync on the null stream of device 0$'

# Several processes are one report.
check 9 --error-exitcode 9 sh -c "'$corpus' double-free & '$corpus' interior-free; wait"
says '^========= ERROR SUMMARY: 2 errors$'
says ' in 2 processes\.'

# Reports of several runs, such as one of each rank, are merged.
check 0 --json="$dir/1.json" "$corpus" use-after-free-three-times
check 0 --json="$dir/2.json" "$corpus" use-after-free-three-times
SOMASHIM_CHECK=order SOMASHIM_CHECK_FILE="$dir/3.json" "$somashim" run "$corpus" free-without-wait
check 0 --merge "$dir/1.json"
says '^========= ERROR SUMMARY: 3 errors, 1 of them different$'
check 9 --error-exitcode 9 --json="$dir/4.json" --merge "$dir"/[123].json
says '^========= ERROR SUMMARY: 7 errors, 2 of them different$'
says ' in 3 processes\.'
cp "$dir/err" "$dir/merged"
check 0 --merge "$dir/4.json"
cmp "$dir/err" "$dir/merged" || fail "a merged report is not read as it was written"
# `somashim report` says the same, and who has it; a rank is what the environment of the job says.
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SOMASHIM_CHECK=order SOMASHIM_CHECK_FILE="$dir/rank.%r.json" \
	"$somashim" run "$corpus" free-without-wait 2>/dev/null
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 SOMASHIM_CHECK=order SOMASHIM_CHECK_FILE="$dir/rank.%r.json" \
	"$somashim" run "$corpus" free-without-wait 2>/dev/null
"$somashim" report "$dir/rank.1.json" "$dir/rank.0.json" >"$dir/err" || fail "report: $?"
says '^=========     In ranks 0, 1$'
says '^=========     Seen 2 times$'
says '^========= ERROR SUMMARY: 2 errors, 1 of them different$'
# Files that somebody put together are still those of their processes.
cat "$dir"/rank.?.json >"$dir/both"
check 0 --merge "$dir/both"
says '^=========     In ranks 0, 1$'
sed 's/free-before-use/double-free/; s/"rank": 1/"rank": 7/' "$dir/rank.1.json" >>"$dir/both"
for rank in 5 3 4; do sed "s/\"rank\": 1/\"rank\": $rank/" "$dir/rank.1.json"; done >"$dir/more"
check 0 --merge "$dir/both" "$dir/more"
says '^=========     In rank 7$'
says '^=========     In ranks 0, 1, 3 to 5$'
says '^========= ERROR SUMMARY: 6 errors, 2 of them different$'
"$somashim" report "$dir/rank.1.json" "$dir/rank.0.json" >"$dir/err" || fail "report: $?"
"$somashim" report --json "$dir/rank.1.json" >"$dir/5.json" || fail "report --json: $?"
"$somashim" report "$dir/5.json" "$dir/rank.0.json" >"$dir/merged" || fail "report of a report: $?"
cmp "$dir/err" "$dir/merged" || fail "report does not read what it writes"
"$somashim" report -o "$dir/page" "$dir/5.json" 2>"$dir/err" && fail "a page of findings"
says 'are for recordings'
rm "$dir"/rank.[01].json "$dir/5.json"
check 2 --merge "$dir/1.json" "$dir/none"
says 'none: No such file'
check 2 --merge
# What is no report is named, whatever it is: nothing is not the same as no errors. A pipe is read once.
check 0 --merge - <"$dir/1.json"
says '^========= ERROR SUMMARY: 3 errors, 1 of them different$'
check 0 --merge /dev/stdin < <(cat "$dir/3.json")
says '^========= ERROR SUMMARY: 1 error$'
: >"$dir/empty.json"
printf 'Thread,Time,Action,Pointer,Size,Stream\n' >"$dir/log.csv"
printf '{"findings": 1}\n' >"$dir/other.json"
printf '{"kind": "finding"' >"$dir/cut.json"
for bad in empty.json log.csv other.json .; do
	check 2 --merge "$dir/1.json" "$dir/$bad"
	says "check: $dir/$bad: "
	silent 'ERROR SUMMARY'
done
if [ -c /dev/zero ]; then
	got=0
	timeout 20 "$somashim" check --merge /dev/zero 2>"$dir/err" || got=$?
	[ $got = 2 ] || fail "/dev/zero: status $got"
fi
# A line that cannot be read costs that line, and is counted.
check 0 --merge "$dir/cut.json"
says '^========= NOT READ: 1 damaged line or finding$'
{ head -n 1 "$dir/3.json"; echo '{"kind": "fin'; echo '{"kind": "finding", "count": -1}'; echo; printf '{"ki'; } >"$dir/hurt.json"
check 9 --error-exitcode 9 --merge "$dir/hurt.json"
says '^========= ERROR SUMMARY: 1 error$'
says '^========= NOT READ: 3 damaged lines or findings$'
# Other programs lay JSON out in their way.
python3 -m json.tool "$dir/1.json" "$dir/indented.json"
"$somashim" report "$dir/indented.json" >"$dir/err" || fail "report of another layout: $?"
says '^========= ERROR SUMMARY: 3 errors, 1 of them different$'
rm "$dir"/[1234].json "$dir"/{empty,other,cut,hurt,indented}.json "$dir/log.csv"

# Suppressions.
printf '# known\nuse-after-* main\ndouble-free run main\n' >"$dir/known"
check 0 --error-exitcode 9 --suppressions "$dir/known" "$corpus" double-free
says '^========= SUPPRESSED: 1 finding'
check 0 --error-exitcode 9 --suppressions "$dir/known" "$corpus" use-after-free
check 9 --error-exitcode 9 --suppressions "$dir/known" "$corpus" free-without-wait
echo 'double-free main run' >"$dir/known" # the wrong order
check 9 --error-exitcode 9 --suppressions "$dir/known" "$corpus" double-free
# A line that fits nothing is said, and lines that fit can be had.
printf '\n# all of it\nleak *\nuse-*-race nobody\ndouble-free\n' >"$dir/known"
check 0 --error-exitcode 9 --suppressions "$dir/known" "$corpus" double-free
says "^somashim: $dir/known:3: this suppression fits no finding$"
says "^somashim: $dir/known:4: this suppression fits no finding$"
silent "known:5:"
for name in double-free use-on-another-stream kernel-after-free; do
	check 0 --gen-suppressions "$dir/known" "$corpus" $name
	says '^=========     Fault: [a-z-]*$'
	check 0 --error-exitcode 9 --suppressions "$dir/known" "$corpus" $name
	says '^========= SUPPRESSED: 1 finding$'
	check 9 --error-exitcode 9 --suppressions "$dir/known" "$corpus" interior-free
done
check 2 --suppressions "$dir/none" "$corpus" leak

check 2 --suppressions "$dir" "$corpus" leak
says "check: $dir: Is a directory"

# A file that cannot be written is refused before the program runs, and named.
for option in --log-file --json --sarif; do
	check 2 $option="$dir/none/file" touch "$dir/ran"
	says "check: $dir/none/file: No such file"
	[ ! -e "$dir/ran" ] || fail "$option: the program ran"
	[ ! -c /dev/full ] || { check 2 $option=/dev/full "$corpus" leak; says 'check: /dev/full: No space'; }
	check 2 $option="$dir/known" --merge "$dir/known"
	says 'it is what it reads'
done
check 2 --json="$dir/same" --sarif="$dir/same" "$corpus" leak
says 'name one file'
check 127 --json="$dir/found.json" --log-file "$dir/log" "$dir/none"
[ ! -e "$dir/same" ] || fail "a file of a refused call is left"
# The folder of temporary files may have any name, or be none.
for name in 'a[b] c' 'a%p%h' none/none; do
	case $name in none*) ;; *) mkdir "$dir/$name" ;; esac
	TMPDIR=$dir/$name check 9 --error-exitcode 9 "$corpus" double-free
	says '^========= ERROR SUMMARY: 1 error$'
done
[ -z "$(find "$dir" -path '*/somashim-check.*')" ] || fail "files are left: $(find "$dir" -path '*/somashim-check.*')"

# Wrong calls.
check 2 --tool nonsense "$corpus" leak
check 2 --report-api-errors some "$corpus" leak
check 2 --leak-check half "$corpus" leak
check 2 --track-stream-ordered-races some "$corpus" leak
check 127 "$dir/none"
# Nothing was looked at: that is not the same as no errors.
check 0 /bin/true
says 'nothing was checked'
for how in '' --require-device; do
	check 3 ${how:---error-exitcode 9} /bin/true
	says 'somashim: nothing was checked'
done
check 0 --error-exitcode 9 --require-device=no /bin/true
check 2 --require-device=some /bin/true
SOMASIM_NO_DEVICE=1 check 3 --error-exitcode 9 sh -c "'$corpus' leak; true"
says 'not used: no device was found'
check 3 --error-exitcode 9 sh -c "SOMASHIM_DISABLE=1 '$corpus' leak; true"
says 'not used: SOMASHIM_DISABLE is set'
check 9 --error-exitcode 9 --tool leak sh -c "'$corpus' leak; '$corpus' right-one_stream"
check 3 --error-exitcode 9 sh -c "'$corpus' killed; '$corpus' right-one_stream"
says '1 process that used a device was killed before the end'
check 9 --error-exitcode 9 sh -c "'$corpus' killed; '$corpus' double-free"
[ -z "$(find "$dir" -name 'somashim-check.*')" ] || fail "files are left"
exit 0
