#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the shim's integration tests, stress, random programs and allocation logs on the runtime and the
# device of this machine.
#   conformance.sh [--quick] [--only REGEX] [--runtime PATH] [-o FILE.json] [BUILD]
# The runtime is the one that `somashim doctor` takes: that of --runtime or ROCM_PATH, else the first that
# is found (/opt/rocm/core-*, /opt/rocm*, a wheel, the system's). The programs are compiled for it; the
# shim is the one in BUILD. Writes one JSON (conformance.json) with the device, the versions and a verdict
# per test. Exits 1 if a test failed, 77 if there is no device. docs/hardware.md says how to run it as a
# job.
set -uo pipefail
quick=0 only=. out=conformance.json runtime=${ROCM_PATH:-}
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--only) only=$2; shift ;;
	--runtime) runtime=$2; shift ;;
	-o) out=$2; shift ;;
	-*) echo "usage: conformance.sh [--quick] [--only REGEX] [--runtime PATH] [-o FILE.json] [BUILD]" >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
out=$(realpath "$out")
build=$(realpath "${1:-${BUILD:-$(dirname "$0")/../build}}")
cd "$(dirname "$0")/.." || exit 1
shim=$build/shim/libsomashim.so somashim=$build/cli/somashim
[ -f "$shim" ] && [ -x "$somashim" ] || { echo "conformance: $build is not built" >&2; exit 1; }

# ---- the runtime --------------------------------------------------------------
[ -z "$runtime" ] || runtime=$(realpath -s "$runtime")
unset LD_PRELOAD LD_AUDIT ${!SOMASHIM_@}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
timeout 600 "$somashim" doctor --json ${runtime:+--runtime "$runtime"} >"$work/doctor" 2>"$work/err"
status=$?
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/doctor" "$1"; }
library=$(field library)
grep -h -o 'somashim: [a-z ]*taken: [^"]*' "$work/doctor"
if [ "$(field verdict)" = "no runtime" ] && [ -n "$runtime" ]; then
	echo "conformance: no libamdhip64 that can be used in $runtime" >&2
	exit 1
elif [ $status = 77 ] || [ -z "$library" ]; then
	echo "conformance: no device: $(field verdict)"
	exit 77
