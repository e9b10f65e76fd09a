#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints every figure of the hot path in one table: value, limit, peer. Exits non-zero if a limit is
# missed. bench/README.md explains the rows.
#   bench/run.sh [BUILD_DIR [TRACE..]]
set -uo pipefail
. "$(dirname "$0")/../scripts/usage.sh"
build=${1:-$(dirname "$0")/../build}
[ -d "$build" ] || wrong_call "no directory $build"
build=$(realpath "$build")
[ $# = 0 ] || shift
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

need() { # COMMAND-OR-LIBRARY PACKAGE
	command -v "$1" >/dev/null || ldconfig -p | grep -F "$1" >/dev/null ||
		{ echo "bench: $1 is missing: install $2" >&2; exit 2; }
}
need valgrind valgrind
need libmimalloc.so libmimalloc-dev
[ -x "$build/bench/bench_pair" ] || { echo "bench: $build has no bench programs" >&2; exit 2; }

traces=("$@")
if [ ${#traces[@]} = 0 ]; then
	for f in "$here"/../../shared/traces/*.csv.xz; do [ -f "$f" ] && traces+=("$f"); done
fi
if [ ${#traces[@]} = 0 ]; then
	# Without recordings: generated logs that fit the device, the small one 32 times at once.
	for log in training:0.2 serving:0.2 serving-small:0.02; do
		kind=${log%%[:-]*}
		"$build/cli/somashim" generate --scale "${log#*:}" -o "$tmp/${log%:*}.csv" "$kind" ||
			exit 2
		traces+=("$tmp/${log%:*}.csv")
	done
fi
small=$(ls -S -r "${traces[@]}" | head -1)
for f in "${traces[@]}"; do case $f in *infer* | *-small*) small=$f ;; esac done

# No random delays of the device.
export SOMASIM_QUIET=1 SOMASIM_SEED=1 SOMASIM_DELAY_US=0 LD_LIBRARY_PATH=$build/sim
preload=$build/shim/libsomashim.so
pass=$build/bench/libbench_pass.so
shim() { env LD_PRELOAD="$preload" "$@"; }

missed=0
printf '%-46s %12s %12s  %s\n' figure value limit peer
row() { # FIGURE VALUE LIMIT PEER; LIMIT "<= x", ">= x" or -
	local mark=
	if [ "$3" != - ] && ! awk -v v="$2" -v l="$3" 'BEGIN {
		split(l, a, " "); exit v == "" || !(a[1] == "<=" ? v + 0 <= a[2] : v + 0 >= a[2]) }'
	then
		mark=" MISSED" missed=$((missed + 1))
	fi
	printf '%-46s %12s %12s  %s%s\n' "$1" "${2:-none}" "$3" "$4" "$mark"
}
val() { awk -v k="$1" '$1 == k { v = $2 } END { print v }' "$2"; }
div() { awk -v a="$1" -v b="$2" -v f="${3:-%.2f}" 'BEGIN { if (b) printf f, a / b }'; }

# Instructions inside counted() of a program, per unit of work.
# callgrind PRELOAD UNITS PROGRAM ARGS.. ; UNITS 0: the program prints them
callgrind() {
	local pre=$1 units=$2 ir
	shift 2
	SOMASIM_VRAM=${VRAM:-7G} LD_PRELOAD=$pre valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null --toggle-collect=counted "$@" \
		>"$tmp/cg.out" 2>"$tmp/cg.err"
	ir=$(sed -n 's/.*Collected : //p' "$tmp/cg.err")
	[ "$units" = 0 ] && units=$(tail -1 "$tmp/cg.out")
	div "${ir:-0}" "${units:-0}" %.0f
}

# ---- pairs ----
for t in "${traces[@]}"; do
	name=$(basename "$t" .xz) name=${name%.csv}
	shim "$build/bench/bench_pair" "$t" async >"$tmp/pair"
	row "pair $name" "$(div "$(val ours "$tmp/pair")" "$(val mimalloc "$tmp/pair")")" "<= 2.0" \
		"mimalloc $(val mimalloc "$tmp/pair") ns, ours $(val ours "$tmp/pair") ns"
	[ -z "$(val umf "$tmp/pair")" ] || row "pair $name, over UMF's" \
		"$(div "$(val ours "$tmp/pair")" "$(val umf "$tmp/pair")")" "<= 1.0" "UMF $(val umf "$tmp/pair") ns"
	shim "$build/bench/bench_pair" "$t" classic >"$tmp/pair"
	row "hipMalloc pair $name" "$(div "$(val ours "$tmp/pair")" "$(val mimalloc "$tmp/pair")")" \
		"<= 3.0" "mimalloc $(val mimalloc "$tmp/pair") ns, ours $(val ours "$tmp/pair") ns"
done
pair_ir() { # WHICH
	callgrind "$preload" 0 "$build/bench/bench_pair" "$small" "$1" 16
}
mi=$(pair_ir mimalloc)
name=$(basename "$small" .xz) name=${name%.csv}
row "pair, instructions ($name)" "$(pair_ir async)" "<= 250" "mimalloc $mi"
row "hipMalloc pair, instructions" "$(pair_ir classic)" "<= 400" "mimalloc $mi"
row "hipMalloc pair under never, instructions" "$(SOMASHIM_FREE_SYNC=never pair_ir classic)" - \
	"mimalloc $mi"

# ---- threads ----
logs=("$small")
for kind in serving training; do
	n=$RANDOM
	logs+=("$tmp/$kind-$n.csv") # the name tells the seed
	"$build/cli/somashim" generate --scale 0.3 --seed "$n" -o "${logs[-1]}" "$kind" || exit 2
done
for log in "${logs[@]}"; do
	name=$(basename "$log" .xz) name=${name%.csv}
	SOMASIM_VRAM=200G shim "$build/bench/bench_scale" "$log" >"$tmp/scale"
	row "2 threads / 2 processes ($name)" "$(val two "$tmp/scale")" ">= 0.95" "2 processes; with a device each $(val apart "$tmp/scale")"
	row "32 threads / 2 threads ($name)" "$(val many "$tmp/scale")" ">= 0.9" "2 threads"
done

# Random sizes. 50 blocks of up to 1 MiB are live.
awk 'BEGIN {
	srand(1)
	print "Thread,Time,Action,Pointer,Size,Stream"
	for (i = 0; i < 20050; i++) {
		at = i < 20000 ? int(rand() * 50) : i - 20000
		if (at in size) printf "1,00:00:00.0,free,0x%x,%d,0x0\n", at + 1, size[at]
		size[at] = 512 + int(rand() * 1048576)
		if (i < 20000) printf "1,00:00:00.0,allocate,0x%x,%d,0x0\n", at + 1, size[at]
	}
}' >"$tmp/varied.csv"
shim "$build/bench/bench_pair" "$tmp/varied.csv" async >"$tmp/pair"
row "pair, sizes that do not come again" \
	"$(div "$(val ours "$tmp/pair")" "$(val mimalloc "$tmp/pair")")" - \
	"mimalloc $(val mimalloc "$tmp/pair") ns, ours $(val ours "$tmp/pair") ns"
one=$(shim "$build/bench/bench_scale" "$tmp/varied.csv" 1)
for n in 2 32; do
	row "such sizes, $n threads / 1 thread" \
		"$(div "$(shim "$build/bench/bench_scale" "$tmp/varied.csv" $n)" "$one")" - \
		"1 thread $(div "$one" 1000000 %.1f) million pairs a second"
done

# ---- watched calls ----
# Without the instructions of the runtime itself, which is called equally often either way: what it does
# for a call depends on its own threads.
watch() { # PRELOAD CALL: instructions outside the runtime and calls into it, for 2000
	SOMASIM_VRAM=7G LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file="$tmp/cg" \
		--toggle-collect=counted "$build/bench/bench_watch" "$2" 2000 >/dev/null 2>&1 &&
		awk -f "$here/outside.awk" "$tmp/cg"
}
for call in record wait both sync query; do
	added= calls_added= with= base=
	if read -r with calls < <(watch "$preload" $call) &&
	   read -r base same < <(watch "$pass" $call); then
		added=$(((with - base) / 2000)) calls_added=$(div $((calls - same)) 2000)
	fi
	limit=130 what=$call
	case $call in
	both) limit=260 what="record and wait for it" ;;
	sync) limit=180 ;;
	esac
	row "watched $what, instructions added" "$added" "<= $limit" \
		"pass-through wrapper $((${base:-0} / 2000))"
	row "watched $what, calls of the runtime added" "$calls_added" "<= 0.01" ""
done

# ---- across streams ----
for how in events plain; do
	SOMASHIM_STATS=1 shim "$build/bench/bench_cross" $how >"$tmp/cross" 2>"$tmp/stats"
	cat "$tmp/cross" >>"$tmp/stats"
	first=$(awk '$1 == "reserved" { print $2; exit }' "$tmp/cross")
	row "cross-stream $how: reserved 100k / 1k" "$(div "$(val reserved "$tmp/cross")" "$first")" \
		"<= 2" "$first bytes after 1k"
	fences=$(sed -n 's/.*fences recorded \([0-9]*\).*/\1/p' "$tmp/stats" | tail -1)
	row "cross-stream $how: fences per 64 frees" "$(div "$((${fences:-0} * 64))" 100000)" "<= 1" \
		"$fences fences"
	row "cross-stream $how: host waits" "$(val waits "$tmp/cross")" "<= 0" "the program's own"
done

# ---- slow paths ----
"$build/bench/bench_heap" >"$tmp/heap" 2>/dev/null
row "best fit among 1,000,000 ranges, ns" "$(val find "$tmp/heap")" "<= 2000" \
	"with take and put back $(val take "$tmp/heap")"
SOMASIM_COST=hipMalloc:50000,hipExtMallocWithFlags:50000 shim "$build/bench/bench_miss" >"$tmp/miss"
row "hits of another stream during a miss" "$(val hits "$tmp/miss")" ">= 1000" \
	"$(val ms "$tmp/miss") ms in the driver"

# ---- host memory ----
"$build/bench/bench_memory" >"$tmp/memory"
row "host bytes per live block, counted" "$(val counted "$tmp/memory")" "<= 96" "uthash handle 56"
row "host bytes per live block, resident" "$(val resident "$tmp/memory")" "<= 96" ""
row "growth over 10 million pairs, bytes" "$(val growth "$tmp/memory")" "<= 65536" ""

# ---- the checker ----
# Processor time of all threads. Rounds take turns; 15 of each.
checked() { # TOOLS
	shim env SOMASHIM_CHECK="$1" SOMASHIM_LOG=/dev/null "$build/bench/bench_check" 1000
}
for _ in $(seq 15); do
	for tools in "" order,free order,bounds,free; do echo "$tools- $(checked "$tools")"; done
done >"$tmp/check"
cpu() { awk -v t="$1-" '$1 == t { print $5 }' "$tmp/check" | sort -n | sed -n 8p; }
for tools in order,free order,bounds,free; do
	row "checked by $tools / not checked" "$(div "$(cpu $tools)" "$(cpu "")")" "<= 3" \
		"$(cpu $tools) us and $(cpu "") us"
done

# A launch with eight pointers: what the checker adds.
launched() { # TOOLS
	shim env SOMASHIM_CHECK="$1" SOMASHIM_LOG=/dev/null "$build/bench/bench_launch" 6400
}
launch_count() { # TOOLS
	shim env SOMASIM_VRAM=7G SOMASHIM_CHECK="$1" SOMASHIM_LOG=/dev/null valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null '--toggle-collect=counted*' "$build/bench/bench_launch" 1280 count 2>&1 |
		sed -n 's/.*Collected : //p'
}
for _ in $(seq 15); do
	for tools in "" order; do echo "$tools- $(launched "$tools")"; done
done >"$tmp/launch"
launch_us() { awk -v t="$1-" '$1 == t { print $3 }' "$tmp/launch" | sort -n | sed -n 8p; }
row "checked launch, 8 arguments: us more" \
	"$(awk -v a="$(launch_us order)" -v b="$(launch_us "")" 'BEGIN { printf "%.2f", a - b }')" "<= 2" \
	"$(launch_us order) us and $(launch_us "") us"
if command -v valgrind >/dev/null; then
	row "checked launch, 8 arguments: instructions more" \
		"$((($(launch_count order) - $(launch_count "")) / 1280))" "<= 10000" ""
fi

# ---- the classic loop ----
export SOMASIM_COST=hipMalloc:14,hipExtMallocWithFlags:14,hipFree:20
# Interleaved: each round runs every way once, and a figure is the median of what it
# took over what the kernels alone took in the same round.
loops() { # STREAMS
	local way library sync how
	for _ in $(seq 15); do
		while read -r way library sync how; do
			echo "$way $(LD_PRELOAD=${library#-} SOMASHIM_FREE_SYNC=$sync \
				"$build/bench/bench_loop" "$how" "$1")"
		done <<-END
			alone - auto none
			native - auto classic
			auto $preload auto classic
			never $preload never classic
			async $preload auto async
		END
	done >"$tmp/loop"
}
took() { # WAY
	awk -v way="$1" '$1 == "alone" { alone = $3 } $1 == way { print $3 / alone }' "$tmp/loop" |
		sort -n | sed -n 8p | xargs printf %.2f
}
blocks() { awk -v way="$1" '$1 == way { print $5 }' "$tmp/loop" | sort -n | tail -1; }
for n in 1 4; do
	loops $n
	limit1=- limit4=-
	[ $n = 1 ] && limit1="<= 1.05" || limit4="<= 1.05"
	row "classic loop, $n streams, auto / kernels" "$(took auto)" "$limit1" "native $(took native)"
	row "classic loop, $n streams, never / kernels" "$(took never)" "$limit4" ""
	row "classic loop, $n streams, auto, blocks per stream" "$(blocks auto)" "<= 8" ""
	row "classic loop, $n streams, never, blocks per stream" "$(blocks never)" "<= 8" ""
	row "async loop, $n streams / kernels" "$(took async)" - ""
done

echo "$missed missed"
[ "$missed" = 0 ]
