#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What other allocators take for an allocation log: PyTorch's caching allocator and RMM's pool, those that are installed.
scripts/gpu.sh runs it beside the replays.

    peers.py LOG.csv ...          a line "LOG<tab>PEER<tab>TAKEN/USED" for each log and peer

LOG is an RMM CSV. Each stream of the log is a stream. The device has no work, so that memory is at its least, and there is no time,
because it would be Python's. Each peer runs in a process of its own, which starts with nothing. Exits 1 if one fails.
"""
import csv, multiprocessing, os, sys


def read(path):
    """The log as (size, block, stream); size 0 is a free. And the most bytes that were live."""
    ops, live, used, peak = [], {}, 0, 0
    with open(path, newline='') as file:
        for row in csv.DictReader(file):
            pointer, stream = row['Pointer'], row['Stream']
            if row['Action'] == 'allocate' and int(row['Size']):
                live[pointer] = len(ops), int(row['Size'])
                used += int(row['Size'])
                peak = max(peak, used)
                ops.append((int(row['Size']), len(ops), stream))
            elif row['Action'] == 'free' and pointer in live:
                block, size = live.pop(pointer)
                used -= size
                ops.append((0, block, stream))
    return ops, peak


class PyTorch:
    """A block returns to the stream where it was allocated."""

    def __init__(self):
        import torch
        self.torch = torch
        torch.cuda.init()

    def stream(self):
        return self.torch.cuda.Stream()

    def allocate(self, size, stream):
        return self.torch.cuda.caching_allocator_alloc(size, 0, stream)

    def free(self, block, size, stream):
        self.torch.cuda.caching_allocator_delete(block)

    def taken(self):
        return self.torch.cuda.max_memory_reserved(0)


class Rmm:
    """A pool above cudaMalloc, whose own bytes are counted."""

    def __init__(self):
        import rmm
        self.upstream = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaMemoryResource())
        self.pool = rmm.mr.PoolMemoryResource(self.upstream, initial_pool_size=1 << 21)

    def stream(self):
        from rmm.pylibrmm.stream import Stream
        return Stream()

    def allocate(self, size, stream):
        return self.pool.allocate(size, stream)

    def free(self, block, size, stream):
        self.pool.deallocate(block, size, stream)

    def taken(self):
        return self.upstream.allocation_counts.peak_bytes


PEERS = {'PyTorch': ('torch', PyTorch), 'RMM pool': ('rmm', Rmm)}


def replay(name, path):
    ops, peak = read(path)
    peer, streams, live = PEERS[name][1](), {}, {}
    for size, block, on in ops:
        if on not in streams:
            streams[on] = peer.stream()
        if size:
            live[block] = peer.allocate(size, streams[on]), size
        else:
            peer.free(*live.pop(block), streams[on])
    print('%s\t%s\t%.3f' % (os.path.basename(path)[:-4], name, peer.taken() / peak), flush=True)


def installed(module):
    from importlib.util import find_spec
    return find_spec(module) is not None


def main():
    bad = 0
    for name, (module, _) in PEERS.items():
        if not installed(module):
            continue
        for path in sys.argv[1:]:
            process = multiprocessing.get_context('spawn').Process(target=replay, args=(name, path))
            process.start()
            process.join()
            bad += process.exitcode != 0
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
