# SPDX-License-Identifier: MIT
# Sourced: draws generated logs, so that nothing can be tuned to a fixed set of them.

# fresh_seed: prints a random seed.
fresh_seed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# draw_logs SOMASHIM DIR COUNT SEED: writes COUNT logs to DIR, all kinds in turn, each with a seed
# and a scale of its own (1/4 to 4, log-uniform). The same SEED draws the same logs.
draw_logs() {
	local somashim=$1 dir=$2 count=$3 seed=$4 kind n scale
	python3 -c '
import random, sys
draw = random.Random(int(sys.argv[1]))
kinds = sys.argv[3:]
for i in range(int(sys.argv[2])):
    print(kinds[i % len(kinds)], draw.randrange(10**9), "%.3f" % 4 ** draw.uniform(-1, 1))
' "$seed" "$count" training serving dataframe handoff amr oneshot weightsync powers |
		while read -r kind n scale; do
			"$somashim" generate --seed "$n" --scale "$scale" \
				-o "$dir/$kind-$n-$scale.csv" "$kind" || return 1
		done
}
