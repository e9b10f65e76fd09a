#!/bin/sh
# SPDX-License-Identifier: MIT
# The distribution's own libamdhip64, without a device, under the preload:
# real.sh SHIM PROGRAM
set -eu
shim=$1 program=$2
unset LD_LIBRARY_PATH
out=$(SOMASHIM_VERBOSE=1 LD_PRELOAD="$shim" "$program" 2>&1) || {
	code=$?
	printf '%s\n' "$out"
	exit "$code"
}
printf '%s\n' "$out"
printf '%s\n' "$out" | grep -q 'runtime: .*libamdhip64\.so' || {
	echo "the runtime is not named" >&2
	exit 1
}
