#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs each program of the corpus with the checker and compares what it says with what is expected.

    corpus.py [--guarded] [--no-faults] PROGRAM [NAME...]      the environment has the preload and the software device
"""
import json
import os
import subprocess
import sys
import tempfile


def said(finding):
    """What a finding is compared by, as corpus.h describes it."""
    return 'possible ' * finding.get('possible', False) + what(finding)


def what(finding):
    def stream(site):
        return finding.get(site, {}).get('stream', {}).get('number', 0)
    fault = finding['fault']
    if fault == 'leak':
        return f'leak {finding["alloc"]["call"]} {finding["size"]} {finding["count"]}'
    if fault == 'overwritten-padding':
        past = finding['address'] - finding['base'] - finding['size']
        if finding['address'] < finding['base']:
            past = f'before {finding["base"] - finding["address"]}'
        return f'{fault} {finding["alloc"]["call"]} {past} {finding["bytes"]}'
    if fault == 'write-after-free':
        return (f'{fault} {finding["free"]["call"]} {stream("free")} {stream("alloc")} '
                f'{finding["address"] - finding["base"]} {finding["bytes"]}')
    if fault == 'free-before-alloc':
        return f'{fault} {finding["free"]["call"]} {stream("free")} {stream("alloc")}'
    if fault == 'memory-fault':
        past = finding['address'] - finding['base'] - finding['size']
        # Behind a block it depends on the moment whether the block was freed before.
        where = f'{finding.get("free", {}).get("call", "-")} inside' if past < 0 else f'past {past}'
        return f'{fault} {finding.get("alloc", {}).get("call", "-")} {where}'
    if fault == 'race':
        return f'{fault} {finding["use"]["call"]} {stream("use")} {stream("other")}'
    other = 'alloc' if fault in ('use-before-alloc', 'out-of-bounds') else 'free'
    return f'{fault} {finding["use"]["call"]} {stream("use")} {stream(other)}'


def with_sites(lines):
    """A call that an earlier line has told is a number in later ones."""
    told = {}
    for line in lines:
        for key in ('use', 'other', 'alloc', 'free'):
            site = line.get(key)
            if isinstance(site, int):
                line[key] = told[site]
            elif site:
                told[site['site']] = site
    return lines


def run(program, name, folder, guarded, possible):
    path = os.path.join(folder, f'{name}.{possible}.json')
    env = dict(os.environ, SOMASHIM_CHECK='all', SOMASHIM_CHECK_FILE=path, SOMASIM_DEVICES='2',
               SOMASHIM_CHECK_POSSIBLE=str(possible))
    if guarded:
        env.update(SOMASHIM_CHECK_GUARD='4096', SOMASHIM_CHECK_FRONT='200')
    done = subprocess.run([program, name], env=env, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        return None, []
    lines = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            lines = with_sites([json.loads(line) for line in f])
    found = ';'.join(said(l) for l in lines if l['kind'] == 'finding')
    # Whoever uses memory that is not mapped any more may die of it, once that has been said.
    if found and done.returncode and (guarded or 'memory-fault' in found):
        return found, lines
    if done.returncode or not lines or lines[-1]['kind'] != 'summary':
        return f'status {done.returncode}, {len(lines)} lines: {done.stderr}', lines
    return found, lines


def main():
    guarded, no_faults = '--guarded' in sys.argv, '--no-faults' in sys.argv
    program, *names = [arg for arg in sys.argv[1:] if not arg.startswith('--')]
    listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    cases = dict(line.split('\t') for line in listed.splitlines())
    cases = {name: expect.split('|')[-guarded] for name, expect in cases.items()}
    cases = {name: expect for name, expect in cases.items() if expect != '-'}
    if no_faults:
        cases = {n: expect for n, expect in cases.items() if not expect.startswith('memory-fault')}
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names or cases:
            possible = cases[name].startswith('possible')
            got, lines = run(program, name, folder, guarded, 1)
            quiet = run(program, name, folder, guarded, 0)[0] if possible else ''
            if got is None:
                skipped += 1
            elif got != cases[name] or quiet:
                failed += 1
                print(f'{name}: expected "{cases[name]}", got "{got}", and "{quiet}" without the possible')
            for line in lines:
                if line['kind'] == 'finding' and not (line['text'] and line['mend']):
                    print(f'{name}: no words')
                    failed += 1
    print(f'{len(names or cases)} programs, {failed} judged wrong' + f', {skipped} not run' * bool(skipped))
    return failed != 0


sys.exit(main())
