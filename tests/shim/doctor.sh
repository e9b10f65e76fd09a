#!/bin/sh
# SPDX-License-Identifier: MIT
# doctor.sh SOMASHIM: the verdict on a sound runtime, and on runtimes with a defect
# that the self-test is there to find.
doctor=$1 options= last=
export SOMASIM_QUIET=1 SOMASIM_DELAY_US=0 SOMASIM_HIP_VERSION=7.2

# expect STATUS PATTERN [VARIABLE=VALUE]: what doctor returns and says.
expect() {
	status=$1 pattern=$2
	shift 2
	if [ "$*" != "$last" ]; then # the next question to the same run
		out=$(env "$@" "$doctor" doctor $options 2>&1)
		got=$? last=$*
	fi
	if [ "$got" != "$status" ] || ! printf '%s\n' "$out" | grep -q "$pattern"; then
		printf '%s: status %s, not %s, or no "%s" in:\n%s\n' "$*" "$got" "$status" \
			"$pattern" "$out"
		exit 1
	fi
}

# What a sound runtime, and each quirk of the device, leads to (docs/known-problems.md).
expect 0 'vmm: passed' A=1
expect 0 'best: vmm' A=1
for quirks in setaccess-some setaccess-tail,unmap-partial,ipc-vmm,lazy-queues \
	setaccess-host,fd-per-handle,create-chunk granularity-2m,threshold-ignored,pool-oom-leaks; do
	expect 0 'best: vmm' SOMASIM_QUIRKS=$quirks
done
expect 0 'best: vmm' SOMASIM_QUIRKS=create-cap SOMASIM_CREATE_CAP=128M
expect 0 'device 1: best: vmm' SOMASIM_DEVICES=2 SOMASIM_QUIRKS=setaccess-tail
expect 0 'device 1: best: vmm' SOMASIM_DEVICES=2 SOMASIM_HIP_VERSION=7.16
expect 0 'device 1: best: hip (known defects of this ROCm or GPU forbid vmm beside other devices' SOMASIM_DEVICES=2 SOMASIM_HIP_VERSION=7.14
expect 0 'device 1: best: hip (another device cannot reach' SOMASIM_DEVICES=2 SOMASIM_PEERS=0
expect 0 'best: vmm' SOMASIM_HIP_VERSION=6.4
expect 0 'best: hip (known defects' SOMASIM_HIP_VERSION=5.7
expect 0 'vmm: not offered' SOMASIM_HIP_VERSION=5.7
expect 0 'best: hip (the device has no vmm' SOMASIM_QUIRKS=no-vmm
expect 0 'best: hip (known defects' SOMASIM_ARCH=gfx1201
# Memory that the runtime takes for itself meanwhile is no leak.
expect 0 'hip: passed' SOMASIM_QUIRKS=free-queue SOMASIM_HIP_VERSION=6.4
expect 0 'best: vmm' SOMASIM_QUIRKS=free-queue
expect 0 'best: vmm' SOMASIM_ARCH=gfx1200 SOMASIM_QUIRKS=map-settle
expect 0 '^  C2 ' SOMASIM_ARCH=gfx1200 SOMASIM_QUIRKS=map-settle
# (In which of its steps it shows depends on when the device gets to it.)
expect 1 'best: hip (the self-test of vmm failed' SOMASIM_QUIRKS=map-settle SOMASIM_SETTLE_US=10000
expect 1 'vmm: failed: ' SOMASIM_QUIRKS=map-settle SOMASIM_SETTLE_US=10000
expect 1 'vmm: failed: map, write, verify' SOMASIM_QUIRKS=map-fails
expect 1 'best: hip (the self-test of vmm failed' SOMASIM_QUIRKS=map-fails SOMASIM_HIP_VERSION=6.4
expect 1 'backing: hip (auto: the self-test of vmm failed' SOMASIM_QUIRKS=map-fails
expect 1 'vmm: failed: launch a graph after a map: wrote a5, read 00' SOMASIM_QUIRKS=map-spoils-graphs SOMASIM_HIP_VERSION=6.4
# Memory that a mapping of the device's file keeps comes back once that is mapped over (V7).
for release in 6.4 7.2 7.17; do
	expect 0 'vmm: passed' SOMASIM_QUIRKS=phys-kept SOMASIM_HIP_VERSION=$release
	expect 0 'device 0: can sleep: yes (' SOMASIM_QUIRKS=phys-kept SOMASIM_HIP_VERSION=$release
