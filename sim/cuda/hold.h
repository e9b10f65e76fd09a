/* SPDX-License-Identifier: MIT */
/* Streams that a test holds back: somasim_stall_stream and somasim_release_stream, as the software
 * device has them. */
#ifndef SIM_CUDA_HOLD_H
#define SIM_CUDA_HOLD_H

/* Takes the words that held streams wait for. A context is being made and is current. */
void holds_prepare(int device);

#endif
