# SPDX-License-Identifier: MIT
"""A Python program that is recorded: prints the frames of each allocation, as Python itself sees them."""
import ctypes
import sys
import threading

hip = ctypes.CDLL(sys.argv[1])


def note():
    frames = []
    frame = sys._getframe(1)
    while frame:
        if frame.f_code.co_filename == __file__: # threading.py is in it, too
            frames.append('%s:%d' % (frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    print(' < '.join(frames))


class Model:
    def layer(self, size):
        note(); status = hip.hipMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size))
        assert status == 0
        return size

    def forward(self, size):
        return (self.layer(size),
                self.layer(2 * size))


def générateur(model):
    for size in range(300, 306):
        yield model.forward(size)


def recurse(model, depth):
    return recurse(model, depth - 1) if depth else model.layer(7)


class Other(threading.Thread):
    def run(self):
        exec('\n\nModel().layer(9)', globals())
        recurse(Model(), 3)


def main():
    model = Model()
    for _ in générateur(model):
        pass
    for i in range(400):
        model.layer(i + 1)
    # From Python into C and back.
    sorted([3, 1, 2], key=lambda size: model.layer(size))
    recurse(model, 20)
    thread = Other()
    thread.start()
    thread.join()


main()
