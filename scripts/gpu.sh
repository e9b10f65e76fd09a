#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests and figures on a real GPU, AMD's or NVIDIA's: makes a bundle (about 10 MB) that needs nothing but the GPU's driver,
# and runs it here.
#   scripts/gpu.sh [OPTIONS OF RUN.SH] [BUILD]           docs/hardware.md has the options
#   scripts/gpu.sh --bundle PLACE [BUILD]                only makes it: a folder, or PLACE.tar.gz. Elsewhere: PLACE/run.sh
# The programs are compiled for the runtime that `somashim doctor` takes (--runtime PATH, ROCM_PATH, else what is found), or for
# the software device's. BUILD is a build folder; by default a release build is made in build-gpu.
set -euo pipefail
. "$(dirname "$0")/usage.sh"
place= options=(-o "$PWD/gpu.json") build= runtime=${ROCM_PATH:-}
while [ $# -gt 0 ]; do
	case $1 in
	--bundle) needs_value "$@"; place=$(realpath -m "$2"); shift ;;
	--limit) needs_number "$@"; options+=("$1" "$2"); shift ;;
	--only) needs_value "$@"; options+=("$1" "$2"); shift ;;
	-o) needs_value "$@"; options+=(-o "$(realpath "$2")"); shift ;;
	--runtime) needs_value "$@"; runtime=$2; options+=("$1" "$2"); shift ;;
	--quick | --long | --tests | --sim | --emulator) options+=("$1") ;;
	-*) wrong_call "there is no option $1" ;;
	*) build=$(realpath "$1") ;;
	esac
	shift
done
[ -z "$runtime" ] || runtime=$(realpath -s "$runtime")
cd "$(dirname "$0")/.."
if [ -z "$build" ]; then
	build=$PWD/build-gpu
	[ -f "$build/build.ninja" ] ||
		meson setup "$build" --buildtype=release -Dtests=false -Dbench=false -Ddocs=false >/dev/null
	ninja -C "$build" >"$build/gpu.log" || { tail -20 "$build/gpu.log" >&2; exit 1; }
fi
somashim=$build/cli/somashim
[ -f "$build/shim/libsomashim.so" ] && [ -x "$somashim" ] || { echo "gpu.sh: $build is not built" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dir=$work/bundle
[ -z "$place" ] || [ "${place%.tar.gz}" != "$place" ] || dir=$place
rm -rf "$dir"
mkdir -p "$dir"/{bin,cli,shim,lib,logs}

# ---- somashim, and the runtimes that it brings -----------------------------------
cp scripts/gpu-run.sh "$dir/run.sh"
cp bench/peers.py "$dir/"
cp "$build/shim/libsomashim.so" "$dir/shim/"
cp "$somashim" "$dir/cli/"
git describe --always --dirty >"$dir/commit" 2>/dev/null || echo unknown >"$dir/commit"
for library in $(ldd "$somashim" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'); do
	case $library in
	*/libc.so* | */libm.so* | */libdl.so* | */libpthread.so* | */librt.so*) ;;
	*) cp -L "$library" "$dir/lib/" ;;
	esac
done
# runtime FOLDER NAME
runtime() {
	[ -e "$1/libamdhip64.so.5" ] || return 0
	mkdir "$dir/$2"
	find "$1" -maxdepth 1 -name 'lib*.so*' ! -type d -exec cp -P {} "$dir/$2/" \;
}
runtime "$build/sim" sim
runtime "$build/sim/cuda" cuda

# ---- programs ----------------------------------------------------------------------
unset LD_PRELOAD LD_AUDIT
library=$("$somashim" doctor --json ${runtime:+--runtime "$runtime"} 2>/dev/null |
	sed -n 's/.*"library": "\([^"]*\)".*/\1/p') || true
[ -f "$library" ] || library=$build/sim/libamdhip64.so.5
[ -f "$library" ] || { echo "gpu.sh: no libamdhip64 to compile for: --runtime PATH names one" >&2; exit 1; }
lib=${library%/*}
include=()
for folder in "$lib/../include" "$lib/../../_rocm_sdk_devel/include"; do # the second is a wheel's
	[ ! -d "$folder/hip" ] || include=(-isystem "$folder")
done
# compile NAME SOURCES...
compile() {
	${CC:-cc} -O1 -g1 -std=gnu11 -D_GNU_SOURCE -D__HIP_PLATFORM_AMD__ -w -I. "${include[@]}" "${@:2}" "$library" \
		-Wl,-rpath-link,"$lib" -pthread -ldl -o "$dir/bin/$1" || { echo "gpu.sh: $1 cannot be compiled" >&2; exit 1; }
}
for name in capture edge_arguments exits failures forks freesync hits ipc order overlap peers pinned pointers pools \
	threads stress busy sleep_device; do
	compile $name tests/shim/$name.c
done
compile alloc_loop tests/apps/alloc_loop.c
compile replay_hip tests/apps/{replay_hip,replay_log,device_work}.c cli/readers/*.c
compile libobserve.so -shared -fPIC tests/apps/observe.c
compile calls bench/{calls,bench}.c tests/apps/device_work.c cli/readers/*.c
LC_ALL=C objdump -p "$dir/bin/alloc_loop" | sed -n 's/.*NEEDED *\(libamdhip64.*\)/\1/p' >"$dir/needed"
strip --strip-debug "$dir"/bin/* "$dir"/cli/* "$dir"/shim/* "$dir"/{sim,cuda}/*.so.? 2>/dev/null || true

# ---- logs ---------------------------------------------------------------------------
for kind in amr:10 dataframe:1 handoff:2000 powers:2000 serving:100 training:2 weightsync:4; do
	"$somashim" generate --rounds "${kind#*:}" --seed 7 -o "$dir/logs/${kind%:*}.csv" "${kind%:*}"
done
for log in ../shared/traces/*512-infer*.csv.xz ../shared/traces/*ctx1024*.csv.xz; do # recordings
	[ ! -f "$log" ] || xz -dc "$log" >"$dir/logs/$(basename "$log" .xz)"
done

if [ "$dir" = "$work/bundle" ] && [ -n "$place" ]; then
	tar -C "$work" -czf "$place" --transform "s,^bundle,$(basename "$place" .tar.gz)," bundle
fi
if [ -n "$place" ]; then
	echo "gpu.sh: $place: $(du -shL "$place" | cut -f 1)"
	exit 0
fi
bash "$dir/run.sh" "${options[@]}"
