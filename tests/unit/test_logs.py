#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`somashim replay`: what it takes a log for. Blocks from before the log, streams, devices, failures.

    test_logs.py SOMASHIM
"""
import gzip, io, json, os, pickle, shutil, sqlite3, subprocess, sys, tempfile, zipfile

somashim = sys.argv[1]
MIB = 1 << 20
folder = tempfile.mkdtemp(prefix='somashim-logs-')
log = os.path.join(folder, 'log')
HEADER = 'Thread,Time,Action,Pointer,Size,Stream\n'


def equal(got, want, what):
    assert got == want, '%s: %r instead of %r' % (what, got, want)


def replay(*more, status=0):
    done = subprocess.run([somashim, 'replay', *more, log], capture_output=True, text=True, timeout=120)
    equal(done.returncode, status, ' '.join(more) + ': ' + done.stderr)
    return done.stdout, done.stderr


def replay_json(*more, status=0):
    return json.loads(replay('--json', *more, status=status)[0])


def write_snapshot(traces, segments=()):
    with open(log, 'wb') as f:
        pickle.dump({'device_traces': traces, 'segments': list(segments)}, f, protocol=4)


def entry(action, addr, size, **more):
    return dict(action=action, addr=addr, size=size, stream=0, time_us=0, **more)


def block(size, state='active_allocated', **more):
    return dict(size=size, state=state, **more)


def segment(address, blocks, device=0, **more):
    return dict(address=address, total_size=sum(b['size'] for b in blocks), stream=0, device=device, blocks=blocks, **more)


def write_rows(rows, header=True):
    with open(log, 'w') as f:
        f.write(HEADER if header else '')
        for thread, action, pointer, size, stream in rows:
            f.write('%d,00:00:00.0,%s,0x%x,%d,0x%x\n' % (thread, action, pointer, size, stream))


def check_before_the_history():
    # 300 MiB lived all the time, 100 MiB until the trace freed it, 8 MiB is the trace's own.
    trace = [entry('alloc', 0x9000000, 8 * MIB), entry('free_requested', 0x5000000, 100 * MIB),
             entry('free_completed', 0x5000000, 100 * MIB), entry('free_requested', 0x9000000, 8 * MIB),
             entry('free_completed', 0x9000000, 8 * MIB), entry('alloc', 0xa000000, 2 * MIB)]
    own = segment(0xa000000, [block(2 * MIB), block(6 * MIB, 'inactive')])
    write_snapshot([trace], [segment(0x20000000, [block(100 * MIB), block(1 * MIB, 'inactive'), block(200 * MIB)]), own])
    r = replay_json()
    equal((r['before_blocks'], r['before_bytes']), (3, 400 * MIB), 'before')
    equal((r['used_peak'], r['allocations'], r['frees'], r['unknown_frees']), (408 * MIB, 5, 2, 0), 'figures')
    text, _ = replay()
    assert '3 blocks, %d bytes lived before the history' % (400 * MIB) in text, text
    # The size that the program asked for, where the snapshot has it, and addresses of blocks.
    write_snapshot([trace], [segment(0x20000000, [block(4 * MIB, 'inactive', address=0x20000000),
                                                  block(4 * MIB, requested_size=3 * MIB, address=0x20400000)])])
    equal(replay_json()['before_bytes'], 103 * MIB, 'requested size')
    # Freed before the history, but other streams still used it: it took memory all the same.
    write_snapshot([trace[:1]], [segment(0x20000000, [block(4 * MIB, 'active_pending_free'),
                                                      block(5 * MIB, 'active_awaiting_free'), block(6 * MIB, 'inactive')])])
    equal((replay_json()['before_blocks'], replay_json()['before_bytes']), (2, 9 * MIB), 'pending')
    assert 'first a block from before the history: %d bytes' % (4 * MIB) in replay('--vram', '2M', status=1)[1]
    equal(replay_json('--vram', '2M', status=1)['first_failure']['line'], None, 'line')
    # An address that the trace frees and the segments have again was not there before.
    trace = [entry('alloc', 0x1000, 4 * MIB), entry('free_requested', 0x1000, 4 * MIB)]
    write_snapshot([trace], [segment(0x1000, [block(4 * MIB)])])
    equal(replay_json()['before_blocks'], 0, 'after the end of the trace')
    # Freed twice: the second is of no block.
    write_snapshot([trace + trace[1:]])
    equal((replay_json()['before_blocks'], replay_json()['unknown_frees']), (0, 1), 'freed twice')


def check_no_history():
    write_snapshot([[]], [segment(0x1000000, [block(30 * MIB), block(2 * MIB, 'inactive')])])
    r = replay_json()
    equal((r['used_peak'], r['before_blocks']), (30 * MIB, 1), 'no history')
    assert 'which has no history' in replay()[0]
    with open(log, 'wb') as f: # torch.cuda.memory_snapshot() gives the segments alone
        pickle.dump([segment(0x1000000, [block(20 * MIB)])], f, protocol=4)
    equal(replay_json()['used_peak'], 20 * MIB, 'segments alone')
    write_snapshot([[]])
    _, err = replay(status=2)
    assert 'not a memory snapshot' in err, err


def check_devices():
    write_snapshot([[entry('alloc', 0x1000, 1 * MIB)], [entry('alloc', 0x2000, 2 * MIB)]],
                   [segment(0x1000, [block(1 * MIB)]), segment(0x2000, [block(2 * MIB)], device=1),
                    segment(0x9000000, [block(16 * MIB)], device=1)])
    text, err = replay()
    assert 'the snapshot has 2 devices; this is device 0' in err and '--device' in err, err
    equal(replay_json('--device', '0')['used_peak'], 1 * MIB, 'device 0')
    equal(replay_json('--device', '1')['used_peak'], 18 * MIB, 'device 1')
    equal(replay('--device', '1')[1], '', 'no hint where the device is named')
    assert 'no device 2; it has 0, 1' in replay('--device', '2', status=2)[1]
    # Rank 1 of a job: marks of the program stand in the trace of device 0, which it does not use.
    marks = [entry('user_defined', 0, 0), entry('snapshot', 0, 0)] * 20
    write_snapshot([marks, [], [entry('alloc', 0x2000, 2 * MIB)], []], [segment(0x2000, [block(2 * MIB)], device=2)])
    equal((replay_json()['used_peak'], replay()[1]), (2 * MIB, ''), 'rank 1')
    assert 'no device 0; it has 2' in replay('--device', '0', status=2)[1]
    # The longest history, of several.
    some = [entry('alloc', 0x1000, 1 * MIB), entry('free_requested', 0x1000, 1 * MIB)]
    write_snapshot([some, some * 2])
    text, err = replay()
    assert 'the snapshot has 2 devices; this is device 1' in err, err


def check_repeated():
    # One segment, or its list of blocks, that is referred to again and again: thousands times thousands.
    blocks = [block(512) for i in range(20000)]
    one = segment(0x1000000, blocks)
    for many in ([one] * 20000, [dict(one, address=0x1000000 + i * (1 << 32)) for i in range(20000)]):
        write_snapshot([[]], many)
        assert 'its addresses occur twice' in replay(status=2)[1]


def write_zip(name, data, outer=None):
    """As torch.save() does: a zip of stored members."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w') as z:
        z.writestr(name, data)
        z.writestr('snapshot/version', '3')
    with open(log, 'wb') as f:
        f.write(outer(packed.getvalue()) if outer else packed.getvalue())


