#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/conformance.sh on the software device, which a ROCM_PATH points to:
# conformance.sh SCRIPT BUILD
set -eu
script=$1 build=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-conformance.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/rocm"
ln -s /usr/include "$dir/rocm/include"
ln -s "$build/sim" "$dir/rocm/lib"
export ROCM_PATH="$dir/rocm" SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=7.2

# expect STATUS ARGUMENTS...
expect() {
	want=$1 got=0
	shift
	"$script" -o "$dir/json" "$@" "$build" >"$dir/out" 2>&1 || got=$?
	[ "$got" = "$want" ] || { cat "$dir/out"; echo "$*: status $got, not $want"; exit 1; }
}

(export SOMASIM_NO_DEVICE=1; expect 77; grep -q 'no device' "$dir/out")
(export ROCM_PATH="$dir"; expect 1)
[ ! -e "$dir/json" ] || { echo "a report of nothing"; exit 1; }

# A device on which a call fails now and then: said so, test by test.
(export SOMASIM_FAIL=hipExtMallocWithFlags:%1=1; expect 1 --only '^(alloc_loop|pools)$')
python3 - "$dir/json" <<'EOF'
import json, sys
d = json.load(open(sys.argv[1]))
assert [t['verdict'] for t in d['tests']] == ['failed', 'failed'], d['tests']
assert all(t['said'] for t in d['tests']), d['tests']
EOF

expect 0 --quick
python3 - "$dir/json" "$dir/rocm" <<'EOF'
import json, re, sys
d = json.load(open(sys.argv[1]))
names = {t['name'] for t in d['tests']}
assert d['gpus'][0]['name'] and 'GiB' in d['gpus'][0]['description'], d['gpus']
assert d['rocm'] == 'ROCm 7.2' and d['hip'] == '7.2' and d['arch'].startswith('gfx'), d
assert d['runtime'].startswith(sys.argv[2]), d['runtime']
assert re.match(r'Linux \d', d['kernel']) and re.match('hip|vmm', d['backing']), d
assert d['fence'] == 'event' and d['somashim'], d
assert all(t['verdict'] in ('passed', 'skipped') for t in d['tests'])
skipped = {t['name'] for t in d['tests'] if t['verdict'] == 'skipped'}
assert skipped <= {'peers'}, skipped  # one device
assert {'stress-vmm', 'random-hsa', 'trace-training-classic', 'order', 'ipc'} <= names, names
EOF

# A wheel has only the library with its number, and no header beside it. The device goes by that name.
wheel=$dir/env/lib/python3.12/site-packages/_rocm_sdk_core/lib
mkdir -p "$wheel"
LC_ALL=C sed 's/libamdhip64\.so\.5/libamdhip64.so.8/g' "$build/sim/libamdhip64.so.5" >"$wheel/libamdhip64.so.8"
cp "$build/sim/libhsa-runtime64.so.1" "$wheel"
(
	unset ROCM_PATH SOMASIM_HIP_VERSION
	expect 0 --only '^(alloc_loop|pools)$' --runtime "$dir/env"
	grep -q "runtime taken: $wheel/libamdhip64.so.8 (from --runtime)" "$dir/out"
	python3 - "$dir/json" "$wheel" <<-'EOF'
		import json, sys
		d = json.load(open(sys.argv[1]))
		assert d['rocm'] == 'newer than ROCm 10.2' and d['runtime'].startswith(sys.argv[2]), d
		assert [t['verdict'] for t in d['tests']] == ['passed', 'passed'], d['tests']
	EOF
)
