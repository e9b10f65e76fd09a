# SPDX-License-Identifier: MIT
"""Checks tests/repeats: each name is an entry, and repeats one that runs by default, on another release. Checks
tests/single: each name is one of entries whose program makes no thread.

    test_repeats.py BUILD tests/repeats tests/single
"""
import fnmatch
import json
import os
import re
import sys


def what_it_plays(test):
    """The program, its arguments and its environment, but for the release and the file that the log goes to."""
    env = {k: v for k, v in test['env'].items() if k not in ('SOMASIM_HIP_VERSION', 'SOMASHIM_LOG')}
    return json.dumps([test['cmd'], sorted(env.items())])


def names_in(path):
    with open(path, encoding='utf-8') as f:
        return [name for line in f if not line.startswith('#') for name in line.split()]


def makes_threads(test, folder):
    source = re.sub('.*/shim_', '', next(part for part in test['cmd'] if '/shim_' in part))
    with open(os.path.join(folder, 'shim', source + '.c'), encoding='utf-8') as f:
        return 'pthread_create' in f.read()


def main():
    build, path, single = sys.argv[1:]
    with open(os.path.join(build, 'meson-info', 'intro-tests.json'), encoding='utf-8') as f:
        tests = json.load(f)
    names = names_in(path)
    assert names == sorted(set(names)), 'not in order, or twice: ' + ' '.join(names)
    unknown = set(names) - {test['name'] for test in tests}
    assert not unknown, f'no such entry: {unknown}'
    default = {what_it_plays(test) for test in tests if test['name'] not in names}
    alone = [test['name'] for test in tests if test['name'] in names and what_it_plays(test) not in default]
    assert not alone, f'nothing that runs by default plays what these do: {alone}'
    for pattern in names_in(single):
        found = [test for test in tests if fnmatch.fnmatchcase(test['name'], pattern)]
        assert found, f'{single}: no entry is {pattern}'
        threads = [test['name'] for test in found if makes_threads(test, os.path.dirname(single))]
        assert not threads, f'{single}: these have threads: {threads}'
    print(len(names), 'entries repeat others')


main()
