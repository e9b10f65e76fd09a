# SPDX-License-Identifier: MIT
"""Checks a memory snapshot by the rules that PyTorch's viewer relies on.

The viewer starts from the segments at the end and undoes one event after the other. It fails if a
block lies in no segment, if an undone free has no block, or if a segment is not where it should be.
"""
STATES = ('active_allocated', 'active_pending_free', 'inactive')
MAPS = ('segment_alloc', 'segment_map')
UNMAPS = ('segment_free', 'segment_unmap')


def check_frames(frames):
    for f in frames:
        assert isinstance(f['name'], str) and isinstance(f['filename'], str), f
        assert isinstance(f['line'], int), f


def check_segment(s):
    assert s['address'] + s['total_size'] < 2 ** 53, 'not exact in JavaScript'
    at = s['address']
    for b in s['blocks']:
        assert b['address'] == at and b['size'] > 0 and b['state'] in STATES, b
        assert b['requested_size'] <= b['size'], b
        check_frames(b['frames'])
        at += b['size']
    assert at == s['address'] + s['total_size'], 'blocks do not fill the segment'


class Device:
    """The state of one device, which events are undone in."""

    def __init__(self, snapshot, device):
        mine = [s for s in snapshot['segments'] if s['device'] == device]
        self.segments = {s['address']: (s['total_size'], s['stream']) for s in mine}
        self.blocks = {b['address']: [b['size'], b['state'] == 'active_pending_free']
                       for s in mine for b in s['blocks'] if b['state'] != 'inactive'}

    def segment_of(self, address):
        for base, (size, _) in self.segments.items():
            if base <= address < base + size:
                return base
        raise AssertionError('no segment at %#x' % address)

    def undo_map(self, e):
        end = e['addr'] + e['size']
        base = self.segment_of(e['addr'])
        size, stream = self.segments.pop(base)
        assert end <= base + size
        if e['action'] == 'segment_alloc':
            assert (base, size) == (e['addr'], e['size'])
            return
        assert stream == e['stream']
        if base < e['addr']:
            self.segments[base] = (e['addr'] - base, stream)
        if end < base + size:
            self.segments[end] = (base + size - end, stream)

    def undo_unmap(self, e):
        base, size, stream = e['addr'], e['size'], e['stream']
        if e['action'] == 'segment_unmap':  # neighbours of one stream are one segment
            for at, (length, other) in list(self.segments.items()):
                if other == stream and at + length == base:
                    base, size = at, size + self.segments.pop(at)[0]
                elif other == stream and at == e['addr'] + e['size']:
                    size += self.segments.pop(at)[0]
        self.segments[base] = (size, stream)

    def undo(self, e):
        action = e['action']
        if action == 'alloc':
            assert e['addr'] in self.blocks, 'the block is not there after its allocation'
            del self.blocks[e['addr']]
        elif action == 'free_requested':
            assert self.blocks[e['addr']][1], 'the free was not requested'
            self.blocks[e['addr']][1] = False
        elif action == 'free_completed':
            assert e['addr'] not in self.blocks, 'the block is still there'
            self.blocks[e['addr']] = [e['size'], True]
        elif action in MAPS:
            self.undo_map(e)
        elif action in UNMAPS:
            self.undo_unmap(e)
        else:
            assert action == 'oom' and isinstance(e['device_free'], int), e
        for address in self.blocks:
            self.segment_of(address)

    def used(self):
        return sum(size for size, freed in self.blocks.values() if not freed)


def check(snapshot):
    """Returns the most used bytes of each device, and the bytes in use at the end."""
    peaks, ends = [], []
    for s in snapshot['segments']:
        check_segment(s)
    for device, trace in enumerate(snapshot['device_traces']):
        state = Device(snapshot, device)
        peak = state.used()
        ends.append(peak)
        last = float('inf')
        for e in reversed(trace):
            assert isinstance(e['stream'], int) and e['size'] >= 0 and e['time_us'] <= last, e
            check_frames(e['frames'])
            last = e['time_us']
            state.undo(e)
            peak = max(peak, state.used())
        assert not state.blocks and not state.segments, 'something was there before the first event'
        peaks.append(peak)
    return peaks, ends
