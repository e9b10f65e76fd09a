#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the table in docs/options.md is the one of config/options.c; --write updates it.
#   scripts/options-document.sh [--write] SOMASHIM docs/options.md
set -eu
. "$(dirname "$0")/usage.sh"
write=false
if [ "${1:-}" = --write ]; then
	write=true
	shift
fi
[ $# = 2 ] && [ -x "$1" ] && [ -f "$2" ] || wrong_call "the command and the document are needed"
somashim=$1 document=$2
table=$(mktemp)
trap 'rm -f "$table" "$table.new"' EXIT
"$somashim" options --markdown >"$table"

# Replaces the text between the markers.
awk -v table="$table" '
	/<!-- options -->/ { print; while ((getline line < table) > 0) print line; skip = 1 }
	/<!-- end of options -->/ { skip = 0 }
	!skip { print }
' "$document" | awk '!(/<!-- options -->/ && seen++)' >"$table.new"
if $write; then
	cat "$table.new" >"$document"
	exit 0
fi
diff -u "$document" "$table.new" || {
	echo "the table in docs/options.md is out of date: scripts/options-document.sh --write" >&2
	exit 1
}
