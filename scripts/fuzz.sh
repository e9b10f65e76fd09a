#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the fuzz targets of tests/fuzz with libFuzzer and the address and undefined-behaviour sanitizers. Needs clang. Prints
# for each how many inputs it ran, how many were new, and how much of the reader they reach. Exits with 1 if one fails; the
# input is in BUILD/found, and belongs to tests/fuzz/seeds when it is mended.
#
# --fixed runs a fixed number of inputs from a fixed seed, for scripts/test.sh. Exits with 77 if there is no clang.
#
#   scripts/fuzz.sh --fixed [BUILD]
#   scripts/fuzz.sh MINUTES [BUILD] [TARGET...]     minutes for each target
set -u
. "$(dirname "$0")/usage.sh"
root=$(cd "$(dirname "$0")/.." && pwd)
# Runs of each target with --fixed: about a second of each on an idle machine.
runs='analysis:300 code:10000 elf:5000 found:500 live:10000 options:10000 python_code:20000 ring:400 rmm:10000 sharing:10000
	snapshot:20000 trace:3000'
fixed=
case ${1:-} in
--fixed) fixed=1 ;;
'' | *[!0-9]*) wrong_call "how many minutes?" ;;
*) minutes=$1 ;;
esac
build=${2:-$root/build-fuzz}
shift $(($# < 2 ? $# : 2))
command -v clang >/dev/null || { echo "fuzz.sh: there is no clang, so nothing is fuzzed"; exit 77; }

[ -e "$build/build.ninja" ] || CC=clang meson setup "$build" "$root" -Dfuzz=true -Dbench=false -Ddocs=false \
	-Db_sanitize=address,undefined >/dev/null || exit 1
targets=()
for pair in $runs; do
	name=${pair%:*}
	[ $# = 0 ] || [[ " $* " = *" $name "* ]] && targets+=("$name")
done
# shellcheck disable=SC2046 # one word each
ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s_libfuzzer ' "${targets[@]}") >"$build/log" || { tail -20 "$build/log"; exit 1; }

export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
mkdir -p "$build/found"
status=0
for pair in $runs; do
	name=${pair%:*}
	[[ " ${targets[*]} " = *" $name "* ]] || continue
	case $name in # these read the same formats
	ring | analysis) words=trace ;;
	elf) words=code ;;
	*) words=$name ;;
	esac
	corpus=$build/corpus/$name seeds=$root/tests/fuzz/seeds/$name dict=$root/tests/fuzz/$words.dict
	[ -z "$fixed" ] || rm -rf "$corpus"
	mkdir -p "$corpus"
	options=(-seed=1 -timeout=20 -rss_limit_mb=4096 -max_len=65536 -close_fd_mask=1 -print_final_stats=1
		-artifact_prefix="$build/found/$name-")
	[ -z "$fixed" ] && options+=(-max_total_time=$((minutes * 60))) || options+=(-runs="${pair#*:}")
	options+=(-dict="$dict")
	[ ! -d "$seeds" ] || corpus="$corpus $seeds"
	# shellcheck disable=SC2086 # the folders are two words
	if "$build/tests/fuzz/fuzz_${name}_libfuzzer" "${options[@]}" $corpus 2>"$build/log"; then
		awk -v name="$name" '
			/cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") reached = $(i + 1) }
			/inline 8-bit counters/ { for (i = 1; i < NF; i++) if ($i == "inline") all = $(i - 1) }
			/number_of_executed_units/ { ran = $2 }
			/new_units_added/ { fresh = $2 }
			END { gsub(/[^0-9]/, "", all)
			      printf "%-12s %9d inputs, %6d new, %6d of %6d edges (%.0f %%)\n", name, ran, fresh, reached, all, all ? 100 * reached / all : 0 }' \
			"$build/log"
	else
		status=1
		tail -40 "$build/log"
		echo "$name FAILED: see $build/found"
	fi
done
exit $status
