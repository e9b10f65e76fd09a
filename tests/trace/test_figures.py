#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`somashim report` of recorded programs says what they read from their pools' attributes and
what SOMASHIM_STATS counts.

    test_figures.py SOMASHIM PRELOAD TRACE_RECORDED SIM
"""
import json, os, re, shutil, subprocess, sys, tempfile

somashim, preload, app, sim = sys.argv[1:5]
folder = tempfile.mkdtemp(prefix='somashim-figures-')
trace = os.path.join(folder, 'trace')
LINE = re.compile(r'(0x[0-9a-f]+) used (\d+) high (\d+) reserved (\d+) high (\d+)')


def record(case, **options):
    """Runs the case of the program; what it printed."""
    env = dict(os.environ, LD_LIBRARY_PATH=sim, SOMASIM_QUIET='1', SOMASHIM_STATS='1',
               SOMASIM_HIP_VERSION='6.4', LD_PRELOAD=preload, SOMASHIM_TRACE=trace, **options)
    env.setdefault('ASAN_OPTIONS', 'verify_asan_link_order=0:detect_leaks=0')
    done = subprocess.run([app, case], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (case, done.returncode, done.stderr[-1000:])
    return done


def report():
    done = subprocess.run([somashim, 'report', '--json', trace], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)['processes'][0]


def check(case, **options):
    done = record(case, **options)
    process = report()
    assert process['lost_events'] == process['damaged_places'] == process['lost_frees'] == 0, case
    pools = {q['handle']: q for q in process['pools']}
    lines = LINE.findall(done.stdout)
    assert lines, (case, 'the program printed no pool')
    for handle, *numbers in lines:
        if handle not in pools:  # nothing happened in it
            assert set(numbers) == {'0'}, (case, handle, numbers)
            continue
        q = pools[handle]
        got = [q['end']['used'], q['used_peak']['used'], q['end']['reserved'],
               q['reserved_peak']['reserved']]
        assert got == [int(n) for n in numbers], (case, options, handle, got, numbers)
    counted = re.findall(r'allocations (\d+).*?, frees (\d+).*?, out of memory (\d+)', done.stderr)
    assert counted, done.stderr
    for i, name in enumerate(('allocations', 'frees', 'failed')):
        want = sum(int(c[i]) for c in counted)
        got = sum(q[name] for q in process['pools'])
        assert got == want, (case, options, name, got, want)
    os.remove(trace)


try:
    for case in ('alone', 'threads'):
        check(case)
        check(case, SOMASHIM_BACKING='vmm')
    check('pools')
    check('oom')
    check('moves', SOMASHIM_BACKING='vmm', SOMASHIM_LIMIT='300M')
finally:
    shutil.rmtree(folder)
