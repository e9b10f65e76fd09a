#!/bin/sh
# SPDX-License-Identifier: MIT
# Replays every kind of log on one backing, with an idle device and with ones that lag. The replay checks
# overlap, backing, alignment and the core's invariants.
# test_kinds.sh SOMASHIM BACKING LINES     LINES: so many of each log at most
set -eu
somashim=$1 backing=$2 lines=$3
log=$(mktemp "${TMPDIR:-/tmp}/somashim-kinds.XXXXXX")
trap 'rm -f "$log" "$log.whole"' EXIT

for kind in training serving dataframe handoff amr oneshot weightsync powers; do
	"$somashim" generate --seed 11 -o "$log.whole" $kind
	head -n "$lines" "$log.whole" >"$log"
	for options in "" "--clock" "--lag 3" "--lag 200 --classic" "--classic" "--set DECAY_MS=0"; do
		echo "$kind $options"
		# shellcheck disable=SC2086
		"$somashim" replay --backing "$backing" $options --json "$log"
	done
done
