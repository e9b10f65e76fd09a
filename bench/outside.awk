# SPDX-License-Identifier: MIT
# Prints, from a callgrind profile, the instructions outside the runtime and the calls into it: the total
# less the inclusive cost of calls into the runtime's libraries.
function is_runtime(s,   id) {
	match(s, /\([0-9]+\)/)
	id = substr(s, RSTART, RLENGTH)
	if (length(s) >= RSTART + RLENGTH)
		known[id] = s ~ /lib(amdhip64|hsa-runtime64)/
	return known[id]
}
/^ob=/ { here = is_runtime($0) }
/^cob=/ { there = is_runtime($0); other = 1 }
/^calls=/ {
	crosses = other && there && !here
	other = 0
	if (crosses)
		calls += substr($1, 7)
	getline
	if (crosses)
		inside += $2
}
/^summary:/ { all = $2 }
END { print all - inside, calls + 0 }
