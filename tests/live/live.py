# SPDX-License-Identifier: MIT
"""What a process shows while it runs: its page, somashim top and dump, and its metrics.

live.py SOMASHIM SHIM HOLD CASE    each function test_CASE below is one case
"""
import fcntl, json, mmap, os, pty, random, re, select, shutil, struct, subprocess, sys, tempfile, termios, time

somashim, shim, hold_program, case = sys.argv[1:5]
WAIT = '60000'  # ms; nothing here depends on how fast the machine is


class Hold:
    """A running tests/live/hold.c, after it has allocated."""

    def __init__(self, directory, threads=1, **env):
        self.env = dict(os.environ, LD_PRELOAD=shim, SOMASHIM_LIVE=directory,
                        SOMASHIM_STATS='1', SOMASHIM_DECAY_MS='600000000', **env)
        self.err = tempfile.TemporaryFile('w+')
        self.p = subprocess.Popen([hold_program, str(threads)], env=self.env, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err)
        self.attributes = {}
        for line in self.p.stdout:
            name, *figures = line.rsplit(' ', 4)
            if line.startswith('pid '):
                break
            self.attributes[name] = dict(zip(
                ('used', 'used_high', 'reserved', 'reserved_high'), map(int, figures)))
        self.pid = self.p.pid

    def say(self, line):
        self.p.stdin.write(line + '\n')
        self.p.stdin.flush()

    def end(self):
        """Lets it exit; returns what it wrote to stderr."""
        self.say('quit')
        status = self.p.wait()
        self.err.seek(0)
        text = self.err.read()
        assert status == 0, (status, text)
        return text


def run(*args, directory, status=0):
    env = dict(os.environ, SOMASHIM_LIVE=directory)
    out = subprocess.run([somashim, *args], env=env, capture_output=True, text=True)
    assert out.returncode == status, (args, out)
    return out.stdout if status == 0 else out.stderr


def top(directory, *args):
    return json.loads(run('top', '--once', '--json', *args, directory=directory))


def pages(directory):
    return sorted(os.listdir(directory))


def pools_of(process):
    return {p['name']: p for d in process['devices'] for p in d['pools']}


def stats_of(text):
    """The table of SOMASHIM_STATS: figures by the name of the pool. Sizes are in tenths of MiB."""
    pools = {}
    for line in text.splitlines():
        head = re.match(r'somashim: device \d+ (.*?)(?: pool)? \((\w+)\)$', line)
        if head:
            pool = pools.setdefault(head[1], {})
        m = re.match(r'somashim:   allocations (\d+), frees (\d+), hits (\d+) .*misses (\d+), out of memory (\d+)', line)
        if m:
            pool.update(zip(('allocations', 'frees', 'hits', 'misses', 'out_of_memory'), map(int, m.groups())))
        m = re.match(r'somashim:   segments .*reserved ([\d.]+) MiB \(high ([\d.]+)\), used ([\d.]+) MiB \(high ([\d.]+)\)', line)
        if m:
            pool.update(zip(('reserved', 'reserved_high', 'used', 'used_high'), m.groups()))
    return pools


def check_agreement(threads, directory):
    metrics = directory + '/m.%p.prom'
    h = Hold(directory, threads, SOMASHIM_METRICS=metrics)
    h.say('poll')
    sample = top(directory, '--wait', WAIT)
    (process,) = sample['processes']
    assert process['pid'] == h.pid and process['current'], process
    assert process['command'] == os.path.basename(hold_program)[:15], process
    pools = pools_of(process)
    for name, attributes in h.attributes.items():
        for key, value in attributes.items():
            assert pools[name][key] == value, (name, key, pools[name], attributes)
    dump = run('dump', str(h.pid), '--timeout', '60', directory=directory)
    stats = stats_of(h.end())
    assert stats_of(dump) == stats, (dump, stats)
    prom = open(metrics.replace('%p', str(h.pid))).read()
    assert set(stats) == set(pools) and len(stats) == 3, (stats, pools)
    for name, figures in stats.items():
        for key, value in figures.items():
            shown = pools[name][key]
            if isinstance(value, str):
                shown = '%.1f' % (shown / 2**20)
            assert shown == value, (name, key, shown, value)
        for metric, key in (('used_high_bytes', 'used_high'), ('reserved_high_bytes', 'reserved_high'),
                            ('allocations_total', 'allocations'), ('frees_total', 'frees'),
                            ('out_of_memory_total', 'out_of_memory')):
            m = re.search(r'^somashim_%s\{.*pool="%s"\} (\d+)$' % (metric, name), prom, re.M)
            assert m and int(m[1]) == pools[name][key], (metric, name, m, pools[name])
    # What lives is what the dump lists.
    blocks = re.findall(r'^somashim: +(0x[0-9a-f]+) +(\d+) +(\d+) +\d+  (.*?) +\S+$', dump, re.M)
    for name in pools:
        listed = sum(int(b[2]) for b in blocks if b[3] == name)
        assert listed == pools[name]['used'], (name, listed, pools[name])
    device = process['devices'][0]
    assert device['used'] == sum(p['used'] for p in pools.values())
    assert device['reserved'] == sum(p['reserved'] for p in pools.values())
    assert sample['devices'][0]['reserved'] == device['reserved']
    assert [f for f in pages(directory) if not f.endswith('.prom')] == []


