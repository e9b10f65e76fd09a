#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs what a bundle of scripts/gpu.sh holds, where it is called `run.sh`, on a device of this machine:
#   run.sh [--quick|--long] [--tests] [--only REGEX] [--sim] [--emulator] [--runtime PATH] [--limit SECONDS] [-o FILE.json]
# The device is the first that works: an AMD GPU on the runtime that `somashim doctor` takes, an NVIDIA GPU on the
# bundle's layer above CUDA's driver, or AMD's emulator, where that is installed. --emulator takes the emulator (`mirage`
# with MIRAGE_PROFILE=mi300x, or `rocjitsu` with ROCJITSU_CONFIG=FILE), --sim the software device. --runtime (or
# ROCM_PATH) names a runtime.
# --quick takes a minute, --long hours; --tests leaves the figures out; --only picks tests by name, and then there
# are no figures. After SECONDS nothing more is started. Writes one JSON (gpu.json) and prints one table.
# Exits 1 if a test failed, 77 if there is no device.
set -uo pipefail
length=normal figures=1 only=. out=gpu.json runtime=${ROCM_PATH:-} sim=0 emulated=0 end=
called=("$@")
usage() { sed -n '4p' "$0" | cut -c 3- >&2; exit 2; }
while [ $# -gt 0 ]; do
	case $1 in
	--quick) length=quick ;;
	--long) length=long ;;
	--tests) figures=0 ;;
	--sim) sim=1 ;;
	--emulator) emulated=1 ;;
	--only | --runtime | --limit | -o)
		[ $# -gt 1 ] || usage
		case $1 in
		--only) only=$2 figures=0 ;;
		--runtime) runtime=$2 ;;
		--limit) end=$((SECONDS + $2)) ;;
		-o) out=$2 ;;
		esac
		shift ;;
	-h | --help) sed -n '3,/^[^#]/s/^# //p' "$0"; exit 0 ;;
	*) usage ;;
	esac
	shift
done
out=$(realpath "$out")
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/bin shim=$here/shim/libsomashim.so
# A loader that is newer than this bundle, or one that searches other places, keeps its own libraries.
somashim() { LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib "$here/cli/somashim" "$@"; }
# (An emulator is a preload, too, and stays in front of what is preloaded here.)
[ -n "${GPU_EMULATED:-}" ] || unset LD_PRELOAD
emulator=${LD_PRELOAD:+$LD_PRELOAD:}
unset LD_AUDIT ${!SOMASHIM_@}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- the runtime and its device -----------------------------------------------
# line SED-EXPRESSION: the first line of the doctor that it prints
line() { sed 's/", "/\n/g; s/"]/\n/g' "$work/doctor" | sed -n "$1" | head -1; }
# look RUNTIME: asks the doctor about it ("": what there is). False: no device.
look() {
	somashim doctor --json ${1:+--runtime "$1"} >"$work/doctor" 2>"$work/doctor.err"
	local status=$?
	library=$(sed -n 's/.*"library": "\([^"]*\)".*/\1/p' "$work/doctor")
	verdict=$(sed -n 's/.*"verdict": "\([^"]*\)".*/\1/p' "$work/doctor")
	[ $status != 77 ] && [ -n "$library" ]
}
[ -z "$runtime" ] || runtime=$(realpath -s "$runtime")
# The runtimes of the bundle play any release; without this, the one by whose name a program loads them.
as_of_bundle() {
	export SOMASIM_HIP_VERSION=${SOMASIM_HIP_VERSION:-7.2} SOMASIM_QUIET=1
	look "$1"
}
of_bundle() {
	[ -d "$here/$1" ] && as_of_bundle "$here/$1"
}
# AMD's emulator gives a device to the processes that it starts, so this script starts once more under it. There
# GPU_EMULATED names it.
emulate() {
	[ -z "${GPU_EMULATED:-}" ] || return 1
	local profile=${MIRAGE_PROFILE:-mi300x} arguments=() argument start
	if command -v mirage >/dev/null; then
		start=(mirage run --profile "$profile" --)
		export GPU_EMULATED="mirage $profile"
	elif command -v rocjitsu >/dev/null && [ -n "${ROCJITSU_CONFIG:-}" ]; then
		start=(rocjitsu --config "$ROCJITSU_CONFIG" --)
		export GPU_EMULATED="rocjitsu $(basename "$ROCJITSU_CONFIG" .json)"
	else
		return 1
	fi
	for argument in "${called[@]}"; do
		[ "$argument" = --emulator ] || arguments+=("$argument")
	done
	rm -rf "$work"
	exec "${start[@]}" bash "$here/run.sh" "${arguments[@]}"
}
if [ $emulated = 1 ]; then
	emulate || { echo "gpu: --emulator: there is no mirage (AMD's package amdrocm-emulation), nor rocjitsu with ROCJITSU_CONFIG" >&2; exit 77; }
