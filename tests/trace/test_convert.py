#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`somashim convert`: each format has the figures of the report.

    test_convert.py SOMASHIM MAKE_TRACE FORMAT     exits 77 if the format's own tool is missing

scripts/viewers.sh brings the tools that Debian does not have.
"""
import base64, gzip, json, os, re, shutil, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
VIEWERS = os.path.join(HERE, '..', '..', 'build-viewers')
sys.path.insert(0, HERE)
import browser, memory_viz

MIB = 1 << 20
somashim, make_trace, chosen = sys.argv[1:4]
folder = tempfile.mkdtemp(prefix='somashim-convert-')


def path(name):
    return os.path.join(folder, name)


def run(*args, status=0, **more):
    done = subprocess.run(args, capture_output=True, timeout=300, **more)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done


def convert(form, name, *more, status=0):
    done = run(somashim, 'convert', '--to', form, *more, path(name), status=status)
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def report(name):
    return json.loads(run(somashim, 'report', '--json', path(name)).stdout)['processes'][0]


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


def devices(name, key):
    by = {d['device']: d for d in report(name)['devices']}
    return [by[i][key] for i in sorted(by)]


def check_memory_viz():
    snapshot = json.loads(convert('memory_viz', 'known'))
    peaks, ends = memory_viz.check(snapshot)
    equal([p / MIB for p in peaks], [50, 4], 'peaks')
    equal([e / MIB for e in ends], [10, 4], 'ends')
    actions = [e['action'] for e in snapshot['device_traces'][0]]
    equal({a: actions.count(a) for a in set(actions)},
          {'alloc': 24, 'free_requested': 23, 'free_completed': 22, 'segment_alloc': 2,
           'segment_map': 1, 'segment_unmap': 1, 'oom': 1}, 'actions')
    pending = [b for s in snapshot['segments'] for b in s['blocks']
               if b['state'] == 'active_pending_free']
    equal([(b['size'] // MIB) for b in pending], [2], 'in flight')
    equal([s['segment_pool_id'][0] != 0 for s in snapshot['segments']], [False, True, False], 'pools')
    mesh = snapshot['segments'][0]['blocks'][0]
    assert 'load_mesh' in [f['name'] for f in mesh['frames']]

    snapshot = json.loads(convert('memory_viz', 'random'))
    peaks, ends = memory_viz.check(snapshot)
    equal(peaks, [p['used'] for p in devices('random', 'used_peak')], 'peaks')
    equal(ends, [e['used'] for e in devices('random', 'end')], 'ends')
    only = json.loads(convert('memory_viz', 'random', '--device', '1'))
    equal((only['device_traces'][0], len(only['device_traces'][1])),
          ([], len(snapshot['device_traces'][1])), 'one device')


def check_heaptrack():
    interpret = '/usr/lib/heaptrack/libexec/heaptrack_interpret'
    if not os.path.exists(interpret) or not shutil.which('heaptrack_print'):
        return 77
    assert '--device' in convert('heaptrack', 'known', status=2)
    convert('heaptrack', 'known', '-o', path('all'))
    for device, peak, leak, calls in ((0, '52.43M', '10.49M', 24), (1, '4.19M', '4.19M', 1)):
        with open(path('all.gpu%d' % device), 'rb') as raw, gzip.open(path('heap.gz'), 'wb') as out:
            out.write(run(interpret, stdin=raw).stdout)
        text = run('heaptrack_print', path('heap.gz'), '-l', '1').stdout.decode()
        for part in ('peak heap memory consumption: ' + peak, 'total memory leaked: ' + leak,
                     'calls to allocation functions: %d ' % calls,
                     'load_mesh' if device == 0 else 'exchange', 'make_trace.c:'):
            assert part in text, (part, text[-2000:])
        reserved = (128, 8)[device] * MIB / 1e6
        assert 'peak RSS (including heaptrack overhead): %.2fM' % reserved in text
        out = path('peak.txt')
        run('heaptrack_print', path('heap.gz'), '-F', out, '--flamegraph-cost-type', 'peak')
        with open(out) as f:
            equal(sum(int(line.rsplit(' ', 1)[1]) for line in f), (50, 4)[device] * MIB, 'flame graph')


def check_perfetto():
    data = json.loads(convert('perfetto', 'known'))
    events = data['traceEvents']
    used, asked, slices = {}, [], {}
    for e in events:
        assert e['ph'] in 'MCibeX' and isinstance(e['pid'], int) and e['ts'] >= 0, e
        if e['ph'] == 'C':
            used[e['name']] = max(used.get(e['name'], 0), e['args']['used'])
            assert set(e['args']) == {'used', 'reserved', 'free_in_flight'}
        elif e['ph'] == 'i':
            equal((e['name'], e['args']), ('out of memory', {'asked': 100 * MIB, 'free': MIB}), 'i')
            asked.append(e)
        elif e['ph'] in 'be':  # each slice that ends has begun
            key = e['cat'], e['id2']['local']
            slices[key] = slices.get(key, 0) + (1 if e['ph'] == 'b' else -1)
            assert slices[key] in (0, 1), e
    equal({k: v / MIB for k, v in used.items()}, {'GPU0': 50, 'GPU1': 4}, 'peaks')
    equal(len(asked), 1, 'failures')
    equal(sum(n for (cat, _), n in slices.items() if cat == 'block'), 2, 'blocks that never end')
    equal(sum(n for (cat, _), n in slices.items() if cat == 'in flight'), 1, 'in flight at the end')
    equal(sorted((e['name'], e['dur']) for e in events if e['ph'] == 'X'),
          [('driver: memory is mapped', 2000), ('hipFree waits for the device', 5000)], 'waits')
    other = json.loads(convert('perfetto', 'known', '--device', '1'))['traceEvents']
    equal({e['ph'] for e in other}, {'M', 'C', 'b'}, 'the other device has no waits and no failures')
    one = json.loads(convert('perfetto', 'known', '--device', '0'))['traceEvents']
    equal(sorted(e['ph'] for e in one if e['ph'] in 'iX'), ['X', 'X', 'i'], 'those of the first device')
    names = [e['args']['name'] for e in events if e['name'] == 'process_name']
    assert len(names) == 1 and 'make_trace' in names[0]
    times = [e['ts'] for e in events if e['ph'] in 'Cbei']
    equal(times, sorted(times), 'order')


def ask(trace, *queries):
    """Rows of the queries, each a dictionary, from Perfetto's trace processor."""
    engine = os.path.join(VIEWERS, 'trace-processor')
    out = run('node', os.path.join(HERE, 'perfetto.mjs'), engine, trace, *queries).stdout.decode()
    return json.loads(out.splitlines()[-1])


