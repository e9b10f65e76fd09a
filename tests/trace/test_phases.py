#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Phases: ranges and marks of roctx in a recording, and reports and conversions of a part of it.

    test_phases.py SOMASHIM PHASES ROCTX SIM
"""
import json, os, re, shutil, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory_viz

MIB = 1 << 20
somashim, program, roctx, sim = map(os.path.realpath, sys.argv[1:5])
folder = tempfile.mkdtemp(prefix='somashim-phases-')
os.chdir(folder)
for name in list(os.environ):
    if name.startswith(('SLURM_', 'OMPI_', 'PMI', 'FLUX_', 'SOMASHIM_', 'LD_')):
        del os.environ[name]
device = dict(os.environ, LD_LIBRARY_PATH=sim, SOMASIM_QUIET='1', SOMASIM_HIP_VERSION='6.4', SOMASHIM_STATS='0')


def run(*args, status=0, env=None):
    done = subprocess.run([somashim, *args], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == status, (args, done.returncode, done.stderr[:2000])
    return done


def report(*args):
    return json.loads(run('report', '--json', *args).stdout)['processes'][0]


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


try:
    for library in 'none', roctx: # without the real library ranges are recorded just the same
        file = 'with.trace' if library == roctx else 'without.trace'
        run('record', '-o', file, program, library, env=device)
        p = report(file)
        phases = {x['name']: x for x in p['phases']}
        equal({n: (x['count'], x['used_peak'] // MIB, x['grew'] / MIB, x['allocations'], x['frees']) for n, x in phases.items()},
              {'init': (1, 8, 0, 0, 0), 'all steps': (1, 42, 3, 6, 3), 'step': (3, 42, 3, 6, 3), 'forward': (3, 42, 3, 6, 3),
               'left open': (1, 11, -11, 0, 4)}, 'phases')
        equal([m['name'] for m in p['marks']], ['loaded'], 'marks')
        f = phases['forward']
        assert 0 < f['peak_range'][0] <= f['used_peak_time'] <= f['peak_range'][1] <= p['seconds'] + 1e-6, f
        equal(f['device'], 0, 'device')
        equal(p['part'], None, 'all')
    text = run('report', file).stdout
    assert re.search(r'\nPhases\n.*\n +\d+ .* 42.00 MiB .*\n', text), text
    assert re.search(r'^ +3 +[\d.]+ +42.00 MiB +[\d.]+ +[\d.]+ MiB +3.00 MiB +6  forward$', text, re.M), text

    # One range: the one with the highest peak, or the one with that number.
    whole = report(file)
    for name, lived, blocks, peak in ('forward', 9, 2, 42), ('forward#1', 8, 1, 25), ('forward#3', 10, 3, 27), ('step#2', 9, 2, 42):
        one = report('--phase', name, file)
        d = one['devices'][0]
        equal((one['lived_bytes'] // MIB, one['lived_blocks'], d['used_peak']['used'] // MIB), (lived, blocks, peak), name)
        equal((one['allocations'], one['frees'], d['end']['used'] // MIB), (2, 1, lived + 1), name)
        held = sum(h['bytes'] for h in d['at_used_peak']['holders'])
        equal(held // MIB, peak, 'holders')
        equal(d['end']['reserved'] > 0 and d['reserved_peak']['reserved'] >= d['used_peak']['used'], True, 'reserved')
        equal(abs(one['seconds'] - (one['part'][1] - one['part'][0])) < 1e-3, True, (one['seconds'], one['part']))
    begin, end = phases['forward']['peak_range']
    equal(report('--phase', 'forward', file)['part'], [begin, end], 'the same times')
    assert 'of the recording; times count from there' in run('report', '--phase', 'forward', file).stdout
    run('report', '--phase', 'forward', '-o', 'page.html', file)
    assert '"spans":[["forward",' in open('page.html').read() or '"spans":[["step",' in open('page.html').read()
    done = run('report', '--phase', 'backward', file, status=2)
    assert "no phase `backward'; there is" in done.stderr and 'forward' in done.stderr, done.stderr
    assert "3 ranges `forward'" in run('report', '--phase', 'forward#4', file, status=2).stderr
    equal(run('report', '--fail-if', 'peak>30M', '--phase', 'forward#1', file).stderr, '', 'peak of a phase')
    run('report', '--fail-if', 'peak>30M', '--phase', 'forward#2', file, status=1)

    # A part by its times.
    part = ['--from', '%.9f' % (begin - 1e-7), '--to', '%.9f' % (end + 1e-7)]
    equal(report(*part, file)['devices'][0]['used_peak']['used'] // MIB, 42, 'part')
    late = report('--from', '%.9f' % (end + 1e-7), file)
    equal((late['devices'][0]['used_peak']['used'] // MIB, late['allocations']), (27, 2), 'the rest')
    early = report('--to', '%.9f' % (begin - 1e-7), file)
    equal((early['devices'][0]['used_peak']['used'] // MIB, early['lived_blocks']), (25, 0), 'the begin')
    equal(report('--from', '1000', file)['allocations'], 0, 'behind the end')
    for wrong in ['--from', '2', '--to', '1'], ['--from', 'x'], ['--to', '0'], ['--phase', 'a', '--from', '1'], ['--from', '-1']:
        run('report', *wrong, file, status=2)

    # Conversions of a part, and ranges for Perfetto.
    viz = json.loads(run('convert', '--to', 'memory_viz', *part, file).stdout)
    peaks, ends = memory_viz.check(viz)
    equal((peaks[0] // MIB, ends[0] // MIB), (42, 10), 'memory_viz')
    for to in 'heaptrack', 'rmm', 'folded':
        run('convert', '--to', to, *part, file)
    total = sum(int(l.rsplit(' ', 1)[1]) for l in run('convert', '--to', 'folded', *part, file).stdout.splitlines())
    equal(total // MIB, 42, 'folded')
    events = json.loads(run('convert', '--to', 'perfetto', file).stdout)['traceEvents']
    count = lambda ph, name: sum(e['ph'] == ph and e['name'] == name for e in events)
    equal([count('B', 'forward'), count('b', 'all steps'), count('i', 'loaded'), sum(e['ph'] == 'E' for e in events)], [3, 1, 1, 8], 'perfetto')
finally:
    os.chdir('/')
    shutil.rmtree(folder)
