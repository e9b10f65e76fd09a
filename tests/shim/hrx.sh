#!/bin/bash
# SPDX-License-Identifier: MIT
# A HIP runtime that is preloaded, as AMD's HRX is, and knows no HSA: `run` and `record` serve programs in front of it, `doctor` takes it.
#   hrx.sh SOMASHIM RUNTIME PROGRAM SIM_DIR      RUNTIME has the name by which PROGRAM is linked, or another one
set -u
somashim=$(realpath "$1") runtime=$(realpath "$2") program=$(realpath "$3")
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-hrx-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/lib" "$dir/rocm"
ln -s "$runtime" "$dir/lib/libamdhip64.so"
ln -s "$(realpath "$4")/libamdhip64.so.5" "$dir/rocm/libamdhip64.so.5"
ln -s "$(realpath "$4")/libhsa-runtime64.so.1" "$dir/rocm/libhsa-runtime64.so.1"
export LD_PRELOAD=$dir/lib/libamdhip64.so SOMASIM_QUIET=1

fail() { echo "$*"; cat "$dir/out"; exit 1; }
works() { timeout 60 "$@" >"$dir/out" 2>&1 || fail "$*: status $?"; }
says() { grep -q -- "$1" "$dir/out" || fail "no '$1'"; }
silent() { ! grep -q -- "$1" "$dir/out" || fail "'$1' is said"; }

# There is no other runtime.
for how in '' --audit; do
	works "$somashim" run $how "$program" 100
	says '^somashim: used in 1 process'
	says 'wrong=0'
	silent 'two HIP runtimes'
done
works "$somashim" record -o "$dir/trace" "$program" 100
says "^somashim: recorded in $dir/trace"
works "$somashim" doctor
says "runtime taken: $dir/lib/libamdhip64.so (from LD_PRELOAD)"
says "runtime: .*libamdhip64.so, "
says '^verdict: good'
silent 'two HIP runtimes'
# ROCm's own lies beside it: doctor takes what is preloaded.
works env LD_LIBRARY_PATH="$dir/rocm" "$somashim" doctor
says "runtime taken: $dir/lib/libamdhip64.so (from LD_PRELOAD)"
says "not taken: $dir/rocm/libamdhip64.so.5"
silent 'two HIP runtimes'
# The program asks for ROCm's by a name that the preloaded one does not have, so both are loaded: it is said, and all is right.
mkdir "$dir/other"
sed 's/libamdhip64\.so\.5/libamdhip64.so.4/g' "$runtime" >"$dir/other/libamdhip64.so"
export LD_PRELOAD=$dir/other/libamdhip64.so
works env LD_LIBRARY_PATH="$dir/rocm" "$somashim" run "$program" 100
says "two HIP runtimes are loaded, $dir/other/libamdhip64.so and "
says '^somashim: used in 1 process'
says 'wrong=0'
