# SPDX-License-Identifier: MIT
"""Memory snapshots as PyTorch writes them, of a program that is played here, with the figures that it had."""
import pickle

MIB = 1 << 20


def frame(name, line, file='train.py'):
    return {'name': name, 'filename': file, 'line': line}


class Program:
    """One device. Blocks have their requested size in the history, and in segments the rounded one."""

    def __init__(self, device=0, start_us=1764331200000000):
        self.device, self.t = device, start_us
        self.trace, self.segments, self.live = [], {}, {}
        self.used = self.reserved = self.used_peak = self.reserved_peak = 0
        self.frames = {}

    def stack(self, *names):
        """One list object for each stack, as PyTorch's frames are shared."""
        return self.frames.setdefault(names, [frame(n, 10 + i) for i, n in enumerate(names)])

    def entry(self, action, addr, size, frames, **more):
        self.t += 100
        if self.recording:
            self.trace.append(dict(action=action, addr=addr, size=size, stream=0, time_us=self.t, frames=frames, **more))

    recording = True

    def segment(self, addr, size, *stack):
        self.segments[addr] = size
        self.reserved += size
        self.reserved_peak = max(self.reserved, self.reserved_peak)
        self.entry('segment_alloc', addr, size, self.stack(*stack))

    def segment_free(self, addr):
        size = self.segments.pop(addr)
        self.reserved -= size
        self.entry('segment_free', addr, size, [])

    def alloc(self, addr, size, *stack):
        self.live[addr] = (size, self.stack(*stack))
        self.used += (size + 511) // 512 * 512
        self.used_peak = max(self.used, self.used_peak)
        self.entry('alloc', addr, size, self.stack(*stack))

    def free(self, addr):
        size, _ = self.live.pop(addr)
        self.used -= (size + 511) // 512 * 512
        self.entry('free_requested', addr, size, self.stack('backward', 'main'))
        self.entry('free_completed', addr, size, self.stack('backward', 'main'))

    def segment_list(self):
        out = []
        for base, total in sorted(self.segments.items()):
            blocks, at = [], base
            for addr, (size, frames) in sorted(self.live.items()):
                if base <= addr < base + total:
                    if addr > at:
                        blocks.append(dict(address=at, size=addr - at, requested_size=0, state='inactive', frames=[]))
                    taken = (size + 511) // 512 * 512
                    blocks.append(dict(address=addr, size=taken, requested_size=size, state='active_allocated', frames=frames))
                    at = addr + taken
            if at < base + total:
                blocks.append(dict(address=at, size=base + total - at, requested_size=0, state='inactive', frames=[]))
            out.append(dict(device=self.device, address=base, total_size=total, allocated_size=0, active_size=0, stream=0,
                            segment_type='large', segment_pool_id=(0, 0), is_expandable=False, frames=[], blocks=blocks))
        return out


def snapshot(*programs, annotations=()):
    traces = [[] for _ in range(1 + max(p.device for p in programs))]
    for p in programs:
        traces[p.device] = p.trace
    return dict(segments=sum((p.segment_list() for p in programs), []), device_traces=traces,
                allocator_settings=dict(PYTORCH_CUDA_ALLOC_CONF=''), external_annotations=list(annotations))


def training(leak=True, device=0):
    """Weights from before the history; eight steps whose activations come and go; one block a step stays."""
    p, old, new = Program(device), 0x7e0000000000 + (device << 36), 0x7f0000000000 + (device << 36)
    p.recording = False
    p.segment(old, 64 * MIB, 'load', 'main')
    p.alloc(old, 10 * MIB, 'load', 'main')
    p.alloc(old + 10 * MIB, 1000, 'old', 'main')
    p.recording = True
    p.free(old + 10 * MIB)
    p.segment(new, 200 * MIB, 'forward', 'main')
    for step in range(8):
        base = new + (3 * step * MIB if leak else 0)
        if leak:
            p.alloc(base, 3 * MIB, 'append_loss', 'main')
        p.alloc(base + 3 * MIB, 80 * MIB, 'layer1', 'forward', 'main')
        p.alloc(base + 83 * MIB, 40 * MIB - 100, 'layer2', 'forward', 'main')
        p.free(base + 83 * MIB)
        p.free(base + 3 * MIB)
    p.entry('oom', 0, 1 << 36, p.stack('too_large', 'main'), device_free=12345)
    if not leak:
        p.segment_free(new)
    return p


def save(path, value, protocol=4):
    with open(path, 'wb') as f:
        pickle.dump(value, f, protocol=protocol)
    return path
