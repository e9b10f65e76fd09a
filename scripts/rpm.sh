#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds RPM packages of the last commit with packaging/somashim.spec.
#   scripts/rpm.sh [--nodeps] FOLDER     --nodeps: do not ask whether what the build needs is installed as packages
set -euo pipefail
. "$(dirname "$0")/usage.sh"
nodeps=()
if [ "${1:-}" = --nodeps ]; then
	nodeps=(--nodeps)
	shift
fi
case $#${1:-} in
1-*) wrong_call "there is no option $1" ;;
1*) ;;
*) wrong_call "one folder is needed, for the packages" ;;
esac
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
rpmbuild -bb "${nodeps[@]}" --define "_topdir $top" --define "somashim_version $version" \
	--define '_libdir /usr/lib64' packaging/somashim.spec
cp -r "$top"/RPMS/* "$out/"
