# SPDX-License-Identifier: MIT
"""Frames of Python in recordings are those that Python itself sees, for each Python that is found.

test_python.py SOMASHIM FRAMES.PY SIM
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOMASHIM, PROGRAM, SIM = (os.path.realpath(path) for path in sys.argv[1:4])
KNOWN = [(3, 11), (3, 12), (3, 13)]


def pythons():
    """One of each version, by version."""
    found = {}
    names = ['/usr/bin/python3', 'python3', *('python3.%d' % minor for minor in range(11, 14))]
    for name in names:
        path = shutil.which(name)
        ask = ('import sys; print(sys.version_info[:2] + (sys.executable, sys.implementation.name, '
               'sys.version_info.releaselevel))')
        run = path and subprocess.run([path, '-c', ask], capture_output=True, text=True, check=False)
        if not run or run.returncode:
            continue
        major, minor, executable, kind, level = eval(run.stdout)
        if kind == 'cpython' and level == 'final':
            found.setdefault((major, minor), executable)
    return found


def check(executable, directory, *options):
    trace = os.path.join(directory, 'trace')
    environment = dict(os.environ, LD_LIBRARY_PATH=SIM, SOMASIM_QUIET='1', SOMASIM_HIP_VERSION='6.4',
                       SOMASHIM_STATS='0', PYTHONIOENCODING='utf-8')
    environment.pop('SOMASHIM_TRACE', None)
    run = subprocess.run([SOMASHIM, 'record', '-o', trace, executable, *options, PROGRAM, SIM + '/libamdhip64.so.6'],
                         capture_output=True, text=True, env=environment, encoding='utf-8', check=False)
    assert run.returncode == 0, run.stderr
    want = collections.Counter(run.stdout.splitlines())
    report = subprocess.run([SOMASHIM, 'report', '--json', trace], capture_output=True, check=True)
    got = collections.Counter()
    for site in json.loads(report.stdout)['processes'][0]['sites']:
        frames = ['%s:%d' % (f['function'], f['line']) for f in site['frames']
                  if f['source'] == PROGRAM]
        if site['allocations']:
            got[' < '.join(frames)] += site['allocations']
    assert got == want, 'more %s\nless %s' % (got - want, want - got)
    folded = os.path.join(directory, 'folded')
    subprocess.run([SOMASHIM, 'convert', '--to', 'folded', '-o', folded, trace], check=True)
    with open(folded, encoding='utf-8') as file:
        assert re.search(r';Model\.layer \(frames\.py:\d+\) \d+$', file.read(), re.MULTILINE)
    os.remove(trace)


def main():
    found = {version: path for version, path in pythons().items() if version in KNOWN}
    if not found:
        print('no Python of a version whose frames are read')
        return 77
    with tempfile.TemporaryDirectory() as directory:
        for version, path in sorted(found.items()):
            print('Python %d.%d: %s' % (*version, path), flush=True)
            check(path, directory)
            if version >= (3, 12):
                check(path, directory, '-X', 'perf')
    return 0


sys.exit(main())