done
expect 0 'device 0: can sleep: no (known defects' SOMASIM_HIP_VERSION=5.7
expect 1 'device 0: can sleep: no (the self-test of vmm failed)' SOMASIM_QUIRKS=map-fails
expect 1 'vmm: failed: leave and fill a gap' SOMASIM_QUIRKS=phys-bound
expect 1 'can sleep: no (memory does not come back' SOMASIM_QUIRKS=phys-bound
expect 1 'vmm: failed: leave and fill a gap' SOMASIM_QUIRKS=release-leaks
expect 1 'best: hip' SOMASIM_QUIRKS=phys-bound
expect 1 'best: hip' SOMASIM_QUIRKS=release-leaks
# (Every device that can has access from the start, so it shows before peers are let in.)
expect 1 'vmm: failed: ' SOMASIM_QUIRKS=peer-setaccess SOMASIM_DEVICES=2
# Only raw HSA memory works: for one device.
expect 1 'best: hsa' SOMASIM_FAIL=hipExtMallocWithFlags:%1=2 SOMASIM_QUIRKS=no-vmm
expect 1 'best: hip' SOMASIM_FAIL=hipExtMallocWithFlags:%1=2 SOMASIM_QUIRKS=no-vmm SOMASIM_DEVICES=2
expect 77 '^verdict: no device: .' SOMASIM_NO_DEVICE=1
# A runtime that cannot count its devices is not one without.
expect 1 'verdict: the runtime fails: hipGetDeviceCount failed: hipErrorUnknown (999)' \
	SOMASIM_FAIL=hipGetDeviceCount:%1
# What the user has set is no reason to test nothing, nor a place to write to.
expect 0 'best: vmm' SOMASHIM_DISABLE=1
expect 0 'best: vmm' LD_PRELOAD="$(dirname "$doctor")/../shim/libsomashim.so"
expect 0 'best: vmm' LD_PRELOAD="libm.so.6:$(dirname "$doctor")/../shim/libsomashim.so libdl.so.2"
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-doctor.XXXXXX")
trap 'rm -rf "$dir"' EXIT
expect 0 'best: vmm' SOMASHIM_JOURNAL="$dir/journal" SOMASHIM_REPORT="$dir/report"
[ -z "$(ls "$dir")" ] || { echo "doctor wrote: $(ls "$dir")"; exit 1; }

# Each line is there at once, and so is the step that runs. It does not end before it is stopped.
mkfifo "$dir/lines"
SOMASIM_STALL=100:1000000 "$doctor" doctor --timeout 100 >"$dir/lines" &
pid=$! early=
while read -r line; do
	case $line in
	'trying: device 0, hip: prepare') early=yes && kill $pid ;;
	verdict:*) early= ;;
	esac
done <"$dir/lines"
wait $pid
[ "$early" = yes ] || { echo 'doctor says nothing before its end'; exit 1; }

# Memory that the runtime cannot share either is no reason to leave hip for hsa, which shares none.
no_ipc='SOMASIM_FAIL=hipIpcGetMemHandle:%1 SOMASIM_QUIRKS=no-vmm'
expect 0 'device 0: note: no memory can be shared .* hipIpcGetMemHandle fails (999)' $no_ipc
expect 0 'best: hip (the device has no vmm' $no_ipc

# What --save did.
options=--save
mkdir "$dir/state"
expect 0 '^saved: vmm passed on device 0$' XDG_STATE_HOME="$dir/state"
expect 0 '^nothing was saved of device 0: No such file or directory (' XDG_STATE_HOME="$dir/none"
expect 0 '^nothing was saved of device 0: vmm is not offered there$' XDG_STATE_HOME="$dir/state" SOMASIM_QUIRKS=no-vmm
expect 1 '^saved: vmm failed on device 0$' XDG_STATE_HOME="$dir/state" SOMASIM_QUIRKS=release-leaks
expect 77 '^nothing was saved: vmm was not tried$' XDG_STATE_HOME="$dir/state" SOMASIM_NO_DEVICE=1

options='--timeout 3'
# A device that is slow is not one that hangs: the test as a whole takes longer than that.
expect 0 '^verdict: good' SOMASIM_DELAY_US=20000 SOMASIM_DELAY_PCT=100
# One that does not move is given up, and it is said where it stood.
expect 1 '^verdict: no progress for 3 s in: device 0, hip: prepare' SOMASIM_STALL=100:1000000
options=

# Only the library is missing.
mkdir "$dir/alone" && cp "$doctor" "$dir/alone"
"$dir/alone/somashim" doctor >"$dir/out" 2>&1
[ $? = 1 ] && grep -q '^verdict: libsomashim.so was not found, last tried /' "$dir/out" ||
	[ -e "$(sed -n 's/.*last tried //p' "$dir/out")" ] || { cat "$dir/out"; exit 1; }

# Whatever it has to say, what cannot be written is a failure that has a word.
if [ -c /dev/full ]; then
	SOMASIM_NO_DEVICE=1 "$doctor" doctor >/dev/full 2>"$dir/err"
	[ $? = 2 ] && grep -q 'cannot write: No space' "$dir/err" || {
		echo "doctor >/dev/full: $(cat "$dir/err")"
		exit 1
	}
fi

