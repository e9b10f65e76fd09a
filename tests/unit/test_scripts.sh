#!/bin/bash
# SPDX-License-Identifier: MIT
# Each script says how it is called, from whichever directory, and refuses a wrong call before it does anything.
# test_scripts.sh SOURCE
set -u
source=$(realpath "$1")
dir=$(mktemp -d "${TMPDIR:-/tmp}/somashim-scripts.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/scripts" "$dir/bench" "$dir/here"
cd "$dir/here" || exit 1
# Nothing but the scripts: what works on the tree would fail.
cp "$source"/scripts/*.sh ../scripts/
cp "$source"/bench/*.sh ../bench/
bad=0

# call STATUS SCRIPT ARGUMENT...
call() {
	local want=$1 script=$2 got=0 # a name is one of scripts/
	case $script in */*) ;; *) script=scripts/$script ;; esac
	shift 2
	timeout 60 bash "../$script" "$@" >../out 2>../err </dev/null || got=$?
	[ $got = "$want" ] || { echo "$script $*: status $got, not $want"; cat ../out ../err; bad=1; }
}

for script in ../scripts/*.sh ../bench/*.sh; do
	script=${script#../}
	grep -q '^# Sourced' "../$script" && continue
	for ask in --help -h; do
		call 0 "$script" $ask
		grep -q "^  .*$script\|^  run.sh" ../out || { echo "$script $ask: no usage"; cat ../out; bad=1; }
		[ ! -s ../err ] || { echo "$script $ask: $(cat ../err)"; bad=1; }
	done
	call 2 "$script" --nonsense
	grep -q "${script##*/}\|run.sh" ../err || { echo "$script --nonsense: $(cat ../err)"; bad=1; }
done
for call in "mutants.sh --jobs" "mutants.sh --programs x" "mutants.sh 1x" "oracle-long.sh --count -1" "placement.sh --seed x" \
	"placement.sh nothing" "placement.sh --logs" "rpm.sh" "rpm.sh a b" "test.sh --quick more" "test.sh --long more" "suite.sh none" "try-packages.sh deb nothing" \
	"viewers.sh x" "gpu.sh --only" "gpu.sh --limit x" "options-document.sh" "format.sh --check none.c" "layers.sh none" \
	"known-problems.sh none" "rocm-matrix.sh none" "demo.sh none.csv" "dist.sh --sim more" "bench/count.sh a b" "bench/gate.sh --logs x" \
	"bench/behind.sh --seed" "bench/debts.sh --rounds" "bench/run.sh none"; do
	call 2 $call
	[ -s ../err ] || { echo "$call: nothing is said"; bad=1; }
done
[ -z "$(ls)" ] || { echo "left behind: $(ls)"; bad=1; }
exit $bad
