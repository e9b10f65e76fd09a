/* SPDX-License-Identifier: MIT */
/* What HIP knows about the calling thread. */
#include "hip/thread_state.h"

__thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));