def check_packed():
    """What PyTorch and others write is read, or named for what it is."""
    snapshot = pickle.dumps({'device_traces': [[entry('alloc', 0x2000, 2 * MIB)]], 'segments': []}, protocol=2)
    if shutil.which('unzip'):
        for data, outer in ((snapshot, None), (gzip.compress(snapshot), None), (snapshot, gzip.compress)):
            write_zip('snapshot/data.pkl', data, outer)
            equal(replay_json()['used_peak'], 2 * MIB, 'torch.save')
            with open(log, 'rb') as f:
                done = subprocess.run([somashim, 'replay', '--json', '-'], stdin=f, capture_output=True)
            equal(json.loads(done.stdout)['used_peak'], 2 * MIB, 'torch.save, standard input')
        write_zip('other', snapshot)
        assert "unzip -p FILE '*data.pkl' failed" in replay(status=2)[1]
    with open(log, 'wb') as f:
        f.write(gzip.compress(gzip.compress(snapshot)))
    equal(replay_json()['used_peak'], 2 * MIB, 'gzip in gzip')
    with open(log, 'wb') as f:
        for i in range(4):
            snapshot = gzip.compress(snapshot)
        f.write(snapshot)
    assert 'packed more than 3 times' in replay(status=2)[1]
    os.unlink(log)
    database = sqlite3.connect(log)
    database.execute('create table kernels (id integer)')
    database.close()
    assert 'an SQLite database' in replay(status=2)[1]
    done = subprocess.run([somashim, 'report', log], capture_output=True, text=True)
    assert done.returncode == 2 and 'an SQLite database' in done.stderr, done
    os.unlink(log)


