/* SPDX-License-Identifier: MIT */
/*
 * Ordering rules that a build can break on purpose by a switch, one at a time (-DSS_MUTANT=N). The
 * oracle and the directed tests must catch every one of them (scripts/mutants.sh). In a normal
 * build each condition is the constant false and costs nothing. Only what one word breaks has a
 * switch; the other rules are broken by the patches in tests/mutants.
 */
#ifndef SS_CORE_MUTANTS_H
#define SS_CORE_MUTANTS_H

#ifndef SS_MUTANT
#define SS_MUTANT 0
#endif
#define SS_MUTANT_IS(n) (SS_MUTANT == (n))

/* clang-format off */
#define SS_MUTANTS(M) \
	M(9, epoch_forgets_stream, "an epoch leaves out the last stream of the device") \
	M(11, threshold, "memory below the release threshold is given back too") \
	M(12, split_overlap, "a split hands the last grain out twice") \
	M(13, split_drops_mark, "the second half of a split range loses its mark") \
	M(25, follow_off, "event order counts though the policy forbids it") \
	M(26, coalesce_drops_mark, "a merged range keeps only the lower mark") \
	M(29, free_classic_unmarked, "hipFree without a wait leaves the bytes unmarked") \
	M(32, null_hit_without_command, "the null stream takes back what it freed without joining") \
	M(39, epoch_shared_too_long, "later frees join an epoch with older marks") \
	M(46, arena_cut_unmarked, "what is left of a cut arena loses its mark") \
	M(47, arena_drops_mark, "a range merged in an arena keeps only the lower part's mark") \
	M(48, gather_unseen, "gathering takes in what has not completed") \
	M(51, waits_below_peak, "an allocation waits though growth sets no new peak") \
	M(52, waits_for_little, "an allocation waits for less than it needs") \
	M(54, waits_in_capture, "an allocation waits while a stream is captured") \
	M(55, waits_for_others, "a stream waits for others though its own memory will do") \
	M(56, arena_swallows, "a free merges with what has completed, which others may need") \
	M(57, arena_foreign, "a range of another arena merges as if it were at home") \
	M(58, counts_what_stays, "a pool grows because of memory that may not move") \
	M(59, waits_for_parts, "an allocation waits for free parts of chunks, which do not move")
/* clang-format on */

#endif
