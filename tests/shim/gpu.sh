#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/gpu.sh on the software device, which a ROCM_PATH points to:
# gpu.sh SCRIPTS BUILD
set -eu
scripts=$1 build=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-gpu.XXXXXX")
trap 'rm -rf "$dir"' EXIT
unset LD_LIBRARY_PATH # Meson names the software device there, and it is to be found by its ROCM_PATH
mkdir "$dir/rocm"
ln -s /usr/include "$dir/rocm/include"
ln -s "$build/sim" "$dir/rocm/lib"
export ROCM_PATH="$dir/rocm" SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=7.2

# A bundle is unpacked elsewhere and needs nothing of the place where it was made.
"$scripts/gpu.sh" --bundle "$dir/some.tar.gz" "$build"
mkdir "$dir/elsewhere"
tar -C "$dir/elsewhere" -xzf "$dir/some.tar.gz"
run=$dir/elsewhere/some/run.sh

# expect STATUS COMMAND...
expect() {
	want=$1 got=0
	shift
	"$@" >"$dir/out" 2>&1 || got=$?
	[ "$got" = "$want" ] || { cat "$dir/out"; echo "$*: status $got, not $want"; exit 1; }
}

(export SOMASIM_NO_DEVICE=1; expect 77 "$run" -o "$dir/json"; grep -q "^gpu: skipped, no device: " "$dir/out")
(export ROCM_PATH="$dir"; expect 1 "$run" -o "$dir/json")
[ ! -e "$dir/json" ] || { echo "a report of nothing"; exit 1; }
expect 2 "$run" --only nothing -o "$dir/json"

# A device on which a call fails: said so, test by test. Replays do not hide it.
(export SOMASIM_FAIL=hipExtMallocWithFlags:%1=1
	expect 1 "$run" -o "$dir/json" --quick --only '^(selftest-hip|alloc_loop|pools|trace-serving-hip)$')
python3 - "$dir/json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert {t['name']: t['verdict'] for t in d['tests']} == dict.fromkeys(
    ['selftest-hip', 'alloc_loop', 'pools', 'trace-serving-hip'], 'failed'), d['tests']
assert all(t['said'] for t in d['tests']) and not d['figures'], d
END

# What is not there is skipped, with a word.
(export SOMASIM_QUIRKS=no-vmm; expect 0 "$run" -o "$dir/json" --quick --only '^(stress-vmm|peers)$')
python3 - "$dir/json" <<'END'
import json, sys
tests = json.load(open(sys.argv[1]))['tests']
assert [t['verdict'] for t in tests] == ['skipped', 'skipped'], tests
assert [t['said'] for t in tests] == ['needs two devices', 'selftest device 0 vmm: not offered on this runtime'], tests
END

# A peer that keeps nothing: it takes what is in use, if it is called as the log says.
mkdir "$dir/peer"
cat >"$dir/peer/torch.py" <<'END'
class Stream:
    pass


class cuda:
    live, used, most, count = {}, 0, 0, 0
    Stream = Stream

    def init():
        pass

    def caching_allocator_alloc(size, device, stream):
        assert size > 0 and device == 0 and isinstance(stream, Stream)
        cuda.count += 1
        cuda.live[cuda.count] = size
        cuda.used += size
        cuda.most = max(cuda.most, cuda.used)
        return cuda.count

    def caching_allocator_delete(block):
        cuda.used -= cuda.live.pop(block)

    def max_memory_reserved(device):
        return cuda.most
END
(export PYTHONPATH="$dir/peer"; expect 0 "$run" -o "$dir/json" --quick)
python3 - "$dir/json" "$dir/rocm" <<'END'
import json, re, sys
d = json.load(open(sys.argv[1]))
names = {t['name'] for t in d['tests']}
assert d['gpus'][0]['name'] and 'GiB' in d['gpus'][0]['description'], d['gpus']
assert d['rocm'] == 'ROCm 7.2' and d['hip'] == '7.2' and d['arch'].startswith('gfx'), d
assert d['runtime'].startswith(sys.argv[2]), d['runtime']
assert re.match(r'Linux \d', d['kernel']) and re.match('hip|vmm', d['backing']), d
assert d['fence'] == 'event' and d['somashim'] and d['commit'], d
assert all(t['verdict'] in ('passed', 'skipped') for t in d['tests']), d['tests']
skipped = {t['name'] for t in d['tests'] if t['verdict'] == 'skipped'}
assert skipped == {'peers'}, skipped  # one device
said = {t['name']: t['said'] for t in d['tests']}
for name in 'sleep-pools', 'sleep-all':  # how much came back
    assert re.match(r'\d+ sleeps, 1.000 of .* 0 wrong bytes', said[name]), said[name]
assert {'stress-vmm', 'busy-hsa', 'trace-serving-classic', 'order', 'ipc'} <= names, names
# Every way has a figure for every case.
value = {(f['what'], f['unit'], f['case'], f['way']): f['value'] for f in d['figures']}
assert len(value) == len(d['figures']) and all(v > 0 for v in value.values()), d['figures']
ways = {'native hipMalloc', 'native hipMallocAsync, threshold max', 'hipMalloc, somashim',
        'hipMallocAsync, somashim hip', 'hipMallocAsync, somashim vmm'}