elif [ $sim = 1 ]; then
	of_bundle sim
elif [ -n "$runtime" ]; then
	look "$runtime"
else
	look "" && case $library in "$here"/*) as_of_bundle "" ;; esac || of_bundle cuda
fi
if [ $? != 0 ]; then
	if [ "$verdict" = "no runtime" ] && [ -n "$runtime" ]; then
		echo "gpu: no libamdhip64 that can be used in $runtime" >&2
		exit 1
	fi
	emulate
	echo "gpu: skipped, $verdict"
	exit 77
fi
line 's/.*\(somashim: runtime taken: .*\)/\1/p'
library=$(realpath -s "$library")
# The programs ask for one soname, and this runtime may have another.
needed=$(cat "$here/needed")
mkdir "$work/runtime"
outer=${LD_LIBRARY_PATH:-}
[ "${library##*/}" = "$needed" ] || ln -s "$library" "$work/runtime/$needed"
export LD_LIBRARY_PATH=$work/runtime:${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ---- tests ----------------------------------------------------------------------
case $length in
quick) limit=120 seeds=0 steps=100 slice=0.01 rounds=1 few=few sleeps="4 16" ;;
normal) limit=120 seeds=5 steps=300 slice=0.03 rounds=2 few=few sleeps="20 512" ;;
long) limit=1800 seeds=20 steps=2000 slice=0.1 rounds=2 few= sleeps="100 4096" ;;
esac
# An emulated device takes a thousand times as long for a kernel.
[ -z "${GPU_EMULATED:-}" ] || limit=$((limit * 10)) figures=0 sleeps="${sleeps% *} 8"
WORK_US=15 # of the device, per allocation of a replay

# selftest BACKING: what the doctor's self-test says of it; and has BACKING: does it work here?
selftest() { line "s/^somashim: \(selftest device 0 $1: .*\)/\1/p"; }
has() { [ "$(selftest "$1")" = "selftest device 0 $1: passed" ]; }

# record NAME WORD SECONDS SAID
record() {
	printf '%-34s %-8s %7ss  %s\n' "$1" "$2" "$3" "$4"
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(printf %s "$4" | tr '\n\t' '  ')" >>"$work/verdicts"
}

# program SECONDS "VARIABLE=VALUE ..." PROGRAM ARGUMENTS...: runs it into $work/log; sets `took` and `status`
program() {
	local most=$1 variables=$2 start=$EPOCHREALTIME
	shift 2
	if [ -n "$end" ] && [ $((end - SECONDS)) -lt "$most" ]; then
		most=$((end - SECONDS))
		[ "$most" -gt 0 ] || { took=0 status=77; echo "no time is left" >"$work/log"; return; }
	fi
	# shellcheck disable=SC2086
	timeout -k 10 "$most" env $variables "$bin/$1" "${@:2}" >"$work/log" 2>&1 </dev/null
	status=$?
	took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}

