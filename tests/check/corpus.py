#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs each program of the corpus with the checker and compares what it says with what is expected.

    corpus.py PROGRAM [NAME...]      the environment has the preload and the software device
"""
import json
import os
import subprocess
import sys
import tempfile


def said(finding):
    """What a finding is compared by, as corpus.h describes it."""
    def stream(site):
        return finding.get(site, {}).get('stream', {}).get('number', 0)
    fault = finding['fault']
    if fault == 'leak':
        return f'leak {finding["alloc"]["call"]} {finding["size"]} {finding["count"]}'
    if fault == 'overwritten-padding':
        past = finding['address'] - finding['base'] - finding['size']
        return f'{fault} {finding["alloc"]["call"]} {past} {finding["bytes"]}'
    if fault == 'write-after-free':
        return (f'{fault} {finding["free"]["call"]} {stream("free")} {stream("alloc")} '
                f'{finding["address"] - finding["base"]} {finding["bytes"]}')
    if fault == 'free-before-alloc':
        return f'{fault} {finding["free"]["call"]} {stream("free")} {stream("alloc")}'
    other = 'alloc' if fault in ('use-before-alloc', 'out-of-bounds') else 'free'
    return f'{fault} {finding["use"]["call"]} {stream("use")} {stream(other)}'


def run(program, name, folder):
    path = os.path.join(folder, name + '.json')
    env = dict(os.environ, SOMASHIM_CHECK='all', SOMASHIM_CHECK_FILE=path)
    done = subprocess.run([program, name], env=env, capture_output=True, text=True, timeout=120)
    lines = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            lines = [json.loads(line) for line in f]
    if done.returncode or not lines or lines[-1]['kind'] != 'summary':
        return f'status {done.returncode}, {len(lines)} lines: {done.stderr}', lines
    return ';'.join(said(l) for l in lines if l['kind'] == 'finding'), lines


def main():
    program, names = sys.argv[1], sys.argv[2:]
    listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    cases = dict(line.split('\t') for line in listed.splitlines())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names or cases:
            got, lines = run(program, name, folder)
            if got != cases[name]:
                failed += 1
                print(f'{name}: expected "{cases[name]}", got "{got}"')
            for line in lines:
                if line['kind'] == 'finding' and not line['text']:
                    print(f'{name}: no words')
                    failed += 1
    print(f'{len(names or cases)} programs, {failed} judged wrong')
    return failed != 0


sys.exit(main())
