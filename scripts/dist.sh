#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes dist/somashim-VERSION-x86_64.tar.gz: a tree that works wherever it is unpacked, with a
# module file for Lmod and for Environment Modules. Built on Debian 12 it runs on every
# distribution with glibc 2.17 or later.
#   scripts/dist.sh [--sim] [--wheel]     --sim: with the software device
#                                         --wheel: a wheel for pip instead of the tarball, for glibc 2.17 and later
set -euo pipefail
. "$(dirname "$0")/usage.sh"

sim=false wheel=false
for option; do
	case $option in
	--sim) sim=true ;;
	--wheel) wheel=true ;;
	*) wrong_call "there is no option $option" ;;
	esac
done
cd "$(dirname "$0")/.."
. scripts/packages.sh
install_packages libbz2-dev >&2
build=${BUILD:-build-dist}
options=(--buildtype=release --prefix=/ --libdir=lib --strip -Dtests=false -Dbench=false
	-Dsim="$sim" -Dinstall_sim="$sim" -Dcommand=enabled -Dstatic_command=true)
if [ -f "$build/build.ninja" ]; then
	meson configure "$build" "${options[@]:0:3}" "${options[@]:4}" >/dev/null
else
	meson setup "$build" "${options[@]}" >/dev/null
fi
ninja -C "$build" >"$build/dist.log" || { tail -20 "$build/dist.log" >&2; exit 1; }
command -v dpkg-query >/dev/null || echo "dist.sh: no dpkg: the licenses of static libraries are not collected" >&2
version=$(meson introspect --projectinfo "$build" |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
name=somashim-$version-$(uname -m)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root/$name meson install -C "$build" --quiet >&2

# The command contains static libraries, and its pages contain d3: the licenses go along, with the
# texts that they name, and the place of the sources.
licenses=$root/$name/share/doc/somashim/licenses
mkdir -p "$licenses"
archives=$(ninja -C "$build" -t commands cli/somashim | tail -1 | grep -o ' /[^ ]*\.a\b' | sort -u)
# shellcheck disable=SC2086
packages=$(dpkg -S $archives 2>/dev/null | sed 's/[:,].*//' | sort -u) || packages=
cp -L cli/report/d3/LICENSE "$licenses/d3"
for package in $packages uthash-dev; do
	[ -f "/usr/share/doc/$package/copyright" ] || continue # not Debian
	cp -L "/usr/share/doc/$package/copyright" "$licenses/$package"
	dpkg-query -W -f '${source:Package} ${source:Version}\n' "$package" >>"$root/sources"
done
for text in $(grep -oh '/usr/share/common-licenses/[A-Za-z0-9.-]*[0-9a-z]' "$licenses"/* | sort -u); do
	cp -L "$text" "$licenses/"
done
{
	cat <<-'END'
		somashim itself is under the MIT license (../LICENSE), with its source in the repository.
		bin/somashim contains code of the packages below, unchanged, as Debian 12 builds them; a file
		here has the license of each. elfutils is used under the LGPL, version 3 or later.
		Of these, the files in lib/ contain only what the headers of uthash expand to.

		Their sources: apt-get source PACKAGE=VERSION, or the archive of Debian's packages:
	END
	sort -u "$root/sources" 2>/dev/null | sed 's/\(.*\) \(.*\)/    \1=\2/'
	cat <<-'END'

		To link the command with a changed library: install the library and its .a file, then run
		scripts/dist.sh in the source of somashim. Without -Dstatic_command=true, Meson links the
		command with the shared libraries instead.
	END
} >"$licenses/README"
rm -f "$root/sources"

# Refuses to pack binaries that the loader of an old distribution would not load.
bash tests/shim/portable.sh "$root/$name/bin/somashim" "$root/$name/lib/libsomashim.so" \
	"$root/$name/lib/libsomashim-audit.so" >&2

mkdir -p dist
if [ $wheel = true ]; then
	scripts/wheel.py "$root/$name" "$version" "manylinux2014_$(uname -m)" dist
	exit
fi
mkdir -p "$root/$name/modulefiles/somashim"
for suffix in "" .lua; do
	sed "s/@VERSION@/$version/g" "packaging/somashim.module${suffix:-.tcl}" \
		>"$root/$name/modulefiles/somashim/$version$suffix"
done
tar -C "$root" --owner=0 --group=0 --numeric-owner --sort=name -czf "dist/$name.tar.gz" "$name"
echo "dist/$name.tar.gz"
