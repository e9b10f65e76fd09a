# SPDX-License-Identifier: MIT
"""A Python program that is recorded: it calls HIP by ctypes, from a function with a name."""
import ctypes
import sys

hip = ctypes.CDLL(sys.argv[1])


def check(status):
    if status:
        sys.exit('status %d' % status)


def allocate(size):
    ptr = ctypes.c_void_p()
    check(hip.hipMalloc(ctypes.byref(ptr), ctypes.c_size_t(size)))
    return ptr


blocks = [allocate(1000 * i) for i in range(1, 51)]
for block in blocks[:40]:
    check(hip.hipFree(block))
check(hip.hipDeviceSynchronize())
