#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One call of libc fails, inside the library or the command: no program crashes, hangs or gets a wrong byte, and the
checker never says that all is well.
  host_faults.py [--long] [--only NAME] BUILD    --long: each call of each place, not the first of it
BUILD is a build folder. Prints how many calls failed, and for each that broke something how to repeat it."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

FINDING = 'free-before-use'
# Exit statuses of the checker: never 0, which would say that all is well.
CHECKED = (9, 2, 3, 126)
SAYS = ((9, 'Fault: ' + FINDING), (2, 'somashim: | gave 2'), (3, 'nothing was checked|not all was checked'),
        (126, 'somashim: '))


class Case:
    """A command that runs once for each fault."""
    def __init__(self, name, inside, command, env=(), good=(0,), says=()):
        self.name, self.inside, self.command = name, inside, command
        self.env, self.good = dict(env), good
        self.says = says  # of a status a pattern that it prints then


def cases(build):
    program, corpus = build + '/tests/faults/faulted', build + '/tests/check/check_corpus'
    command = build + '/cli/somashim'
    library = {'LD_PRELOAD': build + '/tests/faults/libhost_faults.so:' + build + '/shim/libsomashim.so'}
    alone = {'LD_PRELOAD': build + '/tests/faults/libhost_faults.so'}
    outputs = {'SOMASHIM_' + name: '{dir}/' + name for name in ('TRACE', 'JOURNAL', 'METRICS', 'LOG')}
    shim = 'libsomashim.so'
    yield Case('streams', shim, [program, 'streams'], library)
    yield Case('classic', shim, [program, 'classic'], dict(library, SOMASHIM_BACKING='vmm'))
    yield Case('shared', shim, [program, 'shared'], dict(library, **outputs, SOMASHIM_STATS='1'))
    yield Case('check', shim, [command, 'check', '--error-exitcode', '9', corpus, 'free-without-wait'],
               dict(alone, SOMASHIM_CHECK_QUARANTINE='1M'), good=CHECKED, says=SAYS)
    yield Case('command', 'somashim', [command, 'check', '--error-exitcode', '9', corpus, 'free-without-wait'],
               alone, good=CHECKED, says=SAYS)
    yield Case('merge', 'somashim', [command, 'check', '--error-exitcode', '9', '--json={dir}/json', '--merge', '{found}'],
               alone, good=CHECKED, says=SAYS)


class Run:
    def __init__(self, build, found):
        self.build, self.found = build, found

    def run(self, case, at='', log=''):
        """The reason why the run is wrong, or ''."""
        folder = tempfile.mkdtemp(prefix='somashim-faults.')
        try:
            fill = {'dir': folder, 'found': self.found}
            env = {k: v for k, v in os.environ.items() if not k.startswith(('SOMASHIM_', 'SOMASIM_', 'LD_PRELOAD'))}
            env.update(SOMASIM_QUIET='1', SOMASIM_HIP_VERSION='7.2', LD_LIBRARY_PATH=self.build + '/sim', TMPDIR=folder,
                       SOMASHIM_LIVE=folder, HOST_FAULTS_IN=case.inside, MALLOC_PERTURB_='113')
            env.update((k, v.format(**fill)) for k, v in case.env.items())
            if at:
                env['HOST_FAULTS_AT'] = at
            if log:
                env['HOST_FAULTS_LOG'] = log
            try:
                done = subprocess.run([c.format(**fill) for c in case.command], env=env, timeout=120, text=True, errors='replace',
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            except subprocess.TimeoutExpired:
                return 'it hangs'
            if done.returncode not in case.good:
                return f'status {done.returncode}: {done.stdout[-300:]}'
            for status, text in case.says:
                if done.returncode == status and not re.search(text, done.stdout):
                    return f'status {status} without {text!r}: {done.stdout[-300:]}'
            return ''
        finally:
            shutil.rmtree(folder)


def places(log, most):
    """OFFSET#K of each call that is to fail, from the calls that were made; with its name."""
    count = {}
    for line in open(log):
        name, offset = line.split()
        n = count[offset] = count.get(offset, 0) + 1
        if n <= most:
            yield f'{offset}#{n}', name


def main():
    arguments = sys.argv[1:]
    long = '--long' in arguments and not arguments.remove('--long')
    only = None
    if '--only' in arguments:
        i = arguments.index('--only')
        only = arguments[i + 1]
        del arguments[i:i + 2]
    if len(arguments) != 1 or arguments[0].startswith('-'):
        sys.exit(__doc__)
    build = os.path.realpath(arguments[0])
    failed = total = 0
    with tempfile.TemporaryDirectory(prefix='somashim-faults.') as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        run = Run(build, folder + '/found')
        open(run.found, 'w').write('{"kind": "finding", "number": 1, "fault": "%s", "size": 1, "count": 1, "text": "%s", '
                                   '"use": {"call": "hipMemsetAsync", "frames": [{"module": "%s/tests/faults/faulted", "offset": 4660}]}}\n'
                                   '{"kind": "summary", "rank": 0, "pid": 1}\n' % (FINDING, FINDING, build))
        for case in cases(build):
            if only and case.name != only:
                continue
            log = folder + '/' + case.name
            wrong = run.run(case, log=log)
            if wrong:
                sys.exit(f'{case.name}: without any fault: {wrong}')
            faults = list(places(log, 1 << 30 if long else 1))
            for (at, name), wrong in zip(faults, pool.map(lambda f: run.run(case, at=f[0]), faults)):
                if wrong:
                    print(f'{case.name}: {name} at {at} of {case.inside} (HOST_FAULTS_AT={at}): {wrong}')
                    failed += 1
            print(f'{case.name}: {len(faults)} calls failed, one at a time')
            total += len(faults)
    print(f'{total} calls failed, {failed} of them broke something')
    sys.exit(1 if failed else 0)


main()
