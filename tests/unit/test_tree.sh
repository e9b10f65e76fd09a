#!/bin/bash
# SPDX-License-Identifier: MIT
# Each file of the repository is of a kind that its folder has. What a command left behind by mistake is of none.
# test_tree.sh SOURCE [FILE...]: looks at FILEs (default: those that git has)
set -uf # no pattern below is one of files
cd "$1" || exit 1
shift
# The kinds, as patterns of a whole path.
kinds='
	(CHANGELOG|CODE_OF_CONDUCT|CONTRIBUTING|README|SECURITY)\.md|LICENSE|meson\.build|meson_options\.txt|\.clang-format|\.gitignore|\.ci/run
	[a-z][a-z/_0-9]*/(meson\.build|README\.md|[a-z][a-z_0-9]*\.(c|h))
	(bench|scripts|sim|tests)/([a-z]+/)?[a-z][a-z_0-9-]*\.(sh|py)
	bench/[a-z]+\.awk
	\.github/(ISSUE_TEMPLATE|workflows)/[a-z]+\.yml|\.github/[a-z_]+\.md
	cli/report/d3/(d3\.min\.js|LICENSE|README\.md)|examples/[a-z]+/(README\.md|[a-z]+\.cpp)|tests/apps/[a-z_]+\.cpp
	tests/(repeats|single)|tests/fuzz/(seeds/[a-z_]+/[a-z_0-9]+|[a-z_]+\.dict)
	cli/report/page/[a-z]+\.(js|css)
	debian/[a-z.-]+(\.README\.Debian)?|debian/source/format
	docs/[a-z0-9-]+\.(md|png|1|7)
	packaging/somashim(\.module)?\.(lua|tcl|spec)|packaging/Containerfile|packaging/spack/([a-z]+/)*[a-z]+\.(py|yaml)
	shim/route/[a-z_]+\.(S|map\.in)|sim/(cuda|libcuda)/[a-z_]+\.(ptx|map)
	tests/check/[a-z_]+\.(cl|supp)|tests/shim/[a-z_]+\.supp|tests/trace/[a-z]+\.mjs|tests/mutants/[a-z0-9_-]+\.patch
'
pattern=$(echo $kinds | tr ' ' '|')
if [ $# -gt 0 ]; then
	files=$(printf '%s\n' "$@")
else
	files=$(git ls-files 2>/dev/null) && [ -n "$files" ] || { echo "not in git: nothing to look at"; exit 77; }
fi
strange=$(grep -Evx "$pattern" <<<"$files") || exit 0
echo "of no kind that its folder has (tests/unit/test_tree.sh lists them):"
echo "$strange"
exit 1
