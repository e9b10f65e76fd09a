/* SPDX-License-Identifier: MIT */
/*
 * Ordering rules that a build can break on purpose, one at a time (-DSS_MUTANT=N). The oracle and
 * the directed tests must catch every one of them (scripts/mutants.sh). In a normal build each
 * condition is the constant false and costs nothing.
 */
#ifndef SS_CORE_MUTANTS_H
#define SS_CORE_MUTANTS_H

#ifndef SS_MUTANT
#define SS_MUTANT 0
#endif
#define SS_MUTANT_IS(n) (SS_MUTANT == (n))

/* clang-format off */
#define SS_MUTANTS(M) \
	M(1, same_stream, "a block freed on another stream counts as freed on this one") \
	M(2, event_position, "a wait grants the stream's present position, not the record's") \
	M(3, transitivity, "a wait grants what the recording stream saw after the record too") \
	M(4, completion_off_by_one, "a fence also completes the frees after it") \
	M(5, null_implicit_out, "blocking streams take what the null stream freed") \
	M(6, null_implicit_in_nonblocking, "the null stream takes what non-blocking streams freed") \
	M(7, handle_reuse, "a new stream at an old handle is taken for the old one") \
	M(8, slot_reuse, "a slot is reused before what was freed on it completed") \
	M(9, epoch_forgets_stream, "an epoch leaves out the last stream of the device") \
	M(10, destroy_fence, "a destroyed stream counts as completed at once") \
	M(11, threshold, "memory below the release threshold is given back too") \
	M(12, split_overlap, "a split hands the last grain out twice") \
	M(13, split_drops_mark, "the second half of a split range loses its mark") \
	M(14, per_thread_shared, "all threads share one per-thread timeline") \
	M(15, clock_after_call, "a record's position is read after the real call") \
	M(16, record_generation, "a wait grants although the event was re-recorded meanwhile") \
	M(17, classic_takes_saw, "hipMalloc takes bytes that are only ordered, not completed") \
	M(18, late_fence_wait, "a fence that may cover later work is waited for") \
	M(19, failed_call_grants, "a call that failed grants what it promised") \
	M(20, overlap_records, "two records of one event at once still publish a clock") \
	M(21, tainted_event, "an event recorded by an unseen call keeps its clock") \
	M(22, sync_after_call, "a synchronization's position is read after the real call") \
	M(23, event_handle_reuse, "a new event at an old handle keeps the old clock") \
	M(24, opportunistic_off, "completions count though the policy forbids them") \
	M(25, follow_off, "event order counts though the policy forbids it") \
	M(26, coalesce_drops_mark, "a merged range keeps only the lower mark") \
	M(27, device_scope, "synchronizing one device completes the others") \
	M(28, retire_implicit, "a blocking stream is destroyed though the null stream counts on it") \
	M(29, free_classic_unmarked, "hipFree without a wait leaves the bytes unmarked") \
	M(30, absorb_keeps_none, "ranges taken over by event order lose their marks") \
	M(31, sync_without_command, "waiting for a blocking stream proves what the null stream does") \
	M(32, null_hit_without_command, "the null stream takes back what it freed without joining") \
	M(33, failed_command_covers, "a record that failed stands for the null stream's frees") \
	M(34, destroyed_meanwhile, "a wait stream by stream covers one destroyed meanwhile") \
	M(35, zombies_forgotten, "hipFree's wait covers streams that were destroyed before") \
	M(36, distrusted_clock, "event clocks are trusted after a bypass was seen") \
	M(37, distrusted_epoch, "fences of known streams close an epoch after a bypass") \
	M(38, joined_nonblocking, "waiting for the null stream covers non-blocking streams") \
	M(39, epoch_shared_too_long, "later frees join an epoch with older marks") \
	M(40, null_fence_anywhere, "a fence joins the null stream in a call that does not") \
	M(41, thread_exit_completes, "a thread's stream counts as completed when it exits") \
	M(42, other_threads_fence, "a fence for another thread's stream lands on this thread's") \
	M(43, null_transitive, "a wait for a blocking stream grants what the null stream freed") \
	M(44, distrusted_idle, "after a bypass a device is idle when the streams known are") \
	M(45, distrusted_query, "after a bypass a query enqueues no command") \
	M(46, arena_cut_unmarked, "what is left of a cut arena loses its mark") \
	M(47, arena_drops_mark, "a range merged in an arena keeps only the lower part's mark") \
	M(48, gather_unseen, "gathering takes in what has not completed") \
	M(49, fence_of_captured, "a fence is asked for while its stream is captured") \
	M(50, end_of_some, "a device is at its end though a stream of it is not") \
	M(51, waits_below_peak, "an allocation waits though growth sets no new peak") \
	M(52, waits_for_little, "an allocation waits for less than it needs") \
	M(53, waits_unbounded, "an allocation waits a hundred times too long") \
	M(54, waits_in_capture, "an allocation waits while a stream is captured") \
	M(55, waits_for_others, "a stream waits for others though its own memory will do")
/* clang-format on */

#endif
