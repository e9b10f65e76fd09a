#!/bin/sh
# SPDX-License-Identifier: MIT
# doctor.sh SOMASHIM: the verdict on a sound runtime, and on runtimes with a defect
# that the self-test is there to find.
doctor=$1
export SOMASIM_QUIET=1 SOMASIM_DELAY_US=0 SOMASIM_HIP_VERSION=7.2

# expect STATUS PATTERN [VARIABLE=VALUE]: what doctor returns and says.
expect() {
	status=$1 pattern=$2
	shift 2
	out=$(env "$@" "$doctor" doctor 2>&1)
	got=$?
	if [ "$got" != "$status" ] || ! printf '%s\n' "$out" | grep -q "$pattern"; then
		printf '%s: status %s, not %s, or no "%s" in:\n%s\n' "$*" "$got" "$status" \
			"$pattern" "$out"
		exit 1
	fi
}

expect 0 'vmm: passed' A=1
expect 0 'backing: hip' A=1
expect 0 'vmm: not offered' SOMASIM_HIP_VERSION=5.7
expect 1 'vmm: failed: map, write, verify' SOMASIM_QUIRKS=map-settle SOMASIM_SETTLE_US=10000
expect 1 'vmm: failed: map, write, verify' SOMASIM_QUIRKS=map-fails
expect 1 'backing: hip' SOMASIM_QUIRKS=map-fails
expect 1 'vmm: failed: give back' SOMASIM_QUIRKS=phys-kept
expect 1 'vmm: failed: give back' SOMASIM_QUIRKS=release-leaks
expect 77 'no device' SOMASIM_NO_DEVICE=1

SOMASIM_QUIRKS=release-leaks "$doctor" doctor --json |
	python3 -c 'import json, sys
d = json.load(sys.stdin)
assert d["verdict"].startswith("usable"), d["verdict"]
assert d["runtime"] == "7.2" and any(q["id"] == "V7" for q in d["quirks"])' || exit 1
