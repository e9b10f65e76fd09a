#!/bin/bash
# SPDX-License-Identifier: MIT
# The command built without elfutils and ncurses says so, and where it matters; the rest works.
#   lacking.sh SOMASHIM LIBRARY PROGRAM      SOMASHIM is such a build
set -u
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-lacking-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/lib"
cp "$1" "$dir/bin/somashim"
ln -s "$2" "$dir/lib/libsomashim.so"
somashim=$dir/bin/somashim program=$3
export SOMASIM_QUIET=1

fail() { echo "$*"; cat "$dir/out"; exit 1; }
works() { timeout 60 "$@" >"$dir/out" 2>&1 || fail "$*: status $?"; }
says() { grep -q -- "$1" "$dir/out" || fail "no '$1'"; }

works "$somashim" --version
says '^somashim [0-9.]*$'
says '^built without elfutils (no names of functions.*), ncurses (no screen of top)$'
works "$somashim" record -o "$dir/trace" "$program" 20
says 'recorded in'
works "$somashim" report "$dir/trace"
says 'report: functions have no names, since this build lacks elfutils'
says "$(basename "$program")+0x[0-9a-f]"
works "$somashim" report -o "$dir/page.html" "$dir/trace"
works "$somashim" convert --to folded --output "$dir/folded" "$dir/trace"
says 'convert: functions have no names'
works "$somashim" check "$program" 20
says 'check: functions have no names'
works "$somashim" top --once
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	timeout 20 script -qec "$somashim top" /dev/null >"$dir/out" 2>&1 </dev/null && fail 'top has a screen'
	says 'top: this build has no screen, since ncurses was missing'
fi
exit 0
