# SPDX-License-Identifier: MIT
"""The part of scripts/suite.sh that runs the entries and compares what they reach.

    suite.py BUILD LIBRARY FOLDER tests/repeats
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys

build, library, folder, repeats = sys.argv[1:]
preload = os.path.join(build, 'shim', 'libsomashim.so')


def run(test):
    """Returns the edges that the entry reaches, or None, and its processor time."""
    at = os.path.join(folder, 'reached', test['name'])
    os.makedirs(at)
    env = dict(os.environ, SOMASIM_SEED='1', XDG_STATE_HOME='/nonexistent', REACHED=at)
    env.update({k: v.replace(preload, library) for k, v in test['env'].items()})
    with open(os.path.join(at, 'log'), 'w', encoding='utf-8') as log:
        process = subprocess.Popen(test['cmd'], env=env, cwd=build, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if os.waitstatus_to_exitcode(status) not in (0, 77):
        print(f'{test["name"]}: failed, so nothing is known of it')
        return test['name'], None, 0
    with open(os.path.join(at, 'edges'), 'rb') as edges:
        return test['name'], {i for i, byte in enumerate(edges.read()) if byte}, used.ru_utime + used.ru_stime


def main():
    tests = json.loads(subprocess.check_output(['meson', 'introspect', '--tests', build]))
    tests = [t for t in tests if t['suite'][0].endswith(':shim') and preload in t['env'].get('LD_PRELOAD', '')]
    with open(repeats, encoding='utf-8') as lines:
        long = {name for line in lines if not line.startswith('#') for name in line.split()}
    with concurrent.futures.ThreadPoolExecutor(2 * len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(run, tests))
    reached = {name: edges for name, edges, _ in results if edges is not None}
    used = {name: time for name, _, time in results}
    times = collections.Counter(edge for edges in reached.values() for edge in edges)
    default = {edge for name, edges in reached.items() if name not in long for edge in edges}
    groups = collections.defaultdict(list)
    for test in tests:
        env = {k: v for k, v in test['env'].items() if k not in ('SOMASIM_HIP_VERSION', 'SOMASHIM_LOG')}
        groups[json.dumps([test['cmd'], sorted(env.items())])].append(test['name'])
    bad = 0
    for names in sorted(names for names in groups.values() if len(names) > 1):
        for name in (name for name in names if name in reached):
            alone = sum(times[edge] == 1 for edge in reached[name])
            missed = len(reached[name] - default)
            bad += missed > 0
            print(f'{name:50} {used[name]:6.2f} s  {alone:4} edges alone', 'long' * (name in long),
                  f'{missed} EDGES LOST' * (missed > 0))
    return bad > 0


sys.exit(main())
