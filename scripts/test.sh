#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs missing packages, builds three configurations and runs their tests. The last line is the sum.
# Exits non-zero if a build or a test failed.
#   scripts/test.sh [--quick | --long]
# --quick: the plain build, its unit tests, a slice of the others.
# --long: also what repeats other tests on another release (tests/repeats), and the random programs of suite shim-long.
set -uo pipefail
. "$(dirname "$0")/usage.sh"
quick=0 long=0
case $* in
'') ;;
--quick) quick=1 ;;
--long) long=1 ;;
*) wrong_call "what is $*?" ;;
esac
cd "$(dirname "$0")/.." || exit 1
. scripts/packages.sh

passed=0 failed=0 skipped=0
logs=$(mktemp -d)
: >"$logs/failures"
trap 'rm -rf "$logs"' EXIT

count() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$logs/out" | tail -1; }

# side NAME COMMAND...: starts what mostly waits for the network or uses one core. side_ends NAME waits for it, shows
# what it printed, and returns its status.
declare -A side
side() {
	local name=$1
	shift
	"$@" >"$logs/side-$name" 2>&1 </dev/null &
	side[$name]=$!
}
side_ends() {
	local status
	wait "${side[$1]}"
	status=$?
	unset "side[$1]"
	cat "$logs/side-$1"
	return $status
}

# Output of the tests of DIR that did not pass. It is printed once more at the end, so that a log that
# was cut off still has it.
failures() {
	python3 - "$1/meson-logs/testlog.json" "$1" <<-'EOF'
		import json, sys
		for line in open(sys.argv[1]):
		    test = json.loads(line)
		    if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
		        said = test.get("stdout", "") + test.get("stderr", "")
		        print("==", sys.argv[2], test["name"], test["result"],
		              test["returncode"], "%.1f s" % test["duration"])
		        print("\n".join(said.splitlines()[-40:]))
	EOF
}

# The tests of --quick: all unit tests, and of the device and the shim one of each kind, on one runtime,
# without those that take long.
slice() {
	meson test -C "$1" --no-rebuild --list 2>/dev/null | sed -n 's/^[^:]*:\([a-z-]*\) \/ //p;T' |
		sort -u | grep -vE -e '(^|-)(5\.2|5\.7|6\.4|hsa)(-|$)' \
		-e '^(oracle(-long)?|concurrent|preempted|stress.*|gpu|doctor|kinds-.*|pool-lifetime-many.*|share-.*)$' \
		-e '^(mpi|quirk-[^n]|growth|known_problems|bypass|reuse|release|oom|slow-device)' \
		-e '^replay-.*-(native|classic)$'
}

# The names in FILES, a line each, as regular expressions.
names_in() { grep -hv '^#' "$@" | tr ' ' '\n' | sed 's/[.]/\\./g; s/[*]/.*/g'; }

# The tests of DIR in SUITES, without those that repeat others and, under ThreadSanitizer, those without threads.
chosen() {
	local files=(tests/repeats)
	[[ "$*" != *b_sanitize=thread* ]] || files+=(tests/single)
	meson test -C "$1" --no-rebuild --list 2>/dev/null | sed -nE "s/^[^:]*:(${2// /|}) \/ //p" | sort -u |
		grep -vxe "$(names_in "${files[@]}")"
}

# Many tests sleep for most of their time, so one more runs at once than there are cores.
processes=$(($(nproc) + 1))

