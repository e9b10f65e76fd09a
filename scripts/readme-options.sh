#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the options table of the README is the one of config/options.c; --write updates it.
#   scripts/readme-options.sh [--write] SOMASHIM README.md
set -eu
. "$(dirname "$0")/usage.sh"
write=false
if [ "${1:-}" = --write ]; then
	write=true
	shift
fi
[ $# = 2 ] && [ -x "$1" ] && [ -f "$2" ] || wrong_call "the command and the README are needed"
somashim=$1 readme=$2
table=$(mktemp)
trap 'rm -f "$table" "$table.new"' EXIT
"$somashim" options --markdown >"$table"

# Replaces the text between the markers.
awk -v table="$table" '
	/<!-- options -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
	/<!-- end of options -->/ { skip = 0 }
	!skip { print }
' "$readme" | awk '!(/<!-- options -->/ && seen++)' >"$table.new"
if $write; then
	cat "$table.new" >"$readme"
	exit 0
fi
diff -u "$readme" "$table.new" || {
	echo "the options table of the README is out of date: scripts/readme-options.sh --write" >&2
	exit 1
}