fi
lib=${library%/*}
export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
include=()
for dir in "$lib/../include" "$lib/../../_rocm_sdk_devel/include"; do # the second is a wheel's
	[ ! -d "$dir/hip" ] || include=(-isystem "$dir")
done

# ---- the tests ----------------------------------------------------------------
# compile NAME SOURCES...
compile() {
	local name=$1
	shift
	${CC:-cc} -O1 -g -D_GNU_SOURCE -D__HIP_PLATFORM_AMD__ -w -I. "${include[@]}" "$@" "$library" \
		-pthread -ldl -o "$work/$name" >"$work/$name.log" 2>&1
}

# verdict NAME SECONDS STATUS: records a verdict, with the end of the log unless it passed.
verdict() {
	local word
	case $3 in
	0) word=passed ;;
	77) word=skipped ;;
	124) word=timeout ;;
	*) word=failed ;;
	esac
	printf '%-28s %-8s %ss\n' "$1" $word "$2"
	case $word in timeout | failed) tail -3 "$work/log" | sed 's/^/    /' ;; esac
	printf '%s\t%s\t%s\t%s\n' "$1" $word "$2" \
		"$([ $word = passed ] || tail -3 "$work/log" | tr '\n\t' '  ')" >>"$work/verdicts"
}

# run NAME "VARIABLE=VALUE ..." PROGRAM ARGUMENTS...
run() {
	local name=$1 variables=$2 program=$work/$3 start=$EPOCHREALTIME status
	shift 3
	[[ $name =~ $only ]] || return 0
	if [ -x "$program" ]; then
		# shellcheck disable=SC2086
		timeout -k 10 "$limit" env $variables LD_PRELOAD="$shim" "$program" "$@" \
			>"$work/log" 2>&1
		status=$?
	else
		cp "$program.log" "$work/log"
		status=126
	fi
	verdict "$name" "$(awk -v a="$start" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "%.2f", b - a }')" $status
}

limit=$((quick ? 120 : 1800))
for name in capture edge_arguments exits failures forks freesync hits ipc order overlap peers pointers \
	pools threads stress; do
	compile $name tests/shim/$name.c
done
compile alloc_loop tests/apps/alloc_loop.c
compile replay_hip tests/apps/replay_hip.c tests/apps/replay_log.c \
	cli/readers/*.c

run alloc_loop "" alloc_loop
for name in capture edge_arguments exits failures forks freesync hits ipc order overlap peers pointers \
	pools threads; do
	run $name "" $name
done
run freesync-always SOMASHIM_FREE_SYNC=always freesync
run freesync-never SOMASHIM_FREE_SYNC=never freesync

# Each backing and kind of fence that is offered.
seeds=$((quick ? 2 : 20)) steps=$((quick ? 100 : 2000))
for how in SOMASHIM_BACKING=hip SOMASHIM_BACKING=hsa SOMASHIM_BACKING=vmm SOMASHIM_FENCE=signal; do
	run "stress-${how#*=}" $how stress 1 1 "$steps"
	run "random-${how#*=}" $how stress 1000 "$seeds" 200
	[ $quick = 0 ] || continue
	for name in hits order pools; do
		run "$name-${how#*=}" $how $name
	done
done

# Allocation logs: recordings beside the repository, and generated ones.
kinds="training:6 serving:200 handoff:2000 amr:10"
[ $quick = 0 ] || kinds="training:1 handoff:200"
for kind in $kinds; do
	"$somashim" generate --rounds "${kind#*:}" -o "$work/${kind%:*}.csv" \
		"${kind%:*}" || exit 1
done
for log in "$work"/*.csv $([ $quick = 1 ] || ls ../shared/traces/*.csv.xz 2>/dev/null); do
	name=$(basename "$log" .xz)
	run "trace-${name%.csv}-classic" "" replay_hip --classic "$log"
	run "trace-${name%.csv}-async" "" replay_hip --async "$log"
	run "trace-${name%.csv}-streams" "" replay_hip --async --streams 4 --cross 20 "$log"
done

touch "$work/verdicts"
# ---- the report ---------------------------------------------------------------
python3 - "$work" "$out" "$(uname -sr)" "$library" "$(git describe --always --dirty 2>/dev/null)" <<-'EOF'
	import json, re, sys, time
	work, out, kernel, library, commit = sys.argv[1:]
	doctor = json.load(open(work + '/doctor'))
	said = '\n'.join(doctor['lines'])
	def find(pattern):
	    return re.findall(pattern, said, re.M)
	rows = [line.rstrip('\n').split('\t') for line in open(work + '/verdicts')]
	json.dump({
	    'somashim': (find(r'^somashim (\S+)$') or [''])[0], 'commit': commit,
	    'time': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
	    'gpus': [{'name': g, 'description': d}
	             for g, d in find(r'^ +device \d+: ([^,\n]*), (.*)')],
	    'arch': doctor['arch'], 'rocm': doctor['release'], 'hip': doctor['runtime'],
	    'runtime': (find(r'runtime: (.*)') or [library])[0], 'kernel': kernel,
	    'backing': (find(r'backing: (.*)') or [''])[0],
	    'fence': (find(r'fences: (.*)') or [''])[0],
	    'doctor': doctor['verdict'],
	    'tests': [dict(zip(('name', 'verdict', 'seconds', 'said'),
	                       (n, v, float(s), said))) for n, v, s, said in rows],
	}, open(out, 'w'), indent=1)
EOF
count() { awk -F '\t' -v w="$1" '$2 == w { n++ } END { print n + 0 }' "$work/verdicts"; }
[ -s "$work/verdicts" ] || { echo "conformance: no test is named like $only" >&2; exit 2; }
bad=$(($(count failed) + $(count timeout)))
echo "conformance: $(count passed) passed, $bad failed, $(count skipped) skipped: $out"
[ $bad = 0 ]