# run DIR "SUITES" MESON_OPTIONS...
run() {
	local dir=$1 suites=$2 suite args=()
	shift 2
	echo "== $dir: $*"
	if [ -f "$dir/build.ninja" ]; then
		meson configure "$dir" "$@" >"$logs/out" 2>&1
	else
		meson setup "$dir" "$@" >"$logs/out" 2>&1
	fi && ninja -C "$dir" >"$logs/build" 2>&1
	if [ $? != 0 ]; then
		cat "$logs/out" "$logs/build" 2>/dev/null | tail -50
		failed=$((failed + 1))
		return
	fi
	[ -z "${side[viewers]:-}" ] || side_ends viewers || echo "no viewers"
	if [ $quick = 1 ]; then
		mapfile -t args < <(slice "$dir")
	elif [ $long = 0 ]; then
		mapfile -t args < <(chosen "$dir" "$suites" "$@")
	else
		for suite in $suites; do
			args+=(--suite "$suite")
		done
	fi
	meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 3 --num-processes "$processes" \
		"${args[@]}" 2>&1 | tee "$logs/out"
	if grep -q '^No suitable tests' "$logs/out"; then
		return
	fi
	if [ -z "$(count Ok)" ]; then # meson itself came to grief
		failed=$((failed + 1))
		return
	fi
	failures "$dir" >>"$logs/failures"
	passed=$((passed + $(count Ok) + $(count 'Expected Fail')))
	failed=$((failed + $(count Fail) + $(count 'Unexpected Pass') + $(count Timeout)))
	skipped=$((skipped + $(count Skipped)))
}

install_packages valgrind heaptrack clang-format-14 || { echo "0 passed, 1 failed"; exit 1; }
# One test runs under mpirun; where this is not to be had, it is skipped.
install_packages openmpi-bin libopenmpi-dev || echo "no Open MPI"
install_packages prometheus || echo "no promtool"
# Programs with other malloc libraries must start. Those that are not there are left out.
install_packages libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 || echo "no other malloc"
# The plug-in for PyTorch is C++, and torch.save() writes zip files.
install_packages g++ unzip || echo "no C++ compiler or no unzip"
# The page of a report is tested in a browser; without one its test is skipped.
install_packages chromium || echo "no Chromium"
# So are two conversions, in viewers from npm.
if [ $quick = 0 ]; then
	command -v npm >/dev/null || install_packages npm ca-certificates
	side viewers timeout 180 scripts/viewers.sh
fi

# Some machines have a python3 in PATH that is a wrapper and takes a second to start. Tests start it
# often, so the distribution's own comes first.
PATH=/usr/bin:$PATH

# A preloaded library that is itself sanitized is never the first to be loaded.
export ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=50:${TSAN_OPTIONS:-}

build=${BUILD:-build}
suites="unit oracle concurrent sim shim"
[ $long = 0 ] || suites="$suites shim-long"
run "$build" "$suites" -Dwerror=true -Dcommand=enabled

# judge STATUS WHAT: counts a test that Meson does not run. 77: it is skipped.
judge() {
	case $1 in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*)
		failed=$((failed + 1))
		echo "== $2" >>"$logs/failures"
		;;
	esac
}

if [ $quick = 0 ]; then
	side matrix scripts/rocm-matrix.sh "$build"
	side fuzz scripts/fuzz.sh --fixed
fi

# Instructions of a pair. The count depends only on the build.
echo "== gate"
bench/gate.sh --fixed "$build"
judge $? "bench/gate.sh missed a limit"

if [ $quick = 0 ]; then
	echo "== fuzz"
	side_ends fuzz
	judge $? "scripts/fuzz.sh found something"

	echo "== rent"
	scripts/rent.sh "$build-rent"
	judge $? "scripts/rent.sh: a rule earns nothing, or docs/placement.md has other figures"

	# To compile these two takes longer than to run their tests, so they are optimised less and know lines, but no
	# variables. The device on CUDA's driver is tested in the plain build.
	sanitized=(-Dwerror=true -Dcommand=enabled -Dbench=false -Dcuda=disabled -Doptimization=1 -Dc_args=-g1)
	run "$build-asan" "unit oracle concurrent sim shim" "${sanitized[@]}" -Db_sanitize=address,undefined
	run "$build-tsan" "oracle concurrent sim shim" "${sanitized[@]}" -Db_sanitize=thread

	# Every ROCm that Debian has; a release that cannot be fetched is not a pass.
	echo "== rocm-matrix"
	side_ends matrix >"$logs/out"
	cat "$logs/out"
	rows() { grep -c "^[0-9][0-9.]*  *$1 " "$logs/out"; }
	[ "$(rows "[A-Za-z][A-Za-z]*")" != 0 ] || failed=$((failed + 1)) # it came to grief itself
	passed=$((passed + $(rows agrees)))
	failed=$((failed + $(rows DISAGREES)))
	skipped=$((skipped + $(rows skipped)))
fi

cat "$logs/failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
