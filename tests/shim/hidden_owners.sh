#!/bin/bash
# SPDX-License-Identifier: MIT
# After a recording of a program that has a framework with a pool of its own among its modules, `record` says that the pool may
# hide the owners, and how to see them.
#   hidden_owners.sh SOMASHIM PROGRAM LIBRARY      LIBRARY plays the frameworks'
set -u
somashim=$1 program=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-hidden-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/cupy/cuda"
for name in libc10_hip.so cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so; do cp "$3" "$dir/$name"; done
export SOMASIM_QUIET=1
unset PYTORCH_ALLOC_CONF PYTORCH_NO_HIP_MEMORY_CACHING

fail() { echo "$*"; cat "$dir/out"; exit 1; }
# with MODULES COMMAND...: a program that has loaded them
with() { timeout 60 env LD_PRELOAD="$1" "${@:2}" -o "$dir/trace" "$program" 20 >"$dir/out" 2>&1 || fail "$*: status $?"; }
says() { grep -q -- "$1" "$dir/out" || fail "no '$1'"; }
silent() { ! grep -q -- "$1" "$dir/out" || fail "'$1' is said"; }
torch=$dir/libc10_hip.so

with '' "$somashim" record
silent 'among the modules'
with "$torch" "$somashim" record
says '^somashim: pytorch is among the modules: .*hidden; `somashim record --framework pytorch. shows it$'
silent 'pytorch-uncached'
with "$torch" "$somashim" record --framework pytorch
silent 'among the modules'
with "$torch" env PYTORCH_NO_HIP_MEMORY_CACHING=1 "$somashim" record
silent 'among the modules'
with "$torch:$dir/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so" "$somashim" record
says '^somashim: pytorch is among the modules'
says '^somashim: cupy is among the modules: .*to see it, call cupy.cuda.set_allocator(None) in the program$'