def test_agree(directory):
    check_agreement(1, directory)


def test_agree_threads(directory):
    check_agreement(16, directory)


def test_burst(directory):
    """Samples and dumps while many threads hit: figures are of one moment each."""
    h = Hold(directory, 8)
    h.say('burst')
    last = 0
    for _ in range(5):
        (process,) = top(directory, '--wait', WAIT)['processes']
        pool = pools_of(process)['default']
        assert process['current'] and pool['allocations'] >= last
        assert pool['used'] <= pool['used_high'] <= pool['reserved_high']
        last = pool['allocations']
        assert 'live blocks' in run('dump', str(h.pid), '--timeout', '60', directory=directory)
    h.end()


def test_idle(directory):
    h = Hold(directory, SOMASHIM_DECAY_THREAD='0') # or that thread would bring the page up to date
    (process,) = top(directory, '--wait', '50')['processes']
    assert not process['current'], process
    pools = pools_of(process)
    for name, attributes in h.attributes.items():
        for key, value in attributes.items():
            assert pools[name][key] == value, (name, key, pools[name], attributes)
    out = directory + '.out'
    with open(out, 'w') as f:
        f.write('mine')
    said = run('dump', str(h.pid), '-o', out, '--timeout', '1', directory=directory, status=1)
    assert 'made no HIP call in 1 s' in said, said
    assert open(out).read() == 'mine', 'a file is emptied although nobody answered'
    # The request was taken back: nothing is written when it calls again.
    h.say('poll')
    (process,) = top(directory, '--wait', WAIT)['processes']
    assert process['current'] and len(pages(directory)) == 1, (process, pages(directory))
    assert run('dump', str(h.pid), '-o', out, '--timeout', '60', directory=directory) == ''
    assert 'live blocks: ' in open(out).read()
    os.unlink(out)
    h.end()
    assert 'has no page' in run('dump', str(h.pid), directory=directory, status=1)
    assert pages(directory) == []


def test_kill(directory):
    h = Hold(directory)
    (name,) = pages(directory)
    open(directory + '/' + name + '.dump', 'w').close()
    h.p.kill()
    h.p.wait()
    assert len(pages(directory)) == 2
    assert top(directory)['processes'] == []
    assert pages(directory) == []
    # A program that starts cleans up as well.
    h = Hold(directory)
    h.p.kill()
    h.p.wait()
    second = Hold(directory)
    assert len(pages(directory)) == 1
    second.end()


def test_stale(directory):
    h = Hold(directory)
    (name,) = pages(directory)
    _, space, pid, start = name.split('-')
    page = open(directory + '/' + name, 'rb').read()
    other_start = 'somashim-%s-%s-%d' % (space, pid, int(start) + 1)
    no_process = 'somashim-%s-%d-1' % (space, 2**22 + 1)
    empty = 'somashim-%s-%d-2' % (space, 2**22 + 1)
    container = 'somashim-1-%s-%s' % (pid, start)
    no_page = ['somashim-%s-%s-x' % (space, pid), 'somashim-%s-0-1' % space, 'somashim-']
    for file in [other_start, no_process, container, *no_page]:
        open(directory + '/' + file, 'wb').write(page)
    open(directory + '/' + empty, 'w').close()
    # In another namespace the lock tells who runs: that of a file descriptor, or of a mapping alone.
    with open(directory + '/' + container, 'r+b') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        mapping = mmap.mmap(f.fileno(), 0)
    for _ in range(2):
        shown = top(directory)['processes']
        assert [p['other_namespace'] for p in shown] == [True, False], shown
        assert pages(directory) == sorted([name, container, *no_page]), pages(directory)
    mapping.close()
    assert [p['other_namespace'] for p in top(directory)['processes']] == [False]
    assert pages(directory) == sorted([name, *no_page]), pages(directory)
    h.end()