# A path need not be UTF-8, JSON must.
odd=$dir/$(printf 'l\351\303\251\355\240\200')
mkdir "$odd" && cp "$(dirname "$doctor")"/../sim/lib*.so.[0-9] "$odd" &&
	LD_LIBRARY_PATH="$odd" "$doctor" doctor --json | python3 -c 'import json, sys
d = json.loads(sys.stdin.buffer.read().decode("utf-8"))
assert d["verdict"] == "good", d["verdict"]
assert any("l\ufffd\u00e9\ufffd\ufffd\ufffd/libamdhip64" in l for l in d["lines"]), d["lines"]' || exit 1

SOMASIM_QUIRKS=release-leaks "$doctor" doctor --json |
	python3 -c 'import json, sys
d = json.load(sys.stdin)
assert d["verdict"].startswith("usable"), d["verdict"]
assert d["best"] == ["hip"] and d["can_sleep"] == [False], d
assert d["runtime"] == "7.2" and any(q["id"] == "V7" for q in d["quirks"])
assert d["saved"] is None
assert d["release"] == "ROCm 7.2" and d["known"] and d["library"].endswith("/libamdhip64.so.7"), d' || exit 1

# What people know a release as, and one that is newer than the table of releases. From 7.14 on it is
# tried whether SetAccess and the return of memory work.
expect 0 'best: vmm' SOMASIM_HIP_VERSION=7.14
expect 0 'ROCm 7.14, HIP version 71460850 (7.14)$' SOMASIM_HIP_VERSION=7.14
expect 0 'ROCm 10.0, HIP version 71526333 (7.15)$' SOMASIM_HIP_VERSION=7.15 SOMASIM_QUIRKS=setaccess-tail
expect 0 'best: vmm' SOMASIM_HIP_VERSION=7.15 SOMASIM_QUIRKS=setaccess-tail
expect 1 'ROCm 10.2, HIP version 71726392 (7.17)$' SOMASIM_HIP_VERSION=7.17 SOMASIM_QUIRKS=phys-bound
expect 1 'vmm: failed: leave and fill a gap' SOMASIM_HIP_VERSION=7.17 SOMASIM_QUIRKS=phys-bound
expect 0 'newer than ROCm 10.2, HIP version 80000000 (8.0)$' SOMASIM_HIP_VERSION=8.0
expect 0 '^HIP 8.0 is newer than ROCm 10.2 (HIP 7.17), the newest release' SOMASIM_HIP_VERSION=8.0

# ---- where a runtime is found ----
sim=$(dirname "$doctor")/../sim
unset LD_LIBRARY_PATH
export SOMASIM_NO_DEVICE=1 # it need not be tried
# lay DIRECTORY NAME: a directory that has the device by that name, and nothing else of HIP.
lay() {
	mkdir -p "$1" && cp "$sim/libamdhip64.so.5" "$1/$2" && cp "$sim/libhsa-runtime64.so.1" "$1"
}
lay "$dir/rocm/core-10.0/lib" libamdhip64.so.7
lay "$dir/rocm/core-7.14/lib" libamdhip64.so.7
lay "$dir/venv/lib/python3.12/site-packages/_rocm_sdk_core/lib" libamdhip64.so.7
lay "$dir/next" libamdhip64.so.8
expect 77 "^  somashim: runtime taken: $dir/rocm/core-10.0/lib/libamdhip64.so.7 (from ROCM_PATH)" ROCM_PATH="$dir/rocm"
expect 77 "not taken: $dir/rocm/core-7.14/lib/libamdhip64.so.7 (from ROCM_PATH" ROCM_PATH="$dir/rocm"
expect 77 '^verdict: no device' ROCM_PATH="$dir/rocm"
expect 77 "^  somashim: runtime taken: $dir/next/libamdhip64.so.8 (from LD_LIBRARY_PATH)" \
	LD_LIBRARY_PATH="$dir/next" ROCM_PATH="$dir/rocm"
for path in "$dir/rocm/core-7.14" "$dir/rocm/core-7.14/lib/libamdhip64.so.7" "$dir/venv" "$dir/next"; do
	options="--runtime $path" last=
	expect 77 "^  somashim: runtime taken: $path[^ ]* (from --runtime)" ROCM_PATH="$dir/rocm"
done
# A file that cannot be loaded is named, and the next one is taken.
mkdir "$dir/broken" && echo >"$dir/broken/libamdhip64.so.7"
options=
expect 77 "cannot load: $dir/broken/libamdhip64.so.7" LD_LIBRARY_PATH="$dir/broken" ROCM_PATH="$dir/rocm"
expect 77 'runtime taken: .*/core-10.0/lib' LD_LIBRARY_PATH="$dir/broken" ROCM_PATH="$dir/rocm"
options="--runtime $dir/empty"
expect 1 'verdict: no runtime' A=1
expect 1 "no libamdhip64 that can be used was found by --runtime $dir/empty" A=1