def check_rows():
    # Blocks from before the log: the size stands in the row of the free.
    write_rows([(1, 'free', 0x1000, 64 * MIB, 0), (1, 'allocate', 0x1000, 2 * MIB, 0), (1, 'free', 0x1000, 2 * MIB, 0)])
    r = replay_json()
    equal((r['before_blocks'], r['before_bytes'], r['used_peak'], r['frees']), (1, 64 * MIB, 64 * MIB, 2), 'rows')
    # One without a size is skipped.
    write_rows([(1, 'free', 0x1000, 0, 0), (1, 'allocate', 0x1000, 2 * MIB, 0)])
    r = replay_json()
    equal((r['before_blocks'], r['unknown_frees']), (0, 1), 'no size')
    # Without a header the columns are RMM's.
    rows = [(1, 'allocate', 0x1000, 2 * MIB, 0), (1, 'free', 0x1000, 2 * MIB, 0), (1, 'allocate', 0x2000, 1 * MIB, 0)]
    write_rows(rows, header=False)
    r = replay_json()
    equal((r['allocations'], r['frees'], r['used_peak']), (2, 1, 2 * MIB), 'no header')
    # Failures of the program are counted.
    write_rows(rows + [(1, 'allocate failure', 0, 1 << 40, 0)] * 3)
    equal(replay_json()['failures_in_log'], 3, 'failures')
    assert '3 allocations failed in the program' in replay()[0]


def check_streams():
    # Each thread has its own stream behind hipStreamPerThread, and hipStreamLegacy is the null stream.
    write_rows([(t, 'allocate', 0x1000 * t, MIB, 2) for t in range(1, 9)])
    equal(replay_json()['streams'], 8, 'per thread')
    write_rows([(1, 'allocate', 0x1000, MIB, 0), (2, 'allocate', 0x2000, MIB, 1), (1, 'allocate', 0x3000, MIB, 0x70)])
    equal(replay_json()['streams'], 2, 'legacy')


def check_failures():
    # 30 MiB are live when 20 MiB do not fit in 40, with a hole of 10 MiB between the blocks.
    rows = [(1, 'allocate', 0x1000 * i, 10 * MIB, 0) for i in range(1, 5)]
    write_rows(rows + [(1, 'free', 0x2000, 10 * MIB, 0), (1, 'allocate', 0x9000, 20 * MIB, 0)])
    r = replay_json('--vram', '40M', '--backing', 'hip', status=1)
    equal(r['first_failure'], {'line': 7, 'size': 20 * MIB, 'live': 30 * MIB, 'largest_hole': 10 * MIB}, 'failure')
    assert 'first in line 7: %d bytes with %d live' % (20 * MIB, 30 * MIB) in replay('--vram', '40M', status=1)[1]
    # The smallest device: one step less fails.
    for backing in 'hip', 'hsa', 'vmm':
        r = replay_json('--fit', '--backing', backing)
        equal((r['failed'], r['first_failure']), (0, None), backing)
        assert r['used_peak'] <= r['vram'] <= r['reserved_peak'] + 2 * MIB, (backing, r)
        assert replay_json('--vram', str(r['vram'] - 2 * MIB), '--backing', backing, status=1)['failed']
    assert 'smallest device  %d bytes' % r['vram'] in replay('--fit', '--backing', 'vmm')[0]
    replay('--fit', '--vram', '40M', status=2)


check_before_the_history()
check_failures()
check_no_history()
check_devices()
check_repeated()
check_packed()
check_rows()
check_streams()