def test_namespace(directory):
    """The page of a process seen from another pid namespace, while it runs and when it was killed; a child of it
    that a fork made does not count."""
    h = Hold(directory)
    (name,) = pages(directory)
    other = re.sub(r'^somashim-\d+', 'somashim-1', name)
    os.rename(directory + '/' + name, directory + '/' + other)  # as its name is there
    assert [p['other_namespace'] for p in top(directory)['processes']] == [True]
    h.say('leave')
    assert h.p.stdout.readline() == 'left\n'
    assert [p['other_namespace'] for p in top(directory)['processes']] == [True]
    h.p.kill()
    h.p.wait()
    assert top(directory)['processes'] == [] and pages(directory) == []


def test_hostile(directory):
    """Files that look like pages, of processes that run."""
    h = Hold(directory)
    (name,) = pages(directory)
    good = bytearray(open(directory + '/' + name, 'rb').read())
    sleeper = subprocess.Popen(['sleep', '300'])
    start = open('/proc/%d/stat' % sleeper.pid).read().rsplit(')', 1)[1].split()[19]
    fake = directory + '/' + 'somashim-%s-%d-%s' % (name.split('-')[1], sleeper.pid, start)
    random.seed(1)
    for i in range(30):
        page = bytearray(good) if i % 2 else bytearray(random.randbytes(len(good)))
        page[:16] = good[:16]
        for _ in range(200 * (i % 4)):
            page[random.randrange(16, len(page))] = random.randrange(256)
        if i % 5 == 0:
            page = page[:random.randrange(len(page))]
        open(fake, 'wb').write(page)
        shown = top(directory, '--wait', '0')['processes']
        assert h.pid in [p['pid'] for p in shown]
        text = run('top', '--once', '--wait', '0', directory=directory)
        assert all(' ' <= c <= '~' or c == '\n' for c in text), text
    os.unlink(fake)
    os.symlink(directory + '/' + name, fake)
    assert len(top(directory, '--wait', '0')['processes']) == 1
    os.unlink(fake)
    os.mkfifo(fake)
    assert len(top(directory, '--wait', '0')['processes']) == 1
    os.unlink(fake)
    if os.geteuid() == 0:  # as another user, who sees nothing of ours and whose files are not ours
        open(fake, 'wb').write(good)
        os.chown(fake, 12345, 12345)
        os.chmod(directory, 0o755)
        env = dict(os.environ, SOMASHIM_LIVE=directory)
        for user, count in ((12345, 1), (12346, 0)):
            out = subprocess.run([somashim, 'top', '--once', '--json', '--wait', '0'], env=env,
                                 user=user, capture_output=True, text=True)
            if out.returncode in (126, 127) or 'Permission denied' in out.stderr:
                continue  # the build is in a place that this user may not enter
            assert len(json.loads(out.stdout)['processes']) == count, (user, out)
        os.unlink(fake)
    sleeper.kill()
    h.end()


def test_fork(directory):
    h = Hold(directory)
    before = pages(directory)
    h.say('fork')
    assert h.p.stdout.readline() == 'forked\n'
    assert pages(directory) == before
    h.say('poll')
    (process,) = top(directory, '--wait', WAIT)['processes']
    assert process['current']
    h.end()


def test_exec(directory):
    h = Hold(directory)
    h.say('exec')
    while os.readlink('/proc/%d/exe' % h.pid) == os.path.realpath(hold_program):
        time.sleep(0.01)
    assert top(directory)['processes'] == []
    # An hour would be over after the test.
    said = run('dump', str(h.pid), '--timeout', '3600', directory=directory, status=1)
    assert 'runs another program' in said, said
    h.p.kill()
    h.p.wait()
    assert top(directory)['processes'] == [] and pages(directory) == []


