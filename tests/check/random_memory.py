#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs with the tools that look at bytes: legal ones, of which nothing may be said, and ones with one error.

    random_memory.py CHECK_CORPUS FIRST_SEED COUNT      the environment has the preload and the software device
"""
import json
import os
import subprocess
import sys
import tempfile


def findings(program, seed, kind, folder):
    path = os.path.join(folder, f'{kind}-{seed}.json')
    env = dict(os.environ, SOMASHIM_CHECK='order,bounds,free,poison', SOMASHIM_CHECK_FILE=path,
               SOMASHIM_CHECK_QUARANTINE='256K' if seed % 2 else '64M', SOMASIM_SEED=str(seed))
    if kind == 'before' or (kind == 'legal' and seed % 2):
        env['SOMASHIM_CHECK_FRONT'] = '200'
    if kind == 'legal' and seed % 2:
        env.update(SOMASHIM_CHECK='order,bounds,free,poison,guard', SOMASHIM_CHECK_GUARD='4K')
    done = subprocess.run([program, 'random', str(seed), kind], env=env, capture_output=True, text=True, timeout=300)
    with open(path, encoding='utf-8') as f:
        lines = [json.loads(line) for line in f]
    if done.returncode or lines[-1]['kind'] != 'summary':
        sys.exit(f'{kind}, seed {seed}: status {done.returncode}: {done.stderr}')
    found = [f'{l["fault"]} {l["address"]} {l["bytes"]}' for l in lines if l['kind'] == 'finding']
    return found, done.stdout.splitlines()


def main():
    program, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            for kind in ('legal', 'past', 'before', 'after'):
                found, expected = findings(program, seed, kind, folder)
                if found != expected:
                    failed += 1
                    print(f'{kind}, seed {seed}: expected {expected}, found {found}')
    print(f'{count} seeds from {first}, {failed} programs judged wrong')
    return failed != 0


sys.exit(main())
