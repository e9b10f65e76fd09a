#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`somashim report` and `convert` of memory snapshots of PyTorch: exact figures, the Python stacks, hostile files.

    test_snapshot.py SOMASHIM
"""
import json, os, pickle, random, re, shutil, subprocess, sys, tempfile, time, zipfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory_viz
from torch_snapshot import MIB, Program, save, snapshot, training

somashim = os.path.realpath(sys.argv[1])
folder = tempfile.mkdtemp(prefix='somashim-snapshot-')
os.chdir(folder)
os.mkdir('tmp')
os.environ['TMPDIR'] = os.path.join(folder, 'tmp')


def run(*args, status=0, timeout=60):
    done = subprocess.run([somashim, *args], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == status, (args, done.returncode, done.stderr[:2000])
    assert not os.listdir('tmp'), 'a temporary file is left'
    return done


def report(*args):
    return json.loads(run('report', '--json', *args).stdout)


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


def names(process, site):
    return [f['function'] for f in next(s for s in process['sites'] if s['site'] == site)['frames']]


def test_figures():
    p = training()
    save('a.pickle', snapshot(p))
    one = report('a.pickle')['processes'][0]
    d = one['devices'][0]
    equal(d['used_peak']['used'], p.used_peak, 'used peak')
    equal(d['reserved_peak']['reserved'], p.reserved_peak, 'reserved peak')
    equal(d['end']['used'], p.used, 'used at the end')
    equal(d['end']['reserved'], p.reserved, 'reserved at the end')
    equal((one['allocations'], one['frees']), (24, 17), 'allocations and frees')
    equal((one['lived_blocks'], one['lived_bytes']), (2, 10 * MIB + 1024), 'what lived before')
    equal(d['in_flight_peak']['in_flight'], 80 * MIB, 'in flight')
    held = [(names(one, h['site'])[0], h['bytes'], h['blocks']) for h in d['at_used_peak']['holders']]
    equal(held, [('layer1', 80 * MIB, 1), ('layer2', 40 * MIB, 1), ('append_loss', 24 * MIB, 8), ('load', 10 * MIB, 1)], 'holders')
    leak = one['rankings']['never_freed']
    equal([names(one, s) for s in leak], [['append_loss', 'main'], ['load', 'main']], 'live at the end')
    site = next(s for s in one['sites'] if s['site'] == leak[0])
    equal([(f['function'], f['source'], f['line']) for f in site['frames']],
          [('append_loss', 'train.py', 10), ('main', 'train.py', 11)], 'frames')
    assert site['grows']
    equal([(f['request'], f['device_free'], names(one, f['site'])[0]) for f in one['failures']], [(1 << 36, 12345, 'too_large')], 'failures')
    equal(one['begin_ns'] // 1000000, p.trace[0]['time_us'] // 1000, 'begin')
    text = run('report', 'a.pickle').stdout
    assert 'a program of PyTorch' in text and 'recording: memory snapshot of PyTorch' in text, text[:500]
    assert re.search(r'Live at the end of the snapshot\n.*\n +8 +24.00 MiB +3.00 MiB .*still growing: append_loss \(train.py:10\) < main', text), text
    page = run('report', '-o', '-', 'a.pickle').stdout
    assert '"append_loss"' in page


def test_ways():
    """Packed, in a folder, of several devices, older ones, segments alone, several protocols."""
    p, q = training(), training(leak=False, device=2)
    for protocol in (2, 3, 4, 5):
        save('p%d' % protocol, snapshot(p), protocol)
        equal(report('p%d' % protocol)['processes'][0]['devices'][0]['used_peak']['used'], p.used_peak, protocol)
    if shutil.which('xz'):
        subprocess.run(['xz', '-k', 'p4'], check=True)
        equal(report('p4.xz')['processes'][0]['devices'][0]['used_peak']['used'], p.used_peak, 'xz')
    if shutil.which('unzip'):
        with zipfile.ZipFile('p4.pt', 'w') as z:
            z.write('p4', 'archive/data.pkl')
        equal(report('p4.pt')['processes'][0]['devices'][0]['used_peak']['used'], p.used_peak, 'torch.save')
    save('two', snapshot(p, q))
    devices = report('two')['processes'][0]['devices']
    equal([(d['device'], d['used_peak']['used'], d['end']['reserved']) for d in devices],
          [(0, p.used_peak, p.reserved), (2, q.used_peak, q.reserved)], 'two devices')
    old = snapshot(p)
    for t in old['device_traces']:
        for e in t:
            del e['time_us']
    for s in old['segments']:
        for b in s['blocks']:
            del b['address']
            b['history'] = [dict(addr=0, real_size=0, frames=b.pop('frames'))]
    save('old', old)
    d = report('old')['processes'][0]['devices'][0]
    equal((d['used_peak']['used'], d['end']['used']), (p.used_peak, p.used), 'older')
    save('list', snapshot(p)['segments'])
    one = report('list')['processes'][0]
    equal(one['devices'][0]['end']['used'], p.used, 'segments alone')
    equal(sorted(names(one, s)[0] for s in one['rankings']['never_freed']), ['append_loss', 'load'], 'their stacks')
    os.mkdir('dir')
    for name in 'a', 'b':
        shutil.copy('p4', 'dir/' + name)
    equal(len(report('dir')['processes']), 2, 'folder')
    save('less', snapshot(training(leak=False)))
    d = json.loads(run('report', '--json', '--diff', 'less', 'p4').stdout)['difference']
    equal([(s['name'].split(' ')[0], s['live'][1] - s['live'][0]) for s in d['sites'] if s['live'][0] != s['live'][1]],
          [('append_loss', 24 * MIB)], 'difference')
    assert 'peak>1%: ' in run('report', '--fail-if', 'peak>1%', '--diff', 'less', 'p4', status=1).stderr


def test_expandable():
    """Segments that grow and shrink by mapping, of which some was there before."""
    base, p = 0x7f2000000000, Program()
    p.recording = False
    p.segments[base] = 20 * MIB
    p.reserved = 20 * MIB
    p.recording = True
    p.entry('segment_unmap', base, 10 * MIB, [])
    p.entry('segment_map', base + 20 * MIB, 40 * MIB, [])
    p.entry('segment_map', base, 10 * MIB, [])
    p.entry('segment_unmap', base + 50 * MIB, 10 * MIB, [])
    p.segments = {base: 50 * MIB}
    save('expandable', snapshot(p))
    d = report('expandable')['processes'][0]['devices'][0]
    equal((d['reserved_peak']['reserved'], d['end']['reserved']), (60 * MIB, 50 * MIB), 'reserved')


def test_annotations():
    p = training()
    t = p.trace[0]['time_us']
    marks = [dict(stage=s, name='step', device=0, time_us=t + us) for s, us in (('START', 150), ('END', 900))]
    save('marks', snapshot(p, annotations=marks))
    one = report('marks')['processes'][0]
    equal([(x['name'], x['count']) for x in one.get('phases', [])], [('step', 1)], 'phases')


def test_convert():
    p = training()
    save('c', snapshot(p))
    viz = json.loads(run('convert', '--to', 'memory_viz', 'c').stdout)
    peaks, ends = memory_viz.check(viz)
    equal((peaks[0], ends[0]), (p.used_peak, p.used), 'memory_viz of a snapshot')
    folded = run('convert', '--to', 'folded', 'c').stdout
    assert re.search(r'^main \(train.py:12\);forward \(train.py:11\);layer1 \(train.py:10\) %d$' % (80 * MIB), folded, re.M) or \
        re.search(r'^main;forward;layer1 %d$' % (80 * MIB), folded, re.M), folded


def test_replay():
    """What PyTorch had reserved stands beside what the pools need."""
    for p in training(), training(leak=False):
        save('r', snapshot(p))
        text, one = run('replay', 'r').stdout, json.loads(run('replay', '--json', 'r').stdout)
        equal(one['program_reserved_peak'], p.reserved_peak, 'reserved')
        assert re.search(r"^PyTorch's peak +%d bytes reserved in the program itself, " % p.reserved_peak, text, re.M), text
    for entry in dict(action='segment_free', addr=0, size=(1 << 63) - 1), dict(action='segment_alloc', addr=0, size=-1):
        save('r', dict(device_traces=[[entry] * 9 + p.trace], segments=[]))
        run('replay', 'r')


def test_hostile():
    """Each file ends soon: with figures, or with one line that says why not."""
    good = pickle.dumps(snapshot(training()), protocol=4)
    rng = random.Random(1)
    for n in range(40):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = data[:rng.randrange(len(data))] if n % 3 == 0 else data
        data[:2] = good[:2]
        with open('bad', 'wb') as f:
            f.write(data)
        done = subprocess.run([somashim, 'report', '--json', 'bad'], capture_output=True, timeout=20)
        assert done.returncode in (0, 2), (n, done.returncode, done.stderr[:500])
        assert done.returncode == 0 or done.stderr.count(b'\n') == 1, (n, done.stderr)
        assert not os.listdir('tmp')
    p = training()
    frames = [dict(name='f%d' % i, filename='x' * 100000, line=i) for i in range(5000)]
    many = [dict(action='alloc', addr=512 * i, size=512, stream=i, time_us=i, frames=frames) for i in range(6000)]
    shared = dict(device=0, address=0, total_size=512, stream=0, blocks=[dict(address=0, size=512, state='active_allocated')])
    maps = sum(([dict(action='segment_map', addr=2 * i, size=1), dict(action='segment_map', addr=0, size=1 << 40)] for i in range(3000)), [])
    ends = [dict(action=a, addr=(1 << 64) - 100, size=1 << 63, stream=-1, time_us=(1 << 63) - 1, frames=7)
            for a in ('segment_alloc', 'alloc', 'free_requested', 'free_completed', 'segment_free', 'oom')]
    for value, status in (
            (dict(device_traces=[many], segments=[]), 0), (dict(device_traces=[many] * 64, segments=[]), 2),
            (dict(device_traces=[[]] * 1000, segments=[shared]), 2), (dict(device_traces=[], segments=[shared] * 10000), 2),
            (dict(device_traces=[maps], segments=[]), 0), (dict(device_traces=[ends], segments=[]), 0),
            (dict(device_traces=[[{str(i): i for i in range(1000)}]], segments=[]), 2), (dict(a=1), 2), ([], 2), (7, 2),
            (dict(device_traces=[[dict(action=1)]]), 2), (dict(device_traces=[[7]]), 2), (dict(segments=[dict(address=1, device=99)]), 2),
            (dict(device_traces=7, segments='x'), 2)):
        save('bad', value)
        begin = time.monotonic()
        done = subprocess.run([somashim, 'report', '--top', '1', 'bad'], capture_output=True, timeout=60)
        assert done.returncode == status, (str(value)[:100], done.returncode, done.stderr[:500])
    run('report', 'bad', status=2)
    run('convert', '--to', 'folded', 'bad', status=2)


try:
    for name, test in sorted(globals().items()):
        if name.startswith('test_'):
            print(name, flush=True)
            test()
finally:
    os.chdir('/')
    shutil.rmtree(folder)
