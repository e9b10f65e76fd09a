#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands of docs/guide.md on the software device and compares what they print.

    guide.py [--write] BUILD docs/guide.md      --write: puts what they print into the guide

A command is an indented line that begins with "$ ", and its output is what is indented below it. The commands of a section
run one after the other in one shell, in an empty folder that has the programs of BUILD/tests/apps. Numbers, addresses and
names of this machine are left out of the comparison, since they differ from run to run, and a line "..." stands for any lines."""
import os, re, shutil, subprocess, sys, tempfile

HOME = '/home/me'


def wrong_call(why):
    print('guide.py: %s\n%s' % (why, __doc__), file=sys.stderr)
    sys.exit(2)


arguments = sys.argv[1:]
write = arguments[:1] == ['--write']
arguments = arguments[write:]
if len(arguments) != 2 or not os.path.isdir(arguments[0]) or not os.path.isfile(arguments[1]):
    wrong_call('a build folder and the guide are needed')
build, guide = map(os.path.realpath, arguments)
MARK = '=#=command %d=#='


def sections(text):
    """Lists of items: a line of text, or (command, [lines of its output])."""
    current, lines = [], text.split('\n')
    for i, line in enumerate(lines):
        if line.startswith('## '):
            yield current
            current = []
        if line.startswith('    $ '):
            current.append((line[6:], []))
        elif line.startswith('    ') and current and isinstance(current[-1], tuple):
            current[-1][1].append(line[4:])
        elif not line and current and isinstance(current[-1], tuple) and re.match(r'    (?!\$ )', ''.join(lines[i + 1:i + 2])):
            current[-1][1].append('')
        else:
            current.append(line)
    yield current


def run(commands, folder):
    """What each command prints, as lists of lines."""
    script = ''
    for i, command in enumerate(commands):
        script += 'echo "%s"\n%s\n' % (MARK % i, command)
    env = {k: v for k, v in os.environ.items() if not k.startswith(('SOMASHIM_', 'HIP_', 'LD_', 'XDG_'))}
    env.update(PATH=os.path.join(build, 'cli') + ':' + env['PATH'], LD_LIBRARY_PATH=os.path.join(build, 'sim'), SOMASIM_QUIET='1',
               SOMASIM_SEED='1', HOME=folder, PWD=folder, SOMASHIM_LIVE=os.path.join(folder, '.live'), LC_ALL='C.UTF-8')
    done = subprocess.run(['bash', '-c', script + 'wait'], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=240)
    text = done.stdout.decode('utf-8', 'replace').replace(folder, HOME).replace(build, HOME + '/somashim/build')
    text = re.sub(r'\b%s\b' % re.escape(os.uname().nodename), 'node17', text)
    parts = re.split(r'^=#=command \d+=#=\n', text, flags=re.M)[1:]
    return [part.rstrip('\n').split('\n') if part.strip() else [] for part in parts]


def plain(line):
    """The line without what differs from run to run."""
    line = re.sub(r'0x[0-9a-f]+', 'X', line)
    line = re.sub(r'(steps that helped a miss|tried): .*', r'\1', line)
    line = re.sub(r'\d[\d,.:]*( ?([KMGT]i?B|bytes|us|ms|s|%)\b)?', 'N', line)
    line = re.sub(r'\b0 B\b|\bN B\b', 'N', line)
    return re.sub(r'[\s-]+', ' ', line).strip()


def same(want, got):
    """Do the lines agree? A line "..." stands for any number of lines."""
    if not want:
        return not got
    if want[0] == '...':
        return any(same(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and want[0] == got[0] and same(want[1:], got[1:])


text = open(guide, encoding='utf-8').read()
out, bad, count = [], 0, 0
for section in sections(text):
    commands = [item[0] for item in section if isinstance(item, tuple)]
    printed = []
    if commands:
        folder = tempfile.mkdtemp(prefix='somashim-guide.')
        try:
            os.mkdir(os.path.join(folder, '.live'))
            apps = os.path.join(build, 'tests/apps')
            for name in os.listdir(apps):
                if os.access(os.path.join(apps, name), os.X_OK) and os.path.isfile(os.path.join(apps, name)):
                    os.symlink(os.path.join(apps, name), os.path.join(folder, name))
            printed = run(commands, folder)
        finally:
            shutil.rmtree(folder)
    for item in section:
        if not isinstance(item, tuple):
            out.append(item)
            continue
        command, want = item
        got = printed.pop(0) if printed else ['the shell ended early']
        count += 1
        out.append('    $ ' + command)
        keep = want if '...' in want and same([plain(l) if l != '...' else l for l in want], [plain(l) for l in got]) else got
        out += ['    ' + line if line else '' for line in (keep if write else want)]
        if not write and not same([plain(l) if l != '...' else l for l in want], [plain(l) for l in got]):
            bad += 1
            print('== $ %s\n-- the guide says:\n%s\n-- it prints:\n%s' % (command, '\n'.join(want), '\n'.join(got)))
if write:
    open(guide, 'w', encoding='utf-8').write('\n'.join(out))
print('%d commands, %d print something else' % (count, bad))
sys.exit(bad > 0 or count == 0)
