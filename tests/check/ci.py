#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does what docs/ci.md lets a CI service do: its program, the commands of its jobs, its script.

    ci.py DOCUMENT SOMASHIM SIM      exits with 77 where no clang compiles HIP
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# For a machine without AMD's library for devices: what the kernel of the document needs of it. HIPCC stands for hipcc.
DEVICE = '\n'.join(f'extern "C" __attribute__((device)) inline unsigned long __ockl_get_{name}(unsigned) {{ return {value}; }}'
                   for name, value in (('group_id', '__builtin_amdgcn_workgroup_id_x()'), ('local_size', '64'),
                                       ('local_id', '__builtin_amdgcn_workitem_id_x()')))
HIPCC = '''#!/bin/sh
exec clang++ -x hip -std=c++17 -nogpulib --rocm-path=/usr -include "$(dirname "$0")/device.h" "$@" -lamdhip64
'''


def block(text, first):
    """The indented block whose first line has this in it."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('    ') and first in line)
    end = start
    while end < len(lines) and (not lines[end] or lines[end].startswith('    ')):
        end += 1
    return '\n'.join(line[4:] for line in lines[start:end]).strip() + '\n'


def github_steps(job):
    """The commands of each step that is not about packages."""
    steps = re.findall(r'- name: (\w+)\n +run: \|\n((?: {10}.*\n)+)', job)
    return {name: re.sub(r'^ +', '', commands, flags=re.M) for name, commands in steps if name != 'packages'}


def gitlab_commands(job, section):
    found = re.search(r'^  ' + section + r':\n((?:    - .*\n)+)', job, flags=re.M).group(1)
    return re.sub(r'^    - ', '', found, flags=re.M)


def main():
    document, somashim, sim = map(os.path.abspath, sys.argv[1:])
    with open(document, encoding='utf-8') as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        tools, work = os.path.join(folder, 'tools'), os.path.join(folder, 'work')
        os.makedirs(tools)
        os.makedirs(os.path.join(work, 'ci'))
        for name, what in (('hipcc', HIPCC), ('device.h', DEVICE)):
            with open(os.path.join(tools, name), 'w', encoding='utf-8') as f:
                f.write(what)
        os.chmod(os.path.join(tools, 'hipcc'), 0o755)
        os.symlink(somashim, os.path.join(tools, 'somashim'))
        for name, first in (('app.hip', '#include <hip'), ('ci/quality.py', 'import hashlib')):
            with open(os.path.join(work, name), 'w', encoding='utf-8') as f:
                f.write(block(text, first))
        env = dict(os.environ, PATH=tools + ':' + os.environ['PATH'], SOMASIM_QUIET='1', SIM=sim)
        env.pop('LD_LIBRARY_PATH', None)

        def run(commands, want):
            done = subprocess.run(['sh', '-e', '-c', commands], cwd=work, env=env, capture_output=True, text=True, timeout=100)
            if done.returncode != want:
                sys.exit(f'{commands}ended with {done.returncode}, not {want}:\n{done.stdout}{done.stderr}')
            return done.stderr

        github = github_steps(block(text, 'name: check'))
        gitlab = block(text[text.index('## GitLab'):], 'check:')
        assert set(github) == {'build', 'check'}, github
        commands = gitlab_commands(gitlab, 'script')
        assert commands == github['build'] + github['check'], 'the jobs differ'
        tried = subprocess.run(['sh', '-c', github['build']], cwd=work, env=env, capture_output=True, text=True)
        if tried.returncode:
            print('no compiler for HIP:', tried.stderr)
            sys.exit(77)
        said = run(github['check'], 1)
        assert 'not ordered after hipMallocAsync' in said, said
        with open(os.path.join(work, 'found.sarif'), encoding='utf-8') as f:
            results = json.load(f)['runs'][0]['results']
        places = [r['locations'][0]['physicalLocation'] for r in results]
        assert all(p['artifactLocation']['uri'] == 'app.hip' and p['region']['startLine'] > 1 for p in places), places
        run(gitlab_commands(gitlab, 'after_script'), 0)
        with open(os.path.join(work, 'quality.json'), encoding='utf-8') as f:
            issues = json.load(f)
        assert len(issues) == len(results) and all(i['location']['path'] == 'app.hip' for i in issues), issues
        # What is known is left out, and something new is not.
        run(block(text, '--gen-suppressions'), 0)
        run(github['check'], 0)
        with open(os.path.join(work, 'known.txt'), 'r+', encoding='utf-8') as f:
            lines = f.readlines()
            f.seek(0)
            f.truncate()
            f.writelines(lines[2:])
        run(github['check'], 1)


main()