# run NAME "VARIABLE=VALUE ..." PROGRAM ARGUMENTS...: a test, under the preload
run() {
	local name=$1 variables=$2 backing word=failed said
	shift 2
	[[ $name =~ $only ]] || return 1
	backing=$(sed -n 's/.*SOMASHIM_BACKING=\([a-z]*\).*/\1/p' <<<"$variables")
	case $variables in *FENCE=signal*) backing=hsa ;; esac # signals are HSA's
	if [ -n "$backing" ] && [ "$backing" != hip ] && ! has "$backing"; then
		record "$name" skipped 0.00 "$(selftest "$backing")"
		return 1
	fi
	case $1 in # these count calls, or have blocks that must stay: no memory goes back by age meanwhile
	hits | overlap | ipc) variables="$variables SOMASHIM_DECAY_MS=600000" ;;
	esac
	program $limit "LD_PRELOAD=$emulator$shim$counter $variables" "$@"
	said=$(grep -v '^somashim:' "$work/log" | grep . | tail -3) # the program's own words
	[ -n "$said" ] || said=$(tail -3 "$work/log")
	case $status in
	0) word=passed said=$(sed -n 's/^result: //p' "$work/log") ;;
	77) word=skipped said=$(tail -1 <<<"$said") ;;
	124 | 137) word=timeout ;;
	esac
	# What was asked for was not tested, if the shim says that it took something else.
	if [ $status = 0 ] && grep -q "SOMASHIM_BACKING=$backing is not used" "$work/log"; then
		word=skipped said=$(grep "SOMASHIM_BACKING=$backing is not used" "$work/log" | tail -1)
	fi
	record "$name" $word "$took" "$said"
	[ $word = passed ]
}

counter=
touch "$work/verdicts" "$work/figures"
began=$SECONDS
# What every runtime must be able to do. What else the self-test found decides which tests are skipped.
if [[ selftest-hip =~ $only ]]; then
	has hip && record selftest-hip passed 0.00 "" || record selftest-hip failed 0.00 "$(selftest hip)"
fi
run alloc_loop "" alloc_loop
for name in capture edge_arguments exits failures forks hits ipc order overlap peers pinned pointers pools threads; do
	run $name "" $name
done
for how in auto always never; do
	run freesync-$how SOMASHIM_FREE_SYNC=$how freesync $few
done
for how in SOMASHIM_BACKING=hip SOMASHIM_BACKING=hsa SOMASHIM_BACKING=vmm SOMASHIM_FENCE=signal; do
	run "stress-${how#*=}" $how stress 1 1 "$steps"
	run "busy-${how#*=}" $how busy mixed 1 "$((steps * 3))"
	[ $length != quick ] || continue
	run "random-${how#*=}" $how stress 1000 $seeds 200
	run "busy-never-${how#*=}" "$how SOMASHIM_FREE_SYNC=never" busy classic 2 "$((steps * 3))"
	run "hits-${how#*=}" $how hits
	run "pools-${how#*=}" $how pools
	# (It holds the null stream, for which a mapping waits on ROCm before 7.14.)
	[ "$how" = SOMASHIM_BACKING=vmm ] || run "order-${how#*=}" $how order
done
# The command as the programs start it, with what it needs beside it.
cat >"$work/somashim" <<-END
	#!/bin/sh
	LD_LIBRARY_PATH=\$LD_LIBRARY_PATH:$here/lib exec "$here/cli/somashim" "\$@"
END
chmod +x "$work/somashim"
for how in pools all; do
	# shellcheck disable=SC2086
	run sleep-$how "SOMASHIM_BACKING=vmm SOMASHIM_SLEEP=$how" sleep_device "$work/somashim" $sleeps
done

# ---- figures, and allocation logs, which are tests as well --------------------------
# The devices that count their calls say how many replays make.
export OBSERVE_OUT=$work/observe
counter=:$bin/libobserve.so
# figure WHAT CASE WAY UNIT VALUE
figure() {
	[ -z "$5" ] || printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$work/figures"
}
value() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$work/log" | tail -1; }

# replayed LOG WAY: figures of the last replay. What was taken from the device is said by somashim's own table, else by the
# pool's attribute, or for plain hipMalloc by the device.
replayed() {
	local taken
	taken=$(sed -n 's/.*reserved [0-9.]* MiB (high \([0-9.]*\)).*/\1/p' "$work/log" |
		awk '{ n += $1 } END { if (NR) printf "%.0f", n * 1048576 }')
	[ -n "$taken" ] || taken=$(value reserved_high)
	figure replay "$1" "$2" "taken/used" "$(awk -v t="${taken:-$(value device_high)}" -v u="$(value peak_requested)" \
		'BEGIN { if (t && u) printf "%.3f", t / u }')"
	figure replay "$1" "$2" s "$(value seconds)"
	figure replay "$1" "$2" "memory calls" "$(sed -n 's/.*memory_calls=\([0-9]*\).*/\1/p' "$work/observe" 2>/dev/null)"
	rm -f "$work/observe"
}