def check_trace_processor():
    """What Perfetto itself makes of the trace of one process, and of two that are opened together."""
    if not shutil.which('node') or not os.path.exists(os.path.join(VIEWERS, 'trace-processor')):
        return 77
    problems = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    lives = ("select pid, category, count(*) as blocks, sum(dur = -1) as open, max(depth) as depth "
             "from slice join process_track on track_id = process_track.id join process using (upid) "
             "where category is not null group by pid, category order by category")
    convert('perfetto', 'known', '-o', path('one.json'))
    wrong, levels, failures, waits, blocks = ask(
        path('one.json'), problems,
        'select name, max(value) as most from counter join counter_track '
        'on counter.track_id = counter_track.id group by name order by name',
        "select s.name, int_value from slice s join args using (arg_set_id) "
        "where s.name = 'out of memory' and key like '%asked'",
        'select slice.name, dur from slice join thread_track on track_id = thread_track.id '
        "where slice.name != 'out of memory' order by dur", lives)
    equal(wrong, [], 'problems')
    equal({row['name']: row['most'] / MIB for row in levels},
          {'GPU0 used': 50, 'GPU0 reserved': 128, 'GPU0 free_in_flight': 22,
           'GPU1 used': 4, 'GPU1 reserved': 8, 'GPU1 free_in_flight': 0}, 'counters')
    equal(failures, [{'name': 'out of memory', 'int_value': 100 * MIB}], 'failures')
    equal(waits, [{'name': 'driver: memory is mapped', 'dur': 2000000},
                  {'name': 'hipFree waits for the device', 'dur': 5000000}], 'waits')
    equal([(row['category'], row['blocks'], row['open'], row['depth']) for row in blocks],
          [('block', 25, 2, 0), ('in flight', 2, 1, 0)], 'lives of blocks')

    events, want = [], {}
    for name in ('random', 'other'):
        events += json.loads(convert('perfetto', name))['traceEvents']
    for e in events:
        if e['ph'] in 'be':
            blocks, still = want.get((e['pid'], e['cat']), (0, 0))
            want[e['pid'], e['cat']] = (blocks + 1, still + 1) if e['ph'] == 'b' else (blocks, still - 1)
    with open(path('both.json'), 'w') as f:
        json.dump({'traceEvents': events}, f)
    wrong, blocks = ask(path('both.json'), problems, lives)
    equal(wrong, [], 'problems of two processes')
    equal({(row['pid'], row['category']): (row['blocks'], row['open']) for row in blocks}, want,
          'two processes')
    equal(len(want), 4, 'processes and categories')


