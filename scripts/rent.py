#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each rule of the pools earns: replays generated logs with one rule off at a time.

rent.py SOMASHIM LOG_DIR DOCUMENT [--write]    SOMASHIM is built with -DSS_RENT (scripts/rent.sh)

Prints a table: reserved over used peak (geometric mean) and driver calls of all logs. Fails if a rule earns
nothing on any setting, or if the table in DOCUMENT is another one.
"""
import concurrent.futures
import glob
import json
import math
import os
import re
import subprocess
import sys

RULES = ['nothing', 'asking the streams', 'ranges ordered by events', 'waiting for the oldest frees',
         'waiting for an idle device', 'cutting an idle segment', 'adopting completed ranges', 'exchange',
         'cutting where the pool is tight', 'cutting where it does no harm', 'a bound on exchanges',
         'keeping the device in one piece', 'cutting freely after a cut', 'moving and making room']
# Each setting: its name and the options of replay.
SETTINGS = [('hip, idle', ['--backing=hip']), ('hip, behind', ['--backing=hip', '--clock']),
            ('vmm, idle', ['--backing=vmm']), ('vmm, behind', ['--backing=vmm', '--clock']),
            ('hip, events', ['--backing=hip', '--clock', '--events']),
            ('hip, loop', ['--backing=hip']), ('hip, full', ['--backing=hip'])]
FULL = 1.1       # the device of "full" has so many times what the log uses
ROUNDS = 6       # of "loop"
MEMORY = 0.001   # a rule earns this much of the mean ratio,
CALLS = 0.01     # or this part of the driver calls,
HITS = 0.001     # or this part of the allocations as hits


def replay(somashim, rule, options, log, vram):
    env = dict(os.environ, RENT_WITHOUT=str(rule))
    size = ['--vram=%d' % vram] if vram else []
    run = subprocess.run([somashim, 'replay', '--json', *options, *size, log], env=env, capture_output=True,
                         text=True, timeout=300)
    if not run.stdout:
        sys.exit('rent.py: %s: %s' % (os.path.basename(log), run.stderr.strip()))
    return json.loads(run.stdout)


def looped(log):
    """The log as a program in a loop: a file with ROUNDS times its rows."""
    name = log[:-4] + '.loop'
    if not os.path.exists(name):
        with open(log) as f:
            head, *rows = f.readlines()
        with open(name, 'w') as f:
            f.writelines([head] + rows * ROUNDS)
    return name


def measure(pool, somashim, logs, peaks, rule):
    rows = []
    for name, options in SETTINGS:
        on = [looped(log) for log in logs[::3]] if 'loop' in name else logs
        vram = [int(peaks[log] * FULL) >> 21 << 21 if 'full' in name else 0 for log in on]
        runs = list(pool.map(lambda a: replay(somashim, rule, options, *a), zip(on, vram)))
        mean = math.exp(sum(math.log(r['ratio']) for r in runs) / len(runs))
        idle = [r['clock']['idle_share'] for r in runs if r.get('clock')]
        rows.append({'ratio': mean, 'calls': sum(r['driver_calls'] for r in runs),
                     'failed': sum(r['failed'] for r in runs), 'hits': sum(r['hit_rate'] for r in runs) / len(runs),
                     'idle': sum(idle) / len(idle) if idle else 0})
    return rows


def earns(base, without):
    return [name for (name, _), b, w in zip(SETTINGS, base, without)
            if w['ratio'] >= b['ratio'] + MEMORY or w['calls'] >= b['calls'] * (1 + CALLS) or
            w['failed'] > b['failed'] or w['hits'] <= b['hits'] - HITS or w['idle'] >= b['idle'] + MEMORY]


def table(results):
    names = [name for name, _ in SETTINGS]
    lines = ['| without | %s | driver calls | refused |' % ' | '.join(names), '|---' * (len(names) + 3) + '|']
    for rule, rows in results:
        lines.append('| %s | %s | %s | %d |' % (
            RULES[rule], ' | '.join('%.3f' % r['ratio'] for r in rows), ' '.join('%d' % r['calls'] for r in rows),
            rows[-1]['failed']))
    return '\n'.join(lines) + '\n'


def same(old, new):
    """The mathematics library decides the last digits of a generated log, so figures may differ a little."""
    cells = [[re.split(r'[| ]+', line) for line in text.splitlines()] for text in (old, new)]
    if [len(line) for line in cells[0]] != [len(line) for line in cells[1]]:
        return False
    for a, b in zip(sum(cells[0], []), sum(cells[1], [])):
        try:
            a, b = float(a), float(b)
        except ValueError:
            if a != b:
                return False
            continue
        if abs(a - b) > max(0.005, b * 0.05 if b > 100 else 0, 10 if 10 < b <= 100 else 0):
            return False
    return True


def main():
    somashim, folder, document = sys.argv[1:4]
    logs = sorted(glob.glob(folder + '/*.csv'))
    results, useless = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        peaks = dict(zip(logs, [r['used_peak'] for r in pool.map(
            lambda log: replay(somashim, 0, SETTINGS[0][1], log, 0), logs)]))
        for rule in range(len(RULES)):
            rows = measure(pool, somashim, logs, peaks, rule)
            results.append((rule, rows))
            gains = earns(results[0][1], rows) if rule else []
            print('%-34s %s' % (RULES[rule], 'earns: ' + ', '.join(gains) if rule else ''), flush=True)
            if rule and not gains:
                useless.append(RULES[rule])
    text = open(document).read()
    begin, end = '<!-- rent -->\n', '<!-- /rent -->\n'
    old = text[text.index(begin) + len(begin):text.index(end)]
    if '--write' in sys.argv:
        open(document, 'w').write(text.replace(begin + old + end, begin + table(results) + end))
    elif not same(old, table(results)):
        sys.exit('rent.py: %s has another table:\n%s' % (document, table(results)))
    if useless:
        sys.exit('rent.py: these rules earn nothing: ' + ', '.join(useless))


main()
