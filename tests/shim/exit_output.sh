#!/bin/sh
# SPDX-License-Identifier: MIT
# What the shim writes at the end of a process, however it ends, and what the journal says of
# per-thread streams. exit_output.sh LIBRARY PROGRAM SOMASHIM SIM
lib=$1 program=$2 somashim=$3
export LD_LIBRARY_PATH=$4 SOMASIM_QUIET=1 SOMASIM_HIP_VERSION=6.4
unset OMPI_COMM_WORLD_RANK PMIX_RANK FLUX_TASK_RANK SLURM_PROCID
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "FAILED: $*"
	cat "$dir"/err
	exit 1
}

preload() {
	LD_PRELOAD=$lib "$@" >"$dir/out" 2>"$dir/err" || fail "$*: status $?"
}

for how in exit _exit _Exit worker vfork signal; do
	PMI_RANK=7 SOMASHIM_STATS=1 preload "$program" $how
	[ "$(grep -c 'statistics of process [0-9]*, rank 7, on ' "$dir/err")" = 1 ] ||
		fail "$how: not one heading with process, rank and host"
	grep -q 'sum over all threads' "$dir/err" || fail "$how: the time is no sum"
	PMI_RANK=7 SOMASHIM_STATS=json preload "$program" $how
	python3 - "$dir/err" <<-'END' || fail "$how: JSON"
		import json, os, re, socket, sys
		o, = [json.loads(line) for line in open(sys.argv[1])]
		assert o["rank"] == 7 and o["pid"] > 1 and o["host"] == socket.gethostname()
		pool, = o["pools"]
		assert pool["device"] == 0 and pool["pool"] == "default" and pool["allocations"] == 1
		assert re.fullmatch("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}.[0-7]", pool["pci"]), pool
		assert o["driver_calls"] > 0 and pool["hits"] + pool["misses"] == 1
	END
done
# A pool that was destroyed is not forgotten.
SOMASHIM_STATS=json preload "$program" pool
python3 - "$dir/err" <<-'END' || fail "pool: $(cat "$dir/err")"
	import json, sys
	o, = [json.loads(line) for line in open(sys.argv[1])]
	of = {pool["pool"]: pool for pool in o["pools"]}
	assert sorted(of) == ["default", "ended"], of
	ended = of["ended"]
	assert ended["device"] == 0 and ended["allocations"] == ended["frees"] == 3, ended
	assert ended["hits"] + ended["misses"] == 3 and ended["reuse_same_stream"] == 2, ended
	assert ended["reserved"] == ended["used"] == 0 and ended["used_high"] == 4096, ended
END
SOMASHIM_STATS=json preload "$program"
grep -q '"rank": null' "$dir/err" || fail "no rank outside of a job"

# Without waits in hipFree the device is told little, and all of it is counted.
for how in blocking nonblocking; do
	for fence in event signal; do
		SOMASHIM_FREE_SYNC=never SOMASHIM_FENCE=$fence SOMASHIM_STATS=json preload "$program" $how
		packets=$(cat "$dir/out")
		grep -q "\"fences\": $packets," "$dir/err" || fail "$how $fence: $packets packets, not counted"
		[ "$packets" -gt 0 ] || fail "$how $fence: nothing was enqueued"
		# A query of a busy stream is a packet, too.
		queries=$(sed -n 's/.*"busy_queries": \([0-9]*\).*/\1/p' "$dir/err")
		[ $((packets + queries)) -le 240 ] ||
			fail "$how $fence: $packets packets and $queries queries in 600 operations"
	done
done

# Who is killed can say nothing, but `somashim run` can.
"$somashim" run "$program" killed >"$dir/out" 2>"$dir/err"
[ $? = 137 ] || fail "killed: another status"
grep -q 'was killed. [0-9.]* s before, 16.0 MiB were in use and [1-9][0-9.]* MiB held, after 2 allocations, 1 free and' \
	"$dir/err" || fail "killed: no figures"
"$somashim" run "$program" >"$dir/out" 2>"$dir/err" || fail "run: status $?"
grep -q 'was killed' "$dir/err" && fail "run: killed"

# Is it active?
SOMASHIM_VERBOSE=1 preload python3 -c "
import ctypes, os
lib = ctypes.CDLL('$(dirname "$program")/libshim_plugin.so', mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
assert lib.plugin_run() == 0"
grep -q 'HIP was loaded, but no call of it came here.*somashim run --audit' "$dir/err" || fail "bypassed"
SOMASHIM_VERBOSE=1 preload "$program"
grep -q 'no call of it' "$dir/err" && fail "not bypassed"
SOMASHIM_VERBOSE=1 preload /bin/true
[ -s "$dir/err" ] && fail "a program without HIP"

# Sixteen threads have a stream each, and the main thread has the null stream.
SOMASHIM_JOURNAL=$dir/log.csv preload "$program" threads
[ "$(sed 1d "$dir/log.csv" | cut -d, -f6 | sort -u | wc -l)" = 17 ] || fail "streams of the journal"
"$somashim" replay "$dir/log.csv" >"$dir/err" || fail "replay"
grep -Eq 'streams? +17|17 streams' "$dir/err" || fail "streams of the replay"
exit 0
