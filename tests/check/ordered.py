# SPDX-License-Identifier: MIT
"""A program for command.sh: two lines that use a block on a stream that nothing orders after its allocation."""
import ctypes
import os

hip = ctypes.CDLL('libamdhip64.so.' + os.environ['SOMASIM_HIP_VERSION'].split('.')[0])


def ok(err):
    if err:
        raise RuntimeError(err)


def stream():
    handle = ctypes.c_void_p()
    ok(hip.hipStreamCreateWithFlags(ctypes.byref(handle), 1))
    return handle


class Layer:
    def forward(self, block, on):
        ok(hip.hipMemsetAsync(block, 1, ctypes.c_size_t(64), on))
        ok(hip.hipMemsetAsync(block, 2, ctypes.c_size_t(64), on))


a, b = stream(), stream()
memory = ctypes.c_void_p()
ok(hip.hipMallocAsync(ctypes.byref(memory), ctypes.c_size_t(64), a))
Layer().forward(memory, b)
ok(hip.hipStreamSynchronize(b))
ok(hip.hipFreeAsync(memory, a))
ok(hip.hipDeviceSynchronize())