def test_killed(directory):
    """somashim run says what a killed program held, wherever its page is."""
    odd = directory + '/a[b]*c'
    os.mkdir(odd)
    env = dict(os.environ, SOMASHIM_LIVE=odd, SOMASHIM_STATS='0')
    p = subprocess.Popen([somashim, 'run', hold_program], env=env, text=True, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (line := p.stdout.readline()).startswith('pid '):
        assert line
    os.kill(int(line.split()[1]), 9)
    said = p.communicate()[1]
    assert p.returncode == -9 and re.search(r'^somashim: process %s was killed\. \d+\.\d s before, .* in use '
                                            % line.split()[1], said, re.M), said


def test_grown(directory):
    """What is said of a killed program is not older than the last memory that it took, or did not get."""
    for count, vram in (('40', '4G'), ('1', '4G'), ('0', '512M')):
        env = dict(os.environ, SOMASHIM_LIVE=directory, SOMASHIM_STATS='0', SOMASIM_VRAM=vram,
                   SOMASHIM_OOM_REPORTS='none')
        out = subprocess.run([somashim, 'run', os.path.dirname(hold_program) + '/live_grows', count],
                             env=env, text=True, capture_output=True)
        assert out.returncode == -9 and int(out.stdout) >= 2**24, out
        used = '%.1f MiB' % (int(out.stdout) / 2**20)
        said = re.search(r' was killed\. \d+\.\d s before, (.*?) were in use .* after (\d+) (allocations?),', out.stderr)
        assert said and said[1] == used and int(said[2]) == int(out.stdout) >> 24, (count, used, out.stderr)
        assert said[3] == ('allocation' if said[2] == '1' else 'allocations'), (count, used, out.stderr)


def test_freed(directory):
    """What is said of a killed program knows its last free, although it made no call after it."""
    env = dict(os.environ, SOMASHIM_LIVE=directory, SOMASHIM_STATS='0', SOMASHIM_DECAY_MS='600000')
    p = subprocess.Popen([somashim, 'run', os.path.dirname(hold_program) + '/live_frees'], env=env, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = p.stdout.readline().split()[1]
    end = time.monotonic() + 60
    while top(directory, pid)['processes'][0]['devices'][0]['used'] != 12 << 20:
        assert time.monotonic() < end, top(directory, pid)
        time.sleep(0.02)
    said = p.communicate('.')[1]
    assert p.returncode == -11 and re.search(r' before, 12\.0 MiB were in use .* after 2 allocations, 1 free ', said), said


def test_deleted(directory):
    """A program that was removed, or built again, while it runs."""
    global hold_program
    copy = directory + '/copy'
    shutil.copy(hold_program, copy)
    hold_program = copy
    h = Hold(directory)
    os.unlink(copy)
    h.say('poll')
    (process,) = top(directory, '--wait', WAIT)['processes']
    assert process['executable'] == os.path.realpath(copy) and process['current'], process
    h.end()


def test_off(directory):
    for word in ('off', '0'):
        env = dict(os.environ, LD_PRELOAD=shim, SOMASHIM_LIVE=word)
        p = subprocess.Popen([hold_program], env=env, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        while not p.stdout.readline().startswith('pid '):
            pass
        default = [f for f in os.listdir('/dev/shm') if '-%d-' % p.pid in f]
        p.communicate('quit\n')
        assert default == [], default
    env = dict(os.environ, LD_PRELOAD=shim, SOMASHIM_LIVE=directory + '/none')
    out = subprocess.run([hold_program], env=env, input='quit\n', text=True, capture_output=True)
    assert out.returncode == 0 and 'no page for somashim top' in out.stderr, out
    assert 'No such file' in run('top', '--once', directory=directory + '/none', status=2)


def test_job(directory):
    h = Hold(directory, SLURM_PROCID='3', SLURM_NTASKS='8', SLURM_LOCALID='1', SLURM_JOB_ID='4711',
             SOMASHIM_METRICS=directory + '/m.prom', SOMASHIM_LIMIT='1G')
    (p,) = top(directory, '--wait', '0')['processes']
    assert (p['rank'], p['ranks'], p['local_rank'], p['job'], p['launcher']) == \
        (3, 8, 1, '4711', 'slurm'), p
    assert p['host'] == os.uname().nodename and p['devices'][0]['limit'] == 2**30, p
    text = open(directory + '/m.prom').read()
    assert 'somashim_running{pid="%d"' % h.pid in text and ',rank="3",slurm_job="4711"} 1' in text, text
    h.end()
    check_metrics(directory + '/m.prom')
    text = open(directory + '/m.prom').read()
    assert re.search(r'^somashim_limit_bytes\{.*device="[0-9a-f:.]+"\} 1073741824$', text, re.M), text
    assert re.search(r'^somashim_running.* 0$', text, re.M), text
    assert re.search(r'^somashim_used_bytes\{.*pool="default"\} 0$', text, re.M), text
    assert pages(directory) == ['m.prom'], pages(directory)


TYPES = {
    'somashim_used_bytes': 'gauge', 'somashim_reserved_bytes': 'gauge',
    'somashim_free_in_flight_bytes': 'gauge', 'somashim_limit_bytes': 'gauge',
    'somashim_used_high_bytes': 'gauge', 'somashim_reserved_high_bytes': 'gauge',
    'somashim_allocations_total': 'counter', 'somashim_frees_total': 'counter',
    'somashim_driver_calls_total': 'counter', 'somashim_out_of_memory_total': 'counter',
    'somashim_running': 'gauge',
}


def check_metrics(path):
    """The exposition format, and the names and types that are promised."""
    text = open(path).read()
    assert text.endswith('\n')
    types, helped, seen, current = {}, set(), set(), None
    for line in text.splitlines():
        if line.startswith('# HELP '):
            current = line.split()[2]
            assert current not in helped, line
            helped.add(current)
        elif line.startswith('# TYPE '):
            _, _, name, kind = line.split()
            assert name == current, line
            types[name] = kind
        else:
            m = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\d+)', line)
            assert m and m[1] == current, line
            assert (m[1], m[2]) not in seen, line
            seen.add((m[1], m[2]))
    assert types == TYPES, types
    assert {name for name, _ in seen} >= set(TYPES) - {'somashim_limit_bytes'}
    try:
        subprocess.run(['promtool', 'check', 'metrics'], stdin=open(path), check=True)
    except FileNotFoundError:
        print('promtool (package prometheus) is not there')


def test_metrics(directory):
    """A name with everything in it that needs care, and a place that cannot be written."""
    odd = directory + '/a"b\\c d'
    os.symlink(os.path.abspath(hold_program), odd)
    env = dict(os.environ, LD_PRELOAD=shim, SOMASHIM_LIVE='off', SOMASHIM_METRICS=directory + '/m.prom',
               SLURM_PROCID='0', SLURM_JOB_ID='j"\\\x01\u00e9')
    out = subprocess.run([odd], env=env, input='quit\n', text=True, capture_output=True)
    assert out.returncode == 0, out
    check_metrics(directory + '/m.prom')
    text = open(directory + '/m.prom').read()
    assert 'comm="a\\"b\\\\c d"' in text and 'slurm_job="j\\"\\\\???"' in text, text
    assert sorted(pages(directory)) == sorted([os.path.basename(odd), 'm.prom']), pages(directory)
    env['SOMASHIM_METRICS'] = directory + '/none/m.prom'
    out = subprocess.run([odd], env=env, input='quit\n', text=True, capture_output=True)
    assert out.returncode == 0 and out.stderr.count('cannot write SOMASHIM_METRICS') == 1, out


def needs_terminal():
    """Ends the case as skipped where there are no pseudo-terminals: a chroot without devpts, a sandbox, none left."""
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as e:
        print('skipped: no pseudo-terminal (openpty): %s' % e)
        sys.exit(77)


def test_no_terminal(directory):
    """The cases that need a terminal skip where none can be had."""
    def fails():
        raise FileNotFoundError(2, 'No such file or directory')
    os.openpty = os.forkpty = fails
    for needs in (test_screen, test_no_screen, test_narrow_screen):
        try:
            needs(directory)
        except SystemExit as end:
            assert end.code == 77
        else:
            raise AssertionError(needs)


def terminal(directory, stdin=None, **env):
    """Runs top on a terminal until it ends. Returns the status of its end and what it showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({'TERM': 'xterm', 'SOMASHIM_LIVE': directory, **env})
        if stdin:
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.execv(somashim, [somashim, 'top', '--delay', '50'])
    shown = b''
    try:
        while data := os.read(fd, 65536):
            shown += data
    except OSError:  # the last process that had it has closed it
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_no_screen(directory):
    """Where no key can come, or ncurses does not know the terminal."""
    needs_terminal()
    status, shown = terminal(directory, '/dev/null')
    assert status == 0 and shown == b'No process of this user is served by somashim.\r\n', (status, shown)
    status, shown = terminal(directory, TERM='nosuch')
    assert status == 2 and shown.startswith(b"somashim: top: no terminal 'nosuch'"), (status, shown)


def test_metrics_name(directory):
    """Processes with one name for their metrics: each that runs has a file and labels of its own. What one that has
    ended left is not kept."""
    path, second, pages_of = directory + '/m.prom', directory + '/m.2.prom', directory + '/pages'
    os.mkdir(pages_of)

    def text(of):
        return open(of).read()

    a = Hold(pages_of, SOMASHIM_METRICS=path)
    b = Hold(pages_of, SOMASHIM_METRICS=path)
    assert 'pid="%d"' % a.pid in text(path) and 'copy=' not in text(path), text(path)
    assert 'copy="2"' in text(second) and 'pid="%d"' % b.pid in text(second), text(second)
    assert 'host="%s"' % os.uname().nodename in text(path), text(path)
    said = b.end()
    assert second in said, said
    a.p.kill()
    a.p.wait()
    c = Hold(pages_of, SOMASHIM_METRICS=path)
    assert 'pid="%d"' % c.pid in text(path), text(path)
    c.end()
    assert sorted(f for f in os.listdir(directory) if 'prom' in f) == ['m.2.prom', 'm.prom']


def test_screen(directory):
    needs_terminal()
    h = Hold(directory)
    h.say('poll')
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM='xterm', SOMASHIM_LIVE=directory, LINES='30', COLUMNS='160')
        os.execv(somashim, [somashim, 'top', '--delay', '50'])
    shown = b''
    wanted = [str(h.pid).encode(), b'classic', b'MiB', b'ALLOC/S', b'by reserved']
    while not all(w in shown for w in wanted):
        assert select.select([fd], [], [], 60)[0], shown
        shown += os.read(fd, 65536)
    os.write(fd, b's')
    while b'used' not in shown[shown.rindex(b'by reserved'):]:
        shown += os.read(fd, 65536)
    os.write(fd, b'q')
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass
    assert os.waitpid(pid, 0)[1] == 0
    h.end()


def painted(data, lines, columns):
    """The lines of a terminal after these bytes. Only what ncurses sends to an xterm is understood."""
    screen, y, x = [[' '] * columns for _ in range(lines)], 0, 0
    for m in re.finditer(r'\x1b\[([?>]?[\d;]*)([a-zA-Z@`])|\x1b[()][AB0]|\x1b[=>78M]|(.)', data, re.S):
        n = [int(v) if v.isdigit() else 0 for v in (m[1] or '').split(';')]
        if m[2] == 'H':
            y, x = max(n[0], 1) - 1, max(n[1] if len(n) > 1 else 1, 1) - 1
        elif m[2] == 'd':
            y = max(n[0], 1) - 1
        elif m[2] in ('G', '`'):
            x = max(n[0], 1) - 1
        elif m[2] == 'C':
            x += max(n[0], 1)
        elif m[2] == 'J' or m[2] == 'K':
            for row in screen if m[2] == 'J' else [screen[y]]:
                row[0 if m[2] == 'J' else x:] = [' '] * (columns - (0 if m[2] == 'J' else x))
        elif m[2] == 'X' or m[2] == 'b':
            for k in range(max(n[0], 1)):
                screen[y][x + k] = ' ' if m[2] == 'X' else screen[y][x - 1]
            x += max(n[0], 1) if m[2] == 'b' else 0
        elif m[3] == '\r':
            x = 0
        elif m[3] == '\n':
            y += 1
        elif m[3] == '\b':
            x -= 1
        elif m[3] and m[3] >= ' ':
            assert x < columns, ('a line is broken', ''.join(screen[y]), m[3])
            screen[y][x] = m[3]
            x += 1
    return [''.join(row).rstrip() for row in screen]


def test_narrow_screen(directory):
    """No row is broken on a narrow terminal: the least important columns go, and the keys have a line of their own."""
    needs_terminal()
    h = Hold(directory)
    h.say('poll')
    all_titles = 'PID RANK COMMAND DEVICE POOL USED RESERVED IN FLIGHT USED HI RES. HI ALLOC/S FREE/S OLD'
    for columns, titles in ((160, all_titles), (100, 'PID RANK COMMAND DEVICE POOL USED RESERVED IN FLIGHT RES. HI'),
                            (60, 'PID DEVICE POOL USED RESERVED'), (45, 'PID POOL USED RESERVED'),
                            (30, 'PID USED RESERVED'), (15, 'PID'), (7, '')):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM='xterm', SOMASHIM_LIVE=directory, LINES='24', COLUMNS=str(columns))
            os.execv(somashim, [somashim, 'top', '--delay', '3600000'])
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        data = b''
        while b'q quit' not in data:
            assert select.select([fd], [], [], 60)[0], data
            data += os.read(fd, 65536)
        os.write(fd, b'q')
        try:
            while more := os.read(fd, 65536):
                data += more
        except OSError:
            pass
        assert os.waitpid(pid, 0)[1] == 0
        lines = painted(data.decode().split('\x1b[?1049l')[0], 24, columns)
        keys = re.sub(r'[ ,]+', ' ', lines[23])
        every = 'q quit s sort arrows PgUp PgDn Home scroll'
        assert re.match(keys + r'\b', every) and len(keys) > (34 if columns >= 45 else 5), (columns, lines[23])
        head = next(i for i, l in enumerate(lines) if l.split()[:1] == ['PID']) if titles else 0
        assert not titles or lines[head].split() == titles.split(), (columns, lines)
        assert columns < 45 or lines[head + 1].split()[0] == str(h.pid), (columns, lines)
        pools = [l.split()[titles.split().index('POOL')] for l in lines[head + 1:23] if l] if columns in (60, 45) else []
        assert len(set(pools)) == len(pools), (columns, lines)
    h.end()


def test_stacks(directory):
    """A dump of a process that records has the stacks of its blocks."""
    env = dict(os.environ, LD_PRELOAD=shim, SOMASHIM_LIVE=directory)
    program = os.path.join(os.path.dirname(os.path.abspath(hold_program)), 'live_traced')
    p = subprocess.Popen([program, directory + '/a trace'], env=env, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == 'ready\n'
    dump = run('dump', str(p.pid), '--timeout', '60', directory=directory)
    block = next(i for i, l in enumerate(dump.splitlines()) if re.match(r'somashim: +0x\w+ +123400 ', l))
    stack = dump.splitlines()[block + 1:]
    assert any('allocate_something' in l for l in stack) and any(' main' in l for l in stack), dump
    p.communicate('')
    assert p.returncode == 0


def test_mpi(directory):
    """The ranks of a job, as Open MPI starts them."""
    end = directory + '/end'
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
               SOMASHIM_LIVE=directory, SOMASHIM_METRICS=directory + '/%p.prom')
    try:
        job = subprocess.Popen(['mpirun', '-n', '8', '--oversubscribe', '--bind-to', 'none',
                                '-x', 'LD_PRELOAD=' + shim, '-x', 'LD_LIBRARY_PATH', '-x', 'SOMASHIM_LIVE',
                                '-x', 'SOMASHIM_METRICS', hold_program, '2', end],
                               env=env, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        print('skipped: no Open MPI (openmpi-bin)')
        sys.exit(77)
    shown = []
    while len(shown) < 8 or not all(p['current'] and len(pools_of(p)) == 3 for p in shown):
        assert job.poll() is None
        sample = top(directory, '--wait', '1000')
        shown = [p for p in sample['processes'] if 'rank' in p]
    assert sorted(p['rank'] for p in shown) == list(range(8)), shown
    assert {(p['ranks'], p['launcher']) for p in shown} == {(8, 'openmpi')}, shown
    (device,) = sample['devices']
    assert device['processes'] == 8, device
    assert device['used'] == sum(p['devices'][0]['used'] for p in shown)
    rank5 = next(p for p in shown if p['rank'] == 5)
    dump = run('dump', str(rank5['pid']), '--timeout', '60', directory=directory)
    assert ', rank 5 of 8' in dump.splitlines()[0], dump
    open(end, 'w').close()
    assert job.wait() == 0
    for p in shown:
        check_metrics(directory + '/%d.prom' % p['pid'])
        assert ',rank="%d"' % p['rank'] in open(directory + '/%d.prom' % p['pid']).read()
    assert not [f for f in pages(directory) if f.startswith('somashim-')]


with tempfile.TemporaryDirectory(prefix='somashim-live.') as tmp:
    globals()['test_' + case](tmp)
