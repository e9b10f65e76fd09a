# SPDX-License-Identifier: MIT
# Sourced: draws generated logs, so that nothing can be tuned to a fixed set of them.

# fresh_seed: a seed that nobody used before, as far as chance goes.
fresh_seed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# draw_logs SOMASHIM DIR COUNT SEED: writes COUNT logs to DIR, all kinds in turn, each with a seed
# and a scale of its own (1/4 to 4, log-uniform). The same SEED draws the same logs.
draw_logs() {
	local somashim=$1 dir=$2 count=$3 seed=$4 kinds kind n scale
	kinds=$("$somashim" generate --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p') || return 1
	[ -n "$kinds" ] || return 1
	awk -v seed="$seed" -v count="$count" -v kinds="$kinds" 'BEGIN {
		split(kinds, kind, "\n")
		srand(seed)
		for (i = 0; i < count; i++)
			printf "%s %d %.3f\n", kind[i % length(kind) + 1], rand() * 1e9, 4 ^ (2 * rand() - 1)
	}' | while read -r kind n scale; do
		"$somashim" generate --seed "$n" --scale "$scale" -o "$dir/$kind-$n-$scale.csv" "$kind" ||
			return 1
	done
}
