# SPDX-License-Identifier: MIT
"""Checks tests/repeats: each name is an entry, and repeats one that runs by default, on another release.

    test_repeats.py BUILD tests/repeats
"""
import json
import os
import sys


def what_it_plays(test):
    """The program, its arguments and its environment, but for the release and the file that the log goes to."""
    env = {k: v for k, v in test['env'].items() if k not in ('SOMASIM_HIP_VERSION', 'SOMASHIM_LOG')}
    return json.dumps([test['cmd'], sorted(env.items())])


def main():
    build, path = sys.argv[1:]
    with open(os.path.join(build, 'meson-info', 'intro-tests.json'), encoding='utf-8') as f:
        tests = json.load(f)
    with open(path, encoding='utf-8') as f:
        names = [name for line in f if not line.startswith('#') for name in line.split()]
    assert names == sorted(set(names)), 'not in order, or twice: ' + ' '.join(names)
    unknown = set(names) - {test['name'] for test in tests}
    assert not unknown, f'no such entry: {unknown}'
    default = {what_it_plays(test) for test in tests if test['name'] not in names}
    alone = [test['name'] for test in tests if test['name'] in names and what_it_plays(test) not in default]
    assert not alone, f'nothing that runs by default plays what these do: {alone}'
    print(len(names), 'entries repeat others')


main()
