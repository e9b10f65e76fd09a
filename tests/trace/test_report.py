#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`somashim report`: exact figures of a trace of which everything is known (make_trace.c).

    test_report.py SOMASHIM MAKE_TRACE
"""
import json, os, re, shutil, subprocess, sys, tempfile

MIB = 1 << 20
NO_PLURAL = ('process', 'is', 's')
somashim, make_trace = sys.argv[1:3]
folder = tempfile.mkdtemp(prefix='somashim-report-')
for name in list(os.environ):
    if name.startswith(('SLURM_', 'OMPI_', 'PMI', 'FLUX_', 'SOMASHIM_')):
        del os.environ[name]


def path(name):
    return os.path.join(folder, name)


def make(kind, name, *more, **env):
    subprocess.run([make_trace, kind, path(name), *more], check=True, env=dict(os.environ, **env))
    return path(name)


def run(*args, status=0):
    done = subprocess.run([somashim, 'report', *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    for line in (done.stdout + done.stderr).splitlines():
        number = '--json' not in args and re.search(r'(^|[ ;,(])1 (more )?(call )?[a-z]+s\b', line)
        assert not number or number[0].split()[-1] in NO_PLURAL, line
    return done


def report(*args):
    return json.loads(run('--json', *args).stdout)


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


class Process:
    def __init__(self, data):
        self.data = data
        self.sites = {s['site']: s for s in data['sites']}

    def by(self, function):
        """The site whose stack has this function."""
        found = [s for s in self.sites.values()
                 if any(f['function'] == function for f in s['frames'])]
        assert len(found) == 1, (function, found)
        return found[0]

    def functions(self, holders):
        """Which of the test's functions hold how many bytes, in order."""
        names = ('load_mesh', 'assemble', 'smooth', 'write_output', 'exchange', 'solve')
        return [(f['function'], h['bytes'] // MIB, h['blocks']) for h in holders
                for f in self.sites[h['site']]['frames'] if f['function'] in names]


def level(o):
    return [o[k] / MIB for k in ('asked', 'used', 'in_flight', 'reserved')]


def test_groups():
    """--by puts blocks together. A wrapper through which all call sites go is no group."""
    one = make('many', 'many-sites')
    mib = lambda by: {s['name']: s['peak'] // MIB for s in report('--by', by, one)['processes'][0]['sites']}
    equal(mib('function'), {'particles': 210, 'density': 140, 'velocity': 70, 'pressure': 70, 'energy': 70, 'halo': 70}, 'functions')
    late = report('--by', 'function', make('many', 'late', '120000'))['processes'][0]['sites']
    equal({s['name'] for s in late if s['peak'] >= MIB}, set(mib('function')), 'a wrapper that is used late')
    equal(list(mib('file').values()), [630], 'files')
    equal(list(mib('module').items()), [(os.path.realpath(make_trace), 630)], 'modules')
    equal(mib('stream'), {'stream 0x11000, GPU 0': 280, 'stream 0x12000, GPU 0': 140, 'null stream, GPU 0': 210}, 'streams')
    threads = mib('thread')
    equal(sorted(threads.values()), [210, 420], threads)
    assert all(re.fullmatch(r'thread \d+ \(make_trace\)', t) for t in threads), threads
    text = run('--by', 'stream', one).stdout
    assert re.search(r'280.00 MiB  44.4 %       210  stream 0x11000, GPU 0\n', text), text
    # What lived at the end, failures, ranks and differences are of groups, too.
    p = Process(report('--by', 'function', make('known', 'grouped'))['processes'][0])
    equal([p.sites[s]['name'] for s in p.data['rankings']['never_freed']], ['load_mesh', 'exchange'], 'never freed')
    equal([p.sites[h['site']]['name'] for h in p.data['failures'][0]['holders']], ['write_output', 'load_mesh'], 'holders')
    text = run('--diff', '--by', 'function', one, path('grouped')).stdout
    assert re.search(r'-210.00 MiB .* gone: particles\n', text), text
    # Each thread has a stream of its own behind hipStreamPerThread.
    names = [s['name'] for s in report('--by', 'stream', make('random', 'per-thread', '20000'))['processes'][0]['sites']]
    equal(sum(n.startswith('hipStreamPerThread of thread ') for n in names), 2, names)
    assert '--by takes function, file' in run('--by', 'threads', one, status=2).stderr


def test_names():
    """Each call site has a name of its own, whose frames have lines."""
    data = report(make('sites', 'sites'))
    p = Process(data['processes'][0])
    names = [s['name'] for s in p.sites.values() if s['allocations']]
    equal(len(names), 6, 'call sites')
    equal([d['device'] for d in data['processes'][0]['devices']], [0, 1], 'devices in order')
    equal(len(set(names)), 6, names)
    for name in names:
        for frame in name.split(' < '):
            assert frame == '...' or re.search(r'\([a-z_]+\.[ch]:\d+\)( \d+ times)?$', frame), name
        assert 'wrapper (make_trace.c:' in name or 'leak (make_trace.c:' in name, name
    # Code of the C++ library that is compiled into the program is none of its frames.
    assert not any(f['function'] == 'invoke' for s in p.sites.values() for f in s['frames']), names
    # A recursion is one frame of the name, with how deep it is.
    deep = sorted(int(m[1]) for n in names for m in [re.search(r' (\d+) times', n)] if m)
    equal(deep, [19, 20], names)
    text = run(path('sites')).stdout
    for name in names:
        assert name in text, (name, text)
    # Memory that grows to the end comes before what is larger and was there from the start. The recording was not cut off.
    leak = next(s for s in p.sites.values() if any(f['function'] == 'leak' for f in s['frames']))
    equal(data['processes'][0]['rankings']['never_freed'][0], leak['site'], 'growing first')
    equal([s['site'] for s in p.sites.values() if s['grows']], [leak['site']], 'what grows')
    # Blocks that nobody freed have no mean life.
    equal(leak['mean_life'], None, 'mean life')
    assert re.search(r'^ +40 +1.00 MiB +40.00 MiB +- +.*leak', text, re.M), text
    assert '\nNever freed\n' in text and 'still growing' in text, text
    # A recording that was killed cannot know what would have been freed.
    subprocess.run([make_trace, 'sites', path('killed'), 'killed'], check=False)
    text = run(path('killed')).stdout
    assert 'Live when the recording ended' in text and 'Never freed' not in text, text


def test_known():
    data = report(make('known', 'known'))
    equal(len(data['processes']), 1, 'processes')
    assert 'over_ranks' not in data
    p = Process(data['processes'][0])
    d = p.data
    equal((d['allocations'], d['frees'], d['all_failures']), (25, 23, 1), 'counts')
    equal((d['lost_events'], d['damaged_places'], d['unknown_frees'], d['lost_frees']),
          (0, 0, 0, 0), 'nothing is lost')
    equal([x['device'] for x in d['devices']], [0, 1], 'devices')
    equal([x['pci'] for x in d['devices']], ['0000:c1:00.0', '0000:c6:00.0'], 'PCI')
    gpu = d['devices'][0]
    equal(level(gpu['used_peak']), [50, 50, 22, 128], 'used peak')
    equal(gpu['reserved_peak']['reserved'], 128 * MIB, 'reserved peak')
    equal(gpu['in_flight_peak']['in_flight'], 22 * MIB, 'in flight peak')
    equal(level(gpu['end']), [10, 10, 2, 80], 'end')
    equal((gpu['allocations'], gpu['frees'], gpu['failed']), (24, 23, 1), 'calls')
    equal((gpu['maps'], gpu['unmaps'], gpu['hits']), (3, 1, 0), 'segments')
    equal(p.functions(gpu['at_used_peak']['holders']),
          [('write_output', 40, 1), ('load_mesh', 10, 1)], 'holders at the peak')
    equal(level(d['devices'][1]['used_peak']), [4, 4, 0, 8], 'second device')

    waste = gpu['at_reserved_peak']
    equal(waste['request'], 40 * MIB, 'what grew')
    equal({k: v / MIB for k, v in waste['waste'].items()},
          {'rounding': 0, 'in_flight_own': 0, 'in_flight_others': 22, 'fragmentation': 34 + 8,
           'other_pools': 14, 'idle': 0, 'largest_hole': 34}, 'waste')

    pools = {(q['device'], q['name']): q for q in d['pools']}
    equal(sorted(pools), [(0, 'default'), (0, 'pool 3'), (1, 'default')], 'pools')
    equal(level(pools[0, 'default']['used_peak']), [50, 50, 20, 112], 'default pool')
    equal(pools[0, 'default']['trimmed'], 48 * MIB, 'trimmed')
    equal(level(pools[0, 'pool 3']['used_peak']), [2, 2, 0, 16], 'other pool')
    equal(level(pools[0, 'pool 3']['end']), [0, 0, 2, 16], 'other pool at the end')

    smooth = p.by('smooth')
    equal((smooth['allocations'], smooth['frees'], smooth['repeats']), (20, 20, 19), 'smooth')
    equal((smooth['peak'], smooth['bytes']), (MIB, 20 * MIB), 'smooth')
    equal(d['rankings']['most_allocations'][0], smooth['site'], 'most allocations')
    equal(d['rankings']['short_lived'], [smooth['site']], 'short-lived')
    mesh, exchange = p.by('load_mesh'), p.by('exchange')
    equal(d['rankings']['never_freed'], [mesh['site'], exchange['site']], 'leaks')
    equal((mesh['live'], mesh['live_blocks'], mesh['largest_live']), (10 * MIB, 1, 10 * MIB), 'mesh')
    assert mesh['oldest_age'] > exchange['oldest_age'] >= 0
    equal(p.by('assemble')['live'], 0, 'assemble')

    waits = {w['cause']: w for w in d['wait_causes']}
    equal({k: (w['count'], w['time']) for k, w in waits.items()},
          {'hipFree waits for the device': (1, 0.005), 'driver: memory is mapped': (1, 0.002)},
          'waits')
    equal([(t['cause'], t['count'], t['bytes']) for t in d['trims']],
          [('hipMemPoolTrimTo', 1, 48 * MIB)], 'trims')

    failure, = d['failures']
    equal((failure['kind'], failure['request'], failure['device_free']),
          ('out of memory', 100 * MIB, MIB), 'failure')
    equal((failure['recorded_reserved'], failure['recorded_used']), (112 * MIB, 50 * MIB), 'recorded')
    equal(failure['site'], p.by('solve')['site'], 'who failed')
    equal(level(failure), [50, 50, 2, 128], 'at the failure')
    equal({k: v / MIB for k, v in failure['waste'].items()},
          {'rounding': 0, 'in_flight_own': 2, 'in_flight_others': 0, 'fragmentation': 54 + 8,
           'other_pools': 14, 'idle': 0, 'largest_hole': 54}, 'waste at the failure')
    equal(p.functions(failure['holders']), [('write_output', 40, 1), ('load_mesh', 10, 1)], 'holders')


def test_sums():
    """A long trace: parts add up to the whole."""
    p = Process(report(make('random', 'random', '60000'))['processes'][0])
    for gpu in p.data['devices']:
        peak = gpu['at_used_peak']
        equal(sum(h['bytes'] for h in peak['holders']), gpu['used_peak']['used'], 'holders')
        waste = gpu['at_reserved_peak']
        parts = sum(v for k, v in waste['waste'].items() if k != 'largest_hole')
        equal(parts + waste['asked'], waste['reserved'], 'waste')
        equal(gpu['reserved_peak']['reserved'], 2 * 2048 * 4 * MIB, 'reserved')
    equal(sum(s['allocations'] for s in p.sites.values()), p.data['allocations'], 'allocations')
    equal(sum(s['frees'] for s in p.sites.values()), p.data['frees'], 'frees')
    equal(sum(s['live'] for s in p.sites.values()),
          sum(g['end']['used'] for g in p.data['devices']), 'never freed')
    assert len(p.sites) > 500


def test_text():
    """The text has the figures of the JSON."""
    text = run(path('known')).stdout
    for part in ('GPU 0 0000:c1:00.0      50.00 MiB', 'its peak of 50.00 MiB used',
                 'Where the 128.00 MiB reserved of GPU 0', 'it grew for a block of 40.00 MiB',
                 "22.00 MiB  17.2 %  in flight on other streams", 'Never freed',
                 'Short-lived blocks that the caller could keep\n', '         19     1.00 MiB',
                 'Out of memory at', '100.00 MiB asked for on GPU 0, the device has free 1.00 MiB',
                 'largest hole of the pool 54.00 MiB', 'load_mesh', 'hipFree waits for the device'):
        assert part in text, part
    one = run('--top', '1', path('known')).stdout
    assert re.search(r'and 1 more call site$', one, re.M) and len(one) < len(text)
    # JSON and the page have all call sites, whatever the text is asked for.
    assert run('--json', '--top', '1', path('known')).stdout == run('--json', path('known')).stdout


def test_rebuilt():
    """A program that was built again has other addresses, so its names are not those of the recording."""
    program = path('program')
    shutil.copy(make_trace, program)
    subprocess.run([program, 'known', path('rebuilt')], check=True)
    assert 'built after' not in run(path('rebuilt')).stdout
    code = bytearray(open(program, 'rb').read())
    note = code.index(b'GNU\0', code.index(b'\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0')) + 4
    code[note] ^= 0xff  # the build id
    os.remove(program)
    with open(program, 'wb') as f:
        f.write(code)
    assert program + ' was built after the recording' in run(path('rebuilt')).stdout
    equal(report(path('rebuilt'))['processes'][0]['rebuilt'], program, 'rebuilt')


def test_wrong_file():
    log = path('log.csv')
    with open(log, 'w') as f:
        f.write('Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.0,allocate,0x10,5,0x0\n')
    assert 'a log of allocations, for `somashim replay' in run(log, status=2).stderr
    make('known', 'known')
    for args, want in ((['convert', '--to', 'rmm', log], 'for `somashim replay'),
                       (['replay', path('known')], 'a recording: see it with `somashim report'),
                       (['convert', '--to', 'rmm', '--device', '9', path('known')], 'the recording has: 0, 1'),
                       (['convert', '--to', 'folded', '--device', '9', path('known')], 'the recording has: 0, 1')):
        done = subprocess.run([somashim, *args], capture_output=True, text=True)
        equal((done.returncode, done.stdout), (2, ''), args)
        assert want in done.stderr, done.stderr


def test_ranks():
    os.mkdir(path('job'))
    for rank, size in enumerate((4 * MIB, 12 * MIB, 2 * MIB)):
        make('rank', 'job/trace.%d' % (9 - rank), str(size), SLURM_PROCID=str(rank),
             SLURM_NTASKS='3', SLURM_JOB_ID='77')
    with open(path('job/notes.txt'), 'w') as f:
        f.write('not a trace\n')
    data = report(path('job'))
    equal([(p['rank'], p['ranks'], p['job']) for p in data['processes']],
          [(0, 3, '77'), (1, 3, '77'), (2, 3, '77')], 'sorted by rank')
    over = data['over_ranks']
    equal(over['processes'], 3, 'processes')
    pool, = over['pools']
    equal((pool['name'], pool['in']), ('default, GPU 0', 3), 'pool')
    for entry in (pool, over['sites'][0]):
        peak = entry['peak']
        equal([peak[k] / MIB for k in ('min', 'mean', 'max')], [2, 6, 12], 'peak over ranks')
        equal(peak['imbalance'], 2, 'imbalance')
        equal((peak['rank'], peak['process']), (1, 1), 'rank of the maximum')
        assert peak['host'] == data['processes'][1]['host']
    equal(len(over['sites']), 1, 'the site of all ranks is one')
    equal([pool['reserved'][k] / MIB for k in ('min', 'max')], [2, 12], 'reserved')
    text = run(path('job')).stdout
    assert 'most in rank 1 on ' in text and '3 processes' in text and '     2.00  default, GPU 0' in text


    # A row for each process, the worst first.
    equal([(r['rank'], r['reserved_peak'] // MIB, r['used_at_end'], r['failures']) for r in over['ranks']],
          [(1, 12, 0, 0), (0, 4, 0, 0), (2, 2, 0, 0)], 'rows')
    # They came one after the other on one GPU, and gave back nothing before their ends.
    gpu, = over['shared_gpus']
    equal((gpu['pci'], gpu['processes'], gpu['peak'] // MIB, gpu['sum_of_peaks'] // MIB),
          ('0000:c1:00.0', 3, 12, 18), 'shared GPU')
    equal(gpu['steps'][-1][1], 0, 'all have ended')


def test_runs():
    """Two runs in one folder are not one job of twice the ranks."""
    os.mkdir(path('runs'))
    for job, size in (('1', 4 * MIB), ('2', 6 * MIB)):
        for rank in range(2):
            make('rank', 'runs/%s.%d' % (job, rank), str(size), SLURM_PROCID=str(rank), SLURM_NTASKS='2', SLURM_JOB_ID='77')
    def peaks(*args):
        done = run('--json', *args, path('runs'))
        assert 'of 2 runs' in done.stderr and 'run 1: 2 processes' in done.stderr, done.stderr
        return [p['devices'][0]['used_peak']['used'] // MIB for p in json.loads(done.stdout)['processes']]
    equal(peaks(), [6, 6], 'the newest')
    equal(peaks('--run', '1'), [4, 4], 'the first')
    assert 'no run 3' in run('--run', '3', path('runs'), status=2).stderr
    # Processes outside of a job are compared as they are.
    make('rank', 'alone.1', str(MIB))
    make('rank', 'alone.2', str(MIB))
    done = run(path('alone.1'), path('alone.2'))
    assert done.stdout.startswith('2 processes') and not done.stderr, done


def test_many():
    """Of a large job the worst are shown one by one, and all have a row."""
    os.mkdir(path('many'))
    for rank in range(40):
        make('rank', 'many/%d' % rank, str((rank * 7 % 40 + 1) * MIB), PMI_RANK=str(rank), PMI_SIZE='40')
    text = run(path('many')).stdout
    equal(text.count('\n----\n'), 5, 'details')
    equal(run('--details', '7', path('many')).stdout.count('\n----\n'), 7, '--details')
    one = run(path('many/0')).stdout
    assert one and run('--details', '0', path('many/0')).stdout == one, 'one process is not compared'
    data = report('--details', '3', path('many'))
    equal(sorted(p['devices'][0]['used_peak']['used'] // MIB for p in data['processes']), [38, 39, 40], 'the worst')
    equal(len(data['over_ranks']['ranks']), 40, 'rows')
    equal(len(report(path('many'))['processes']), 40, 'JSON has all')
    page = path('many.html')
    run('-o', page, path('many'))
    with open(page) as f:
        words = f.read()
    found = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', words, re.S)[1])
    equal((len(found['processes']), len(found['over_ranks']['ranks'])), (5, 40), 'page')
    assert all(p['charts'] for p in found['processes'])


def test_difference():
    """What grew, by call site: lines that moved are the same site."""
    a, b = make('sites', 'before'), make('known', 'after')
    data = report('--diff', a, b)['difference']
    equal((data['a']['used_peak'] // MIB, data['b']['used_peak'] // MIB), (90 + 2 + 3 + 1 + 1 + 40, 54), 'totals')
    names = {s['name']: s for s in data['sites']}
    grew = data['sites'][0]
    assert 'write_output' in grew['name'] and not grew['in_a'] and grew['peak'] == [0, 40 * MIB], grew
    shrank = data['sites'][-1]
    equal((shrank['in_b'], shrank['peak']), (False, [90 * MIB, 0]), shrank)
    equal(len(names), len(data['sites']), 'each site once')
    text = run('--diff', a, b).stdout
    assert 'new: ' in text and 'gone: ' in text and '+40.00 MiB' in text and '-90.00 MiB' in text, text
    assert 'more between these' in run('--diff', '--top', '4', a, b).stdout
    equal(report('--diff', a, a)['difference']['sites'], [], 'no difference')
    assert '\n  none\n' in run('--diff', a, a).stdout
    # Directories are runs of a job; figures are means.
    if os.path.isdir(path('job')):
        d = report('--diff', path('job'), path('job'))['difference']
        equal((d['a']['processes'], d['a']['used_peak'] / MIB, d['sites']), (3, 6, []), 'means')
    page = path('difference.html')
    run('--diff', '-o', page, a, b)
    with open(page) as f:
        assert '"difference"' in f.read()
    run('--diff', a, status=2)
    run('--diff', a, path('none'), status=2)


def test_conditions():
    """--fail-if: the status, and a line for each condition that holds. --suppressions: what is no leak."""
    known = path('known')
    ok = lambda *conditions: run(*sum((['--fail-if', c] for c in conditions), []), known).stderr
    equal(ok('peak>50M', 'reserved>=129M', 'leaks > 14M', 'growing', 'failures>1', 'allocations>25', 'peak>=50.1M'), '', 'none holds')
    for condition, says in {'peak>49M': '50.00 MiB in use at most on GPU 0', 'reserved>=128M': '128.00 MiB reserved at most on GPU 0',
                            'leaks': '14.00 MiB never freed', 'failures': '1 failed allocations', 'allocations>24': '25 allocations'}.items():
        done = run('--fail-if', 'growing', '--fail-if', condition, known, status=1)
        assert re.fullmatch(r'somashim: report: %s: %s, process \d+: %s\n' % tuple(map(re.escape, (condition, says, known))),
                            done.stderr), done.stderr
        assert 'Who held GPU 0' in done.stdout
        run('--fail-if', condition, '--json', known, status=1)
    ranks = [make('rank', 'cond%d' % r, str((r + 1) * MIB), SLURM_PROCID=str(r), SLURM_NTASKS='2', SLURM_JOB_ID='4') for r in range(2)]
    done = run('--fail-if', 'peak>1M', *ranks, status=1)
    assert re.fullmatch(r'somashim: report: peak>1M: 2.00 MiB in use at most on GPU 0, process \d+ \(rank 1\): .*\n', done.stderr), done.stderr
    for d, status in {'peak>99%': 1, 'peak>100%': 0, 'peak>1M': 0, 'peak>=1M': 1, 'allocations': 0, 'leaks': 0}.items():
        run('--diff', *ranks, '--fail-if', d, status=status)
        run('--diff', *reversed(ranks), '--fail-if', d, status=0)
    for wrong in 'peak<1', 'peaks>1', '>1', 'peak>', 'peak>x', 'peak>1%', 'peak=1', '':
        run('--fail-if', wrong, known, status=2)
    run('--diff', *ranks, '--fail-if', 'growing', status=2)
    run('--fail-if', 'peak>1', known, path('none'), status=2)

    with open(path('kept'), 'w') as f:
        f.write('# on purpose\nleak load_* main\nuse-after-free *\nleak absent\n')
    done = run('--suppressions', path('kept'), known)
    assert 'Never freed, but suppressed: 1 block, 10.00 MiB' in done.stdout
    equal(re.findall(r':(\d+): this suppression fits no finding', done.stderr), ['3', '4'], done.stderr)
    p = report('--suppressions', path('kept'), known)['processes'][0]
    equal([Process(p).sites[n]['live'] for n in p['rankings']['never_freed']], [4 * MIB], 'not suppressed')
    equal((p['suppressed_blocks'], p['suppressed_bytes']), (1, 10 * MIB), 'suppressed')
    run('--suppressions', path('kept'), '--fail-if', 'leaks>4M', known)
    run('--suppressions', path('kept'), '--fail-if', 'leaks>3M', known, status=1)
    run('--suppressions', path('none'), known, status=2)
    run('--suppressions', path('kept'), '--by', 'file', known, status=2)


def test_csv():
    """One row for each call site of each process, with the figures of the JSON."""
    import csv, io
    ranks = [make('rank', 'csv%d' % r, str((r + 1) * MIB), SLURM_PROCID=str(r), SLURM_NTASKS='2', SLURM_JOB_ID='5') for r in range(2)]
    rows = list(csv.DictReader(io.StringIO(run('--csv', path('known')).stdout)))
    sites = report(path('known'))['processes'][0]['sites']
    equal([r['name'] for r in rows], [s['name'] for s in sites], 'names')
    for r, s in zip(rows, sites):
        for key in 'site', 'allocations', 'frees', 'bytes', 'peak', 'live', 'live_blocks', 'repeats', 'waits', 'failed':
            equal(int(r[key]), s[key], key)
        equal([f.split(' ')[0] for f in r['stack'].split('|')], [f['function'] for f in s['frames']], 'stack')
    rows = list(csv.DictReader(io.StringIO(run('--csv', *ranks).stdout)))
    equal([(r['rank'], int(r['peak']) // MIB) for r in rows if int(r['peak'])], [('0', 1), ('1', 2)], 'ranks')
    rows = list(csv.DictReader(io.StringIO(run('--csv', '--diff', *ranks).stdout)))
    equal([(int(r['peak_a']) // MIB, int(r['peak_b']) // MIB) for r in rows], [(1, 2)], 'difference')
    run('--csv', '--json', path('known'), status=2)


def test_bad():
    """What cannot be read is one line with the reason; the rest is reported."""
    with open(path('known'), 'rb') as f:
        good = f.read()
    bad = {'empty': b'', 'foreign': b'Thread,Time,Action\n' * 100,
           'newer': good[:8] + b'\xff\x00' + good[10:], 'short': good[:50]}
    for name, data in bad.items():
        with open(path(name), 'wb') as f:
            f.write(data)
        done = run(path(name), status=2)
        equal(done.stdout, '', name)
        equal(done.stderr.count('\n'), 1, name)
        assert done.stderr.startswith('somashim: report: ' + path(name)), done.stderr
    done = run(path('empty'), path('known'), status=2)
    assert 'its peak of 50.00 MiB' in done.stdout and done.stderr.count('\n') == 1
    run(path('none'), status=2)
    os.mkdir(path('nothing'))
    assert 'no recording' in run(path('nothing'), status=2).stderr
    run(status=2)
    # A damaged record: said with its offset, and the rest is there.
    damaged = bytearray(good)
    damaged[damaged.index(b'default') - 24 + 1] = 0  # the length of the pool's definition
    with open(path('damaged'), 'wb') as f:
        f.write(damaged)
    out = run(path('damaged')).stdout
    assert 'damaged in 1 place: ' in out and ' offset ' in out, out[:600]


try:
    for name, test in sorted(globals().items()):
        if name.startswith('test_'):
            print(name, flush=True)
            if name in ('test_bad', 'test_conditions', 'test_csv', 'test_text') and not os.path.exists(path('known')):
                make('known', 'known')
            test()
finally:
    shutil.rmtree(folder)
