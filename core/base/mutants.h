/* SPDX-License-Identifier: MIT */
/*
 * Ordering rules that a build can break on purpose by a switch, one at a time (-DSS_MUTANT=N). The
 * oracle and the directed tests must catch every one of them (scripts/mutants.sh). In a normal
 * build each condition is the constant false and costs nothing. The other rules are broken by the
 * patches in tests/mutants, which leave no trace in the code.
 */
#ifndef SS_CORE_MUTANTS_H
#define SS_CORE_MUTANTS_H

#ifndef SS_MUTANT
#define SS_MUTANT 0
#endif
#define SS_MUTANT_IS(n) (SS_MUTANT == (n))

/* clang-format off */
#define SS_MUTANTS(M) \
	M(51, waits_below_peak, "an allocation waits though growth sets no new peak") \
	M(52, waits_for_little, "an allocation waits for less than it needs") \
	M(55, waits_for_others, "a stream waits for others though its own memory will do") \
	M(58, counts_what_stays, "a pool grows because of memory that may not move") \
	M(59, waits_for_parts, "an allocation waits for free parts of chunks, which do not move")
/* clang-format on */

#endif