for what, unit, cases in (('pair', 'us', 10), ('replay', 's', 2), ('replay', 'taken/used', 2), ('replay', 'memory calls', 2)):
    of = [k[2:] for k in value if k[:2] == (what, unit) and k[3] != 'PyTorch, idle device']
    assert {w for _, w in of} == ways and len(of) == cases * len(ways), (what, of)
assert value['replay', 'taken/used', 'serving', 'PyTorch, idle device'] == 1, value
calls = {way: value['replay', 'memory calls', 'serving', way] for way in ways}
assert calls['hipMallocAsync, somashim hip'] < calls['native hipMallocAsync, threshold max'] / 2, calls
assert all(v > 0.99 for k, v in value.items() if k[1] == 'taken/used'), value  # nobody takes less than is in use
END

# An NVIDIA GPU is found where no other is. Its driver is played on the software device.
driver=$build/sim/libcuda/libcuda.so.1
if [ -e "$driver" ]; then (
	unset ROCM_PATH
	export SOMACUDA_DRIVER="$driver"
	# shellcheck disable=SC2046
	expect 0 "$run" -o "$dir/json" --quick --only '^(selftest-hip|stress-hip|busy-vmm|stress-signal)$' \
		$([ ! -e /dev/kfd ] || echo --runtime "$dir/elsewhere/some/cuda")
	python3 - "$dir/json" "$dir/elsewhere/some/cuda" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		assert d['runtime'].startswith(sys.argv[2]) and d['driver'].startswith("NVIDIA's"), d
		assert {t['name']: t['verdict'] for t in d['tests']} == {
		    'selftest-hip': 'passed', 'stress-hip': 'passed', 'busy-vmm': 'passed', 'stress-signal': 'skipped'}, d
	END
) fi

# AMD's emulator is taken where no GPU is, and is named in the report. It is a preload, without which a program has no
# device; a stand-in puts the software device in its place.
mkdir "$dir/emulator"
cat >"$dir/emulator/standin.c" <<'END'
#include <string.h>
#include <unistd.h>

char *getenv(const char *name)
{
	size_t length = strlen(name);

	for (char **e = strcmp(name, "SOMASIM_NO_DEVICE") ? environ : 0; e && *e; e++)
		if (!strncmp(*e, name, length) && (*e)[length] == '=')
			return *e + length + 1;
	return 0;
}
END
${CC:-cc} -D_GNU_SOURCE -shared -fPIC "$dir/emulator/standin.c" -o "$dir/emulator/standin.so"
cat >"$dir/emulator/mirage" <<END
#!/bin/sh
[ "\$1 \$2 \$3 \$4" = "run --profile mi300x --" ] || exit 3
shift 4
LD_PRELOAD=$dir/emulator/standin.so exec "\$@"
END
sed 's/run --profile mi300x --/--config some.json --/; s/ \$4//; s/shift 4/shift 3/' "$dir/emulator/mirage" >"$dir/emulator/other"
chmod +x "$dir/emulator/mirage" "$dir/emulator/other"
# emulated NAME OPTIONS...
emulated() { (
	name=$1
	shift
	export PATH="$dir/emulator:$PATH" SOMASIM_NO_DEVICE=1 ROCM_PATH="$dir/rocm"
	expect 0 "$run" "$@" -o "$dir/json" --quick --only '^(alloc_loop|sleep-pools)$'
	python3 - "$dir/json" "$name" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		assert d['driver'] == 'emulated by ' + sys.argv[2] and not d['figures'], d
		assert [t['verdict'] for t in d['tests']] == ['passed', 'passed'], d
	END
); }
emulated 'mirage mi300x'
emulated 'mirage mi300x' --emulator
rm "$dir/emulator/mirage"
mv "$dir/emulator/other" "$dir/emulator/rocjitsu"
ROCJITSU_CONFIG=some.json emulated 'rocjitsu some' --emulator
expect 77 env ROCM_PATH="$dir/rocm" "$run" --emulator -o "$dir/json"
grep -q 'there is no mirage' "$dir/out"

# A wheel has only the library with its number, and no header beside it. The device goes by that name.
wheel=$dir/env/lib/python3.12/site-packages/_rocm_sdk_core/lib
mkdir -p "$wheel"
LC_ALL=C sed 's/libamdhip64\.so\.5/libamdhip64.so.8/g' "$build/sim/libamdhip64.so.5" >"$wheel/libamdhip64.so.8"
cp "$build/sim/libhsa-runtime64.so.1" "$wheel"
unset ROCM_PATH SOMASIM_HIP_VERSION
# By programs that are compiled for it, and by those of the bundle.
for command in "$scripts/conformance.sh" "$run"; do
	here=$([ "$command" = "$run" ] || echo "$build")
	# shellcheck disable=SC2086
	expect 0 "$command" -o "$dir/json" --only '^(alloc_loop|pools)$' --runtime "$dir/env" $here
	grep -q "runtime taken: $wheel/libamdhip64.so.8 (from --runtime)" "$dir/out"
	python3 - "$dir/json" "$wheel" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		assert d['rocm'] == 'newer than ROCm 10.2' and d['runtime'].startswith(sys.argv[2]), d
		assert [t['verdict'] for t in d['tests']] == ['passed', 'passed'], d['tests']
	END
done
