# SPDX-License-Identifier: MIT
"""The test command depends on no draw: every seed in it is fixed. test_draws.py BUILD SOURCE"""
import json, os, re, sys

build, source = sys.argv[1:]

# Without these the software device draws, and so does Python for the order of its sets.
for name in ('SOMASIM_SEED', 'PYTHONHASHSEED'):
    assert os.environ.get(name, '').isdigit(), name + ' is not set for the tests'

# The scripts and programs that draw unless their arguments have a seed.
draws = {
    'placement.sh': r'--seed \d', 'concurrent': r'--seed \d', 'preempted': r'--seed \d',
    'shim_stress': r'^\d', 'shim_hostile': r'^\d', 'test_trace_reader': r'^\d', 'test_trace_stack': r'^\S+ \d',
}
found = set()
for test in json.load(open(build + '/meson-info/intro-tests.json')):
    for i, word in enumerate(test['cmd']):
        name, rest = os.path.basename(word), ' '.join(test['cmd'][i + 1:])
        if name in draws:
            found.add(name)
            assert re.search(draws[name], rest), 'the test %s draws: %s %s' % (test['name'], name, rest)
assert found >= draws.keys() - {'preempted'}, draws.keys() - found

calls = re.findall(r'^\s*bench/gate\.sh.*', open(source + '/scripts/test.sh').read(), re.M)
assert calls and all(' --fixed ' in call for call in calls), calls
