#!/bin/bash
# SPDX-License-Identifier: MIT
# What starts without somashim starts with it, by each way in: with LD_PRELOAD by hand, `somashim run` and
# `record`, in an image that sets LD_PRELOAD, and with one `run` in another. Programs are plain, with much
# static TLS, or built with a sanitizer; malloc is libc's or another one.
#   starts.sh SOMASHIM LIBRARY SIM PROGRAM...
set -u
somashim=$(realpath "$1") library=$(realpath "$2") sim=$3
shift 3
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-starts.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export LD_LIBRARY_PATH=$sim SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4
unset LD_PRELOAD LD_AUDIT ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS GLIBC_TUNABLES
export TSAN_OPTIONS=atexit_sleep_ms=0 # it would sleep a second at each end
failed=0 tried=0

# try NAME HOW COMMAND...: as without somashim, and its 12 allocations are served.
try() {
	local name=$1 how=$2 status=0
	shift 2
	tried=$((tried + 1))
	SOMASHIM_STATS=1 "$@" >"$dir/out" 2>"$dir/err" || status=$?
	if [ $status != 0 ] || ! cmp -s "$dir/out" "$dir/native" || ! grep -q 'allocations 12,' "$dir/err"; then
		echo "$name, $how: status $status"
		cat "$dir/out" "$dir/err"
		failed=1
	fi
}

# all NAME PRELOAD PROGRAM: by all ways, with another library in LD_PRELOAD ("": none).
all() {
	local name=$1 other=$2 program=$3 status=0
	env LD_PRELOAD="$other" "$program" 6 >"$dir/native" 2>"$dir/err" || status=$?
	if [ $status != 0 ]; then
		echo "$name does not start by itself here (status $status): $(head -1 "$dir/err")"
		return
	fi
	try "$name" "LD_PRELOAD" env LD_PRELOAD="$library${other:+:$other}" "$program" 6
	[ -z "$other" ] || try "$name" "LD_PRELOAD, behind it" env LD_PRELOAD="$other:$library" "$program" 6
	export LD_PRELOAD=$other
	try "$name" run "$somashim" run "$program" 6
	try "$name" record "$somashim" record -o "$dir/trace" "$program" 6
	try "$name" "run in run" "$somashim" run "$somashim" run "$program" 6
	export LD_PRELOAD=$library${other:+:$other}
	try "$name" "run where it is preloaded" "$somashim" run "$program" 6
	try "$name" "record where it is preloaded" "$somashim" record -o "$dir/trace" "$program" 6
	unset LD_PRELOAD
	case $name in
	*address | *thread | *leak | *undefined) ;; # their runtimes and an auditor's namespace do not agree
	*)
		export LD_PRELOAD=$other
		try "$name" "run --audit" "$somashim" run --audit "$program" 6
		unset LD_PRELOAD
		;;
	esac
}

for program in "$@"; do
	all "${program##*/shim_starts_}" "" "$program"
done
for other in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 libmimalloc.so.3; do
	if env LD_PRELOAD=$other true 2>&1 | grep -q .; then
		echo "no $other here"
		continue
	fi
	all $other $other "$1"
done
# A program whose own options for AddressSanitizer hide ours.
for program in "$@"; do
	case $program in
	*address)
		env "$program" 6 >"$dir/native"
		export ASAN_OPTIONS=detect_leaks=0
		try "options of its own" run "$somashim" run "$program" 6
		"$somashim" run sh -c 'echo "$ASAN_OPTIONS"' 2>"$dir/err" |
			grep -q '^detect_leaks=0:verify_asan_link_order=0$' || { echo "ASAN_OPTIONS"; failed=1; }
		ASAN_OPTIONS=verify_asan_link_order=1 "$somashim" run sh -c 'echo "$ASAN_OPTIONS"' 2>"$dir/err" |
			grep -q '^verify_asan_link_order=1$' || { echo "ASAN_OPTIONS of the user"; failed=1; }
		;;
	esac
done
echo "$tried starts"
[ $tried -ge 14 ] || failed=1
exit $failed