def folded(*more):
    out = {}
    for line in convert('folded', 'known', *more).splitlines():
        match = re.fullmatch(r'([^;]+(?:;[^;]+)*) (\d+)', line)
        assert match, line
        out[match[1]] = int(match[2])
    return out


def check_folded():
    peak = folded()
    equal(sorted(v // MIB for v in peak.values()), [4, 10, 40], 'peak')
    stack = next(s for s in peak if 'load_mesh' in s).split(';')
    # Frames that only start the program are left out.
    equal([re.sub(r' \(make_trace\.c:\d+\)$', '', f) for f in stack[:4]], ['GPU 0', 'main', 'run_known', 'load_mesh'], 'stack')
    # Each call is a frame of its own.
    equal(len({f for s in peak for f in s.split(';') if f.startswith('run_known (make_trace.c:')}), 3, 'lines')
    one = folded('--device', '1')
    equal(list(one.values()), [4 * MIB], 'one device')
    equal(sorted(v // MIB for v in folded('--value', 'leaks').values()), [4, 10], 'leaks')
    equal(sorted(v // MIB for v in folded('--value', 'total').values()), [2, 4, 10, 20, 20, 40], 'total')


def check_speedscope():
    """The table of speedscope's own page has the totals of the stacks."""
    page = os.path.join(VIEWERS, 'speedscope', 'index.html')
    if not browser.find() or not os.path.exists(page):
        return 77
    want = {}
    for stack, size in folded().items():
        for name in set(stack.split(';')):
            want[name] = want.get(name, 0) + size
    convert('folded', 'known', '-o', path('known.folded'))
    with open(path('known.folded'), 'rb') as f, open(path('load.js'), 'w') as script:
        script.write('speedscope.loadFileFromBase64("known.folded", "%s")'
                     % base64.b64encode(f.read()).decode())
    b = browser.Browser()
    try:
        b.open('file://%s#view=sandwich&localProfilePath=%s' % (os.path.abspath(page), path('load.js')))
        end = time.monotonic() + 120
        while not b.evaluate('document.querySelector("tr td") !== null'):
            assert time.monotonic() < end, 'the table does not appear'
            time.sleep(0.1)
        rows = b.evaluate('[...document.querySelectorAll("tr")].map('
                          'r => [...r.querySelectorAll("td")].map(c => c.innerText))')
    finally:
        b.close()
    got = {row[2].strip(): int(row[0].split()[0].replace(',', '')) for row in rows if len(row) == 3}
    equal(got, want, 'totals')


def check_rmm():
    for name, device in (('known', '0'), ('random', '1')):
        with open(path('log'), 'w') as f:
            f.write(convert('rmm', name, '--device', device))
        replay = json.loads(run(somashim, 'replay', '--json', path('log')).stdout)
        device = next(d for d in report(name)['devices'] if d['device'] == (name == 'random'))
        equal((replay['allocations'], replay['frees'], replay['unknown_frees'], replay['failed']),
              (device['allocations'], device['frees'], 0, 0), name)
        if name == 'known':
            equal(replay['used_peak'], 50 * MIB, 'used peak')
        equal(replay['streams'], 2, 'streams, each thread has one behind hipStreamPerThread')
    with open(path('log')) as f:
        equal(f.readline(), 'Thread,Time,Action,Pointer,Size,Stream\n', 'header')
    assert ',allocate failure,0x0,%d,' % (100 * MIB) in convert('rmm', 'known')


def check_bad():
    """Nothing is left behind when the input or the output is bad."""
    with open(path('foreign'), 'wb') as f:
        f.write(b'x' * 1000)
    error = convert('rmm', 'foreign', '-o', path('out'), status=2)
    assert error.startswith('somashim: convert: ' + path('foreign')) and error.count('\n') == 1
    assert not os.path.exists(path('out'))
    # Nor is anything lost: what is read is not written, and what was there stays.
    shutil.copy(path('known'), path('own'))
    os.symlink('own', path('alias'))
    os.link(path('own'), path('own.gpu0'))
    with open(path('own'), 'rb') as f:
        good = f.read()
    for out in ('own', 'alias'):
        assert 'is what it reads' in convert('folded', 'own', '-o', path(out), status=2)
    # "-" is standard output, of which a format of one device cannot make several.
    equal(convert('folded', 'known', '-o', '-'), convert('folded', 'known'), '-o -')
    assert 'choose with --device' in convert('heaptrack', 'known', '-o', '-', status=2)
    assert not [name for name in os.listdir('.') if name.startswith('-')]
    assert 'own.gpu0: it' in convert('heaptrack', 'own', '-o', path('own'), status=2)
    run(somashim, 'report', '-o', path('alias'), path('known'), path('own'), status=2)
    with open(path('own'), 'rb') as f:
        assert f.read() == good
    for name in ('none', 'foreign'):
        with open(path('kept'), 'w') as f:
            f.write('mine')
        convert('rmm', name, '-o', path('kept'), status=2)
        with open(path('kept')) as f:
            equal(f.read(), 'mine', 'a file that was there')
    # Damage is told in one line, and what is good is written.
    bad = bytearray(good)
    at = bad.index(b'default') - 24
    bad[at + 1] = 0  # the length of the pool's definition
    with open(path('damaged'), 'wb') as f:
        f.write(bad)
    for form, more in (('rmm', ()), ('folded', ()), ('heaptrack', ('-o', path('two')))):
        done = run(somashim, 'convert', '--to', form, *more, path('damaged'))
        error = done.stderr.decode()
        assert 'offset %d: ' % at in error and error.count('\n') == 1, (form, error)
    convert('nothing', 'known', status=2)
    assert '/dev/full' in convert('perfetto', 'known', '-o', '/dev/full', status=2)
    run(somashim, 'convert', path('known'), status=2)
    # An option that would change nothing is refused.
    for value in ('leaks', 'total'):
        assert '--device' in convert('folded', 'known', '--value', value, '--device', '0', status=2)
    assert '--value' in convert('rmm', 'known', '--value', 'leaks', status=2)


try:
    run(make_trace, 'known', path('known'))
    run(make_trace, 'random', path('random'), '4000')
    run(make_trace, 'random', path('other'), '4000')
    status = globals()['check_' + chosen]()
finally:
    shutil.rmtree(folder)
sys.exit(status)
