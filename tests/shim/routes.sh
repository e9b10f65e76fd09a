#!/bin/bash
# SPDX-License-Identifier: MIT
# A table: each way in which programs reach HIP, and each way in which the library comes into them. All calls
# are seen, or it is said that some are not.
#   routes.sh preload|table|run|record|audit PROGRAM LINKED PLUGIN STATIC STATIC_HIP SIM [SOMASHIM]
# preload: LD_PRELOAD alone; table: with SOMASHIM_API_TABLE=1, on a runtime that has one; run, record:
# `somashim run` and `record`; audit: `somashim run --audit`.
set -u
by=$1 program=$2 linked=$3 plugin=$4 static=$5 static_hip=$6 sim=$7 somashim=${8:-}
library=${LD_PRELOAD:-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-routes.XXXXXX")
trap 'rm -rf "$dir"' EXIT
unset LD_PRELOAD
export SOMASIM_QUIET=1 SOMASHIM_DECAY_MS=0 LD_LIBRARY_PATH=$sim
[ "$by" = table ] && export LD_LIBRARY_PATH=$sim/amd:$sim SOMASHIM_API_TABLE=1
failed=0 rows=0

cat >"$dir/by_ctypes.py" <<'END'
import ctypes
hip = ctypes.CDLL("libamdhip64.so.5")
p = ctypes.c_void_p()
assert hip.hipMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0
assert hip.hipFree(p) == 0
hip.somasim_call_count.restype = ctypes.c_uint64
print("past" if hip.somasim_call_count(b"hipMalloc") else "seen")
END

start() {
	case $by in
	preload | table) env LD_PRELOAD="$library" SOMASHIM_VERBOSE=1 "$@" ;;
	run) "$somashim" run -- "$@" ;;
	record) "$somashim" record -o "$dir/%p.trace" -- "$@" ;;
	audit) "$somashim" run --audit -- "$@" ;;
	esac
}

# row WANTED WAY COMMAND...: seen, said, or nobody (no process is there that could say it).
row() {
	local wanted=$1 way=$2 got status=0
	shift 2
	rows=$((rows + 1))
	start "$@" >"$dir/out" 2>"$dir/err" || status=$?
	case $(cat "$dir/out") in
	seen) got=seen ;;
	*)
		got=nobody
		# In words that say what is wrong and, where something helps, what.
		grep -Eqi 'no call of it came|NOT USED|NOT LOADED: .*is linked statically|past the shim' "$dir/err" &&
			got=said
		;;
	esac
	if [ $status = 0 ] && [ $got = "$wanted" ]; then
		return
	fi
	echo "$by: $way: $got, status $status; wanted $wanted"
	cat "$dir/out" "$dir/err"
	failed=1
}
[ "$by" = table ] || row seen linked "$linked"
for way in handle dlvsym default default-local default-dlvsym next next-dlvsym program proc plugin \
	plugin-lazy plugin-handle plugin-default plugin-next plugin-dlvsym; do
	row seen $way "$program" $way "$plugin"
done
if [ -z "${SANITIZED:-}" ]; then
	[ -x /usr/bin/python3 ] && row seen ctypes /usr/bin/python3 "$dir/by_ctypes.py"
	# The flag gives an object a scope of its own, in front of every preload.
	case $by in
	audit) first=seen later=seen ;;
	table) first=said later=seen ;; # who hands out the table is in that scope, too
	*) first=said later=said ;;
	esac
	row seen handle-deepbind "$program" handle-deepbind "$plugin"
	row $first deepbind "$program" deepbind "$plugin"
	row $later deepbind-late "$program" deepbind-late "$plugin"
	row $later deepbind-handle "$program" deepbind-handle "$plugin"
fi
row said static-hip "$static_hip"
# A program without a dynamic loader: only a parent can say so.
case $by in
preload | table) row nobody static "$static" ;;
*) row said static "$static" ;;
esac
echo "$by: $rows ways"
exit $failed
