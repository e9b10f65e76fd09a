#!/bin/sh
# SPDX-License-Identifier: MIT
# The distribution's own libamdhip64, without a device, under the preload:
# real.sh SHIM PROGRAM SOMASHIM
set -eu
shim=$1 program=$2 somashim=$3
unset LD_LIBRARY_PATH
out=$(SOMASHIM_VERBOSE=1 SOMASHIM_SLEEP=pools LD_PRELOAD="$shim" "$program" "$somashim" 2>&1) || {
	code=$?
	printf '%s\n' "$out"
	exit "$code"
}
printf '%s\n' "$out"
printf '%s\n' "$out" | grep -q 'runtime: .*libamdhip64\.so' || {
	echo "the runtime is not named" >&2
	exit 1
}
