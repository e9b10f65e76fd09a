#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds RPM packages of the last commit with packaging/somashim.spec.
#   scripts/rpm.sh [--nodeps] [--define "NAME VALUE"]... FOLDER
#       --nodeps: do not ask whether what the build needs is installed as packages
#       --define: as of rpmbuild, such as "rocm_path /opt/rocm-7.2.0"
set -euo pipefail
. "$(dirname "$0")/usage.sh"
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--nodeps) options+=(--nodeps) ;;
	--define) needs_value "$@"; options+=(--define "$2"); shift ;;
	-*) wrong_call "there is no option $1" ;;
	*) break ;;
	esac
	shift
done
[ $# = 1 ] || wrong_call "one folder is needed, for the packages"
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
mkdir -p "$top/SOURCES"
if git rev-parse HEAD >/dev/null 2>&1; then
	git archive --prefix="somashim-$version/" HEAD >"$top/source.tar"
else # an unpacked source
	tar -cf "$top/source.tar" --transform "s,^\.,somashim-$version," --exclude='./build*' .
fi
gzip -c "$top/source.tar" >"$top/SOURCES/somashim-$version.tar.gz"
rpmbuild -bb "${options[@]}" --define "_topdir $top" --define "somashim_version $version" \
	--define '_libdir /usr/lib64' packaging/somashim.spec
cp -r "$top"/RPMS/* "$out/"
