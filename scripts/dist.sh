#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes dist/somashim-VERSION-x86_64.tar.gz: a tree that works wherever it is unpacked, with a
# module file for Lmod and for Environment Modules. Built on Debian 12 it runs on every
# distribution with glibc 2.17 or later.
#   scripts/dist.sh [--sim]     --sim: with the software device
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

sim=false
case "${1:-}" in
--sim) sim=true ;;
"") ;;
*) echo "usage: scripts/dist.sh [--sim]" >&2; exit 2 ;;
esac
install_packages libbz2-dev
build=${BUILD:-build-dist}
options=(--buildtype=release --prefix=/ --libdir=lib --strip -Dtests=false -Dbench=false
	-Dinstall_sim="$sim" -Dstatic_command=true)
if [ -f "$build/build.ninja" ]; then
	meson configure "$build" "${options[@]:0:3}" "${options[@]:4}" >/dev/null
else
	meson setup "$build" "${options[@]}" >/dev/null
fi
version=$(meson introspect --projectinfo "$build" |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
name=somashim-$version-$(uname -m)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root/$name meson install -C "$build" --quiet

# The command contains these libraries, and its pages contain d3: their licenses go along.
licenses=$root/$name/share/doc/somashim/licenses
mkdir -p "$licenses"
for package in libjansson-dev libdw-dev libncurses-dev zlib1g-dev liblzma-dev libbz2-dev node-d3; do
	[ ! -f "/usr/share/doc/$package/copyright" ] ||
		cp "/usr/share/doc/$package/copyright" "$licenses/$package"
done

# Refuses to pack binaries that the loader of an old distribution would not load.
bash tests/shim/portable.sh "$root/$name/bin/somashim" "$root/$name/lib/libsomashim.so" \
	"$root/$name/lib/libsomashim-audit.so"

mkdir -p "$root/$name/modulefiles/somashim"
for suffix in "" .lua; do
	sed "s/@VERSION@/$version/g" "packaging/somashim.module${suffix:-.tcl}" \
		>"$root/$name/modulefiles/somashim/$version$suffix"
done
mkdir -p dist
tar -C "$root" --owner=0 --group=0 --numeric-owner --sort=name -czf "dist/$name.tar.gz" "$name"
echo "dist/$name.tar.gz"