for log in "$here"/logs/*.csv; do
	name=$(basename "$log" .csv)
	case $length:$name in quick:serving | quick:handoff | normal:* | long:*) ;; *) continue ;; esac
	streams=$(awk -F, 'NR > 1 && n < 32 && !($6 in s) { s[$6]; n++ } END { print n }' "$log")
	replay=(replay_hip --repeat $rounds --work $WORK_US --seed 1 --streams "$streams")
	if [ $figures = 1 ]; then # The runtime may fail on its own; then there is no figure.
		program 60 "LD_PRELOAD=${counter#:}" "${replay[@]}" --classic "$log"
		[ $status != 0 ] || replayed "$name" "native hipMalloc"
		program 60 "LD_PRELOAD=${counter#:}" "${replay[@]}" --async --keep "$log"
		[ $status != 0 ] || replayed "$name" "native hipMallocAsync, threshold max"
	fi
	run "trace-$name-classic" SOMASHIM_STATS=1 "${replay[@]}" --classic "$log" &&
		replayed "$name" "hipMalloc, somashim"
	for backing in hip vmm; do
		run "trace-$name-$backing" "SOMASHIM_STATS=1 SOMASHIM_BACKING=$backing" "${replay[@]}" --async "$log" &&
			replayed "$name" "hipMallocAsync, somashim $backing"
	done
	run "trace-$name-streams" "" replay_hip --async --streams 4 --cross 20 "$log"
done

# pairs WAY "VARIABLE=VALUE ..." ARGUMENTS...
pairs() {
	local way=$1 pair us
	program 120 "$2" calls "${@:3}" $slice
	case $status:$way in 0:* | 77:* | *:native*) ;; *) record "pairs, $way" failed "$took" "$(tail -1 "$work/log")" ;; esac
	while read -r pair us; do figure pair "$pair" "$way" us "$us"; done \
		< <(sed -n 's/^\([0-9]*x[0-9]*\) work \([a-z]*\) live \([0-9]*\) sync \([0-9]*\) /\1,\2,live_\3,sync_\4 /p' "$work/log")
}
if [ $figures = 1 ]; then
	pairs "native hipMalloc" "" classic
	[ $length = quick ] || pairs "native hipMallocAsync" "" async
	pairs "native hipMallocAsync, threshold max" "" async --keep
	pairs "hipMalloc, somashim" "LD_PRELOAD=$shim" classic
	[ $length = quick ] || pairs "hipMalloc, somashim never" "LD_PRELOAD=$shim SOMASHIM_FREE_SYNC=never" classic
	for backing in hip vmm; do
		! has $backing || pairs "hipMallocAsync, somashim $backing" "LD_PRELOAD=$shim SOMASHIM_BACKING=$backing" async
	done
fi
# Other allocators, where they are installed. One that fails has no figure.
if [ $figures = 1 ] && command -v python3 >/dev/null; then
	[ $length = quick ] && logs=("$here"/logs/serving.csv) || logs=("$here"/logs/*.csv)
	most=$((${end:-$((SECONDS + 120))} - SECONDS))
	[ $most -le 0 ] || LD_LIBRARY_PATH=$outer timeout $most python3 "$here/peers.py" "${logs[@]}" 2>"$work/log" |
		while IFS=$'\t' read -r name peer ratio; do
			figure replay "$name" "$peer, idle device" "taken/used" "$ratio"
		done
fi
[ -s "$work/verdicts" ] || { echo "gpu: no test is named like $only" >&2; exit 2; }

# ---- the report -----------------------------------------------------------------
# One column per way, one row per case; a table for each unit.
awk -F '\t' '
	{ t = $1 " (" $4 ")"; if (!(t in seen)) { seen[t]; tables[++nt] = t }
	  if (!((t, $2) in row)) { row[t, $2]; rows[t, ++nr[t]] = $2 }
	  if (!((t, $3) in way)) { way[t, $3]; ways[t, ++nw[t]] = $3 }
	  v[t, $2, $3] = $5 }
	END { for (i = 1; i <= nt; i++) { t = tables[i]; print "\n" t
		for (w = 1; w <= nw[t]; w++) print "  [" w "] " ways[t, w]
		line = sprintf("%-28s", ""); for (w = 1; w <= nw[t]; w++) line = line sprintf("%10s", "[" w "]"); print line
		for (r = 1; r <= nr[t]; r++) { line = sprintf("%-28s", rows[t, r])
			for (w = 1; w <= nw[t]; w++) { x = v[t, rows[t, r], ways[t, w]]; line = line sprintf("%10s", x == "" ? "-" : x) }
			print line } } }' "$work/figures"

string() { # FIELD of the doctor
	sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$work/doctor"
}
driver=$(modinfo -F version amdgpu 2>/dev/null | head -1)
case $library in
"$here"/sim/*) driver="the software device" ;;
"$here"/cuda/*)
	driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1 | grep . ||
		sed -n 's/^NVRM version:.*  \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null)
	driver="NVIDIA's, ${driver:-of an unknown version}" ;;
esac
[ -z "${GPU_EMULATED:-}" ] || driver="emulated by $GPU_EMULATED"
gpus=$(sed 's/", "/\n/g' "$work/doctor" | sed -n 's/^ *device [0-9]*: \([^,]*\), \(.*\)/\1\t\2/p')
runtime_line=$(line 's/^ *runtime: //p') backing=$(line 's/^ *backing: //p') fence=$(line 's/^ *fences: //p')
version=$(line 's/^somashim \([0-9][^ ]*\)$/\1/p')
export S_gpus=$gpus S_somashim=$version S_commit=$(cat "$here/commit") S_time=$(date -u +%Y-%m-%dT%H:%M:%SZ) \
	S_seconds=$((SECONDS - began)) S_length=$length S_arch=$(string arch) S_rocm=$(string release) \
	S_hip=$(string runtime) S_runtime=${runtime_line:-$library} S_kernel=$(uname -sr) S_driver=${driver:-unknown} \
	S_backing=$backing S_fence=$fence S_doctor=$verdict
awk -F '\t' '
	function text(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); gsub(/[[:cntrl:]]/, " ", s); return "\"" s "\"" }
	BEGIN { n = split("somashim commit time length gpus arch rocm hip runtime kernel driver backing fence doctor", key, " ")
		printf "{\n \"seconds\": %d", ENVIRON["S_seconds"]
		for (i = 1; i <= n; i++) {
			if (key[i] != "gpus") { printf ",\n \"%s\": %s", key[i], text(ENVIRON["S_" key[i]]); continue }
			m = split(ENVIRON["S_gpus"], gpu, "\n")
			printf ",\n \"gpus\": ["
			for (g = 1; g <= m; g++) { split(gpu[g], part, "\t")
				printf "%s{\"name\": %s, \"description\": %s}", (g > 1 ? ", " : ""), text(part[1]), text(part[2]) }
			printf "]" }
		printf ",\n \"tests\": [" }
	FILENAME == ARGV[1] { printf "%s\n  {\"name\": %s, \"verdict\": %s, \"seconds\": %s, \"said\": %s}", (t++ ? "," : ""),
		text($1), text($2), $3, text($4); next }
	{ if (!f) printf "\n ],\n \"figures\": ["
	  printf "%s\n  {\"what\": %s, \"case\": %s, \"way\": %s, \"unit\": %s, \"value\": %s}", (f++ ? "," : ""), text($1), text($2),
		text($3), text($4), $5 }
	END { if (!f) printf "\n ],\n \"figures\": ["; printf "\n ]\n}\n" }' "$work/verdicts" "$work/figures" >"$out"
count() { awk -F '\t' -v w="$1" '$2 == w { n++ } END { print n + 0 }' "$work/verdicts"; }
bad=$(($(count failed) + $(count timeout)))
echo
echo "$(head -1 <<<"$gpus" | cut -f 1), $S_driver, $S_runtime"
echo "gpu: $(count passed) passed, $bad failed, $(count skipped) skipped, $S_seconds s: $out"
[ $bad = 0 ]
