#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each field that the command prints as JSON is in docs/json.md with its type, and each field of docs/json.md is printed.

    test_json.py SOMASHIM MAKE_TRACE docs/json.md SIM ALLOC_LOOP PHASES OUTSIDE
"""
import json, os, re, subprocess, sys, tempfile

somashim, make_trace, document, sim, app, phases, outside = map(os.path.realpath, sys.argv[1:8])
folder = tempfile.mkdtemp(prefix='somashim-json-')
for name in list(os.environ):
    if name.startswith(('SLURM_', 'OMPI_', 'PMI', 'FLUX_', 'SOMASHIM_', 'LD_')):
        del os.environ[name]
os.chdir(folder)

# ---- the document: tables by their headings --------------------------------------------------
tables, also, at = {}, {}, None
for line in open(document, encoding='utf-8'):
    head = re.match(r'#+ (.*)', line)
    row = re.match(r'\| (`.*?) \| (.*?) \| (.*)\|$', line)
    more = re.match(r'All of \*(.*)\*, and$', line)
    if head:
        at = head.group(1)
        tables[at] = {}
    elif more:
        also[at] = more.group(1)
    elif row:
        for name in re.findall(r'`(.*?)`', row.group(1)):
            assert name not in tables[at], (at, name)
            tables[at][name] = row.group(2)
seen = set()


def find(table, name):
    while table:
        if name in tables[table]:
            return table, tables[table][name]
        table = also.get(table)
    return None, None


PLAIN = {'integer': (int,), 'real': (float, int), 'text': (str,), 'boolean': (bool,), 'null': (type(None),)}


def check(value, kind, where):
    for one in re.split(r' or (?![^\[]*\])', kind):
        if one.startswith('['):
            if isinstance(value, list):
                for v in value:
                    check(v, one[1:-1], where + '[]')
                return
        elif one.startswith('*'):
            if isinstance(value, dict):
                return check_object(value, one.strip('*'), where)
        elif type(value) in PLAIN[one]:
            return
    raise AssertionError('%s: %r is no %s' % (where, value, kind))


def check_object(o, table, where):
    assert table in tables, 'no table %s' % table
    for name, value in o.items():
        of, kind = find(table, name)
        assert of, '%s has %s, which table %s of docs/json.md does not have' % (where, name, table)
        seen.add((of, name))
        check(value, kind, where + '.' + name)


def run(*args, status=0, **env):
    done = subprocess.run([somashim, *args], capture_output=True, text=True, timeout=120, env=dict(os.environ, **env))
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout


def object_of(table, *args, **more):
    o = json.loads(run(*args, **more))
    assert o['version'] == 1
    check_object(o, table, ' '.join(args[:1]))
    return o


# ---- report ----------------------------------------------------------------------------------
for rank in range(2):
    subprocess.run([make_trace, 'rank', 'rank%d' % rank, str((rank + 1) << 20)], check=True,
                   env=dict(os.environ, SLURM_PROCID=str(rank), SLURM_NTASKS='2', SLURM_JOB_ID='1'))
for kind in 'known', 'sites':
    subprocess.run([make_trace, kind, kind], check=True)
device = dict(LD_LIBRARY_PATH=sim, SOMASIM_QUIET='1', SOMASIM_HIP_VERSION='6.4', SOMASHIM_STATS='0')
run('record', '-o', 'limit', app, '2', SOMASHIM_LIMIT='1M', status=2, **device)
object_of('report', 'report', '--json', 'known')
object_of('report', 'report', '--json', 'sites')
object_of('report', 'report', '--json', '--by', 'function', 'known')
object_of('report', 'report', '--json', 'limit')
object_of('report', 'report', '--json', 'rank0', 'rank1')
object_of('report --diff', 'report', '--diff', '--json', 'rank0', 'rank1')

run('record', '-o', 'phases', phases, 'none', **device)
object_of('report', 'report', '--json', 'phases')
object_of('report', 'report', '--json', '--phase', 'forward', 'phases')

os.makedirs('root/proc/self/fd')
os.makedirs('root/proc/self/fdinfo')
os.symlink('/dev/dri/renderD128', 'root/proc/self/fd/3')
with open('root/proc/self/fdinfo/3', 'w') as f:
    f.write('drm-pdev:\t0000:01:00.0\ndrm-memory-vram:\t99999 KiB\n')
run('record', '-o', 'outside', outside, SOMASIM_KERNEL_ROOT=os.path.join(folder, 'root'), **device)
object_of('report', 'report', '--json', 'outside')

# ---- replay ----------------------------------------------------------------------------------
with open('log', 'w') as f:
    f.write('Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000000,allocate,0x10,1048576,0\n'
            '1,00:00:00.000001,free,0x10,1048576,0\n1,00:00:00.000002,allocate,0x10,134217728,0\n')
object_of('replay', 'replay', '--json', '--clock', 'log')
object_of('replay', 'replay', '--json', '--vram', '64M', 'log', status=1)

# ---- doctor, top -------------------------------------------------------------------------------
object_of('doctor', 'doctor', '--json', **dict(device, SOMASIM_HIP_VERSION='5.2'))
live = os.path.join(folder, 'live')
os.mkdir(live)
program = subprocess.Popen([somashim, 'run', '--quiet', app, '100000000'], stdout=subprocess.PIPE, text=True,
                           env=dict(os.environ, SOMASHIM_LIVE=live, **device))
try:
    for _ in range(3000):
        top = object_of('top', 'top', '--once', '--json', SOMASHIM_LIVE=live)
        if top['processes'] and top['devices']:
            break
    rows = run('top', '--once', '--log', 'log.csv', SOMASHIM_LIVE=live)
    rows = run('top', '--once', '--log', 'log.csv', str(program.pid), SOMASHIM_LIVE=live)
    lines = open('log.csv').read().splitlines()
    assert len(lines) == 3 and lines[0].startswith('time,pid,rank,'), lines
    assert lines[2].split(',')[1] == str(program.pid) and int(lines[2].split(',')[7]) > 0, lines
finally:
    program.kill()
    program.wait()
# The processes that were named have ended, so the log ends.
run('top', '--delay', '50', '--log', 'log.csv', str(program.pid), SOMASHIM_LIVE=live)
assert len(open('log.csv').read().splitlines()) == 3

never = [(t, n) for t in tables for n in tables[t] if (t, n) not in seen]
rare = {('live process', 'problem'), ('failure', 'limit'), ('frame', 'short')} # of another version; two at once; of C++
assert set(never) <= rare, 'documented, but not printed: %s' % sorted(set(never) - rare)
print('%d fields' % len(seen))
