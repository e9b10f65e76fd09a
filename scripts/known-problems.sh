#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that every test named in docs/known-problems.md exists, and that every problem has a row.
#   scripts/known-problems.sh [SOURCE-DIR]
set -eu
. "$(dirname "$0")/usage.sh"
root=${1:-$(dirname "$0")/..}
page=$root/docs/known-problems.md
[ -f "$page" ] || wrong_call "there is no file $page"
bad=0

wrong() {
	echo "docs/known-problems.md: $*" >&2
	bad=1
}

for id in $(seq -f 'C%.0f' 1 30) $(seq -f 'V%.0f' 1 21); do
	[ "$(grep -c "^| $id |" "$page")" = 1 ] || wrong "not one row for $id"
done
# For each `file: case` there must be the file, and in it a function or test with that name.
tests=$(grep -o '`tests/[^`]*`' "$page" | tr -d '`' | tr -d ' ' | sort -u)
for test in $tests; do
	file=${test%%:*} name=${test#"$file"}
	name=${name#:}
	if [ ! -f "$root/$file" ]; then
		wrong "no file $file"
	elif [ -n "$name" ] && ! grep -qE "(^|[^[:alnum:]_])$name\(|'$name'" "$root/$file"; then
		wrong "no $name in $file"
	fi
done
# Each `quirk-name` must be in the lists of meson's tests.
for quirk in $(grep -o '`quirk-[a-z0-9-]*[a-z0-9]`' "$page" | tr -d '`' | sort -u); do
	grep -qE "'(quirk-)?${quirk#quirk-}'" "$root/tests/shim/meson.build" || wrong "no test $quirk"
done
# A row without a test must say why, in a sentence that ends with a full stop.
if grep -E '^\| [CV][0-9]+ \|' "$page" | grep -v '`tests/' | grep -vqE '\. \|$'; then
	wrong "a row with neither a test nor a sentence"
fi
exit $bad
