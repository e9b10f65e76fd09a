#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory outside of the pools, and what the kernel says that a process has: in recordings, `top`, `run`, and the report on
a failure. The kernel is made of files.

    test_outside.py SOMASHIM OUTSIDE SIM
"""
import json, os, re, shutil, subprocess, sys, tempfile, time

MIB = 1 << 20
somashim, program, sim = map(os.path.realpath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix='somashim-outside-')
os.chdir(folder)
for name in list(os.environ):
    if name.startswith(('SLURM_', 'OMPI_', 'PMI', 'FLUX_', 'SOMASHIM_', 'LD_')):
        del os.environ[name]
os.mkdir('live')
device = dict(os.environ, LD_LIBRARY_PATH=sim, SOMASIM_QUIET='1', SOMASIM_HIP_VERSION='6.4', SOMASHIM_STATS='0',
              SOMASHIM_LIVE=os.path.join(folder, 'live'), SOMASIM_KERNEL_ROOT=os.path.join(folder, 'root'))


def put(path, text):
    path = 'root' + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(text)


def dri(fd, client, vram, pci='0000:01:00.0', key='drm-memory-vram', target='/dev/dri/renderD128'):
    put('/proc/self/fdinfo/%d' % fd, 'pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t%s\n'
        'drm-memory-gtt:\t999 KiB\n%s:\t%d KiB\n' % (client, pci, key, vram // 1024))
    os.makedirs('root/proc/self/fd', exist_ok=True)
    os.symlink(target, 'root/proc/self/fd/%d' % fd)


def kfd(node, gpu, location, pid, vram):
    put('/sys/class/kfd/kfd/topology/nodes/%d/gpu_id' % node, '%d\n' % gpu)
    put('/sys/class/kfd/kfd/topology/nodes/%d/properties' % node, 'simd_count 304\nlocation_id %d\ndomain 0\n' % location)
    put('/sys/class/kfd/kfd/proc/%d/vram_%d' % (pid, gpu), '%d\n' % vram)


def run(*args, status=0, env=device):
    done = subprocess.run([somashim, *args], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == status, (args, done.returncode, done.stderr[:2000])
    return done


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


try:
    # Two descriptors of one client count once; other files, GPUs and clients do not mix.
    dri(5, 1, 70 * MIB)
    dri(6, 1, 70 * MIB)
    dri(7, 2, 10 * MIB)
    dri(8, 3, 50 * MIB, pci='0000:02:00.0')
    dri(9, 4, 50 * MIB, target='/dev/null')
    done = run('record', '-o', 'a.trace', program)
    one = json.loads(run('report', '--json', 'a.trace').stdout)['processes'][0]
    d = one['devices'][0]
    out = {k: (v['peak'] / MIB, v['end'] / MIB) for k, v in d['outside'].items()}
    reserved = d['reserved_peak']['reserved'] / MIB
    equal({k: out[k] for k in ('managed', 'host', 'arrays', 'runtime')},
          {'managed': (3, 0), 'host': (7, 5), 'arrays': (1, 0), 'runtime': (2, 0)}, 'what calls took')
    equal(out['kernel'], (80, 80), 'kernel')
    assert 80 - reserved - 3 <= out['rest'][0] <= 80, (out, reserved)
    text = run('report', 'a.trace').stdout
    assert re.search(r'\nOutside of the pools\n.*\n +3.00 MiB +[\d.]+ +0 B  GPU 0: managed memory \(hipMallocManaged\)\n', text), text
    assert re.search(r'^ +7.00 MiB +[\d.]+ +5.00 MiB  GPU 0: host memory', text, re.M), text
    half = json.loads(run('report', '--json', '--from', '%.9f' % one['seconds'], 'a.trace').stdout)['processes'][0]['devices'][0]
    equal(half['outside']['host']['end'] / MIB, 5, 'a part of the recording')
    equal(half['outside']['kernel']['end'] / MIB, 80, 'a part of the recording')
    page = run('report', '-o', '-', 'a.trace').stdout
    assert '"outside":{"managed":"' in page
    # The report on the allocation that failed. The device has 64 GiB.
    m = re.search(r'^somashim:   the kernel counts (\d+) for this process: pools (\d+), arrays (\d+), given by the runtime (\d+), '
                  r'the rest (\d+) \(code objects, scratch, queues\)$', done.stderr, re.M)
    assert m, done.stderr
    kernel, pools, arrays, runtime, rest = map(int, m.groups())
    equal((kernel, arrays, runtime, rest), (80 * MIB, MIB, 2 * MIB, 77 * MIB - pools), 'out of memory')
    assert 'somashim:   outside of the pools: managed memory %d, host memory %d\n' % (3 * MIB, 5 * MIB) in done.stderr, done.stderr

    # A ring that has lost the events that took them still knows the sums.
    run('record', '--ring', '4M', '-o', 'ring.trace', program, '-', '150000')
    ring = json.loads(run('report', '--json', 'ring.trace').stdout)['processes'][0]
    assert ring['lived_blocks'] and ring['allocations'] < 150000, ring['allocations']
    out = {k: (v['peak'] / MIB, v['end'] / MIB) for k, v in ring['devices'][0]['outside'].items()}
    del out['rest']
    equal(out, {'managed': (3, 0), 'host': (5, 5), 'arrays': (1, 0), 'runtime': (2, 0), 'kernel': (80, 80)}, 'a ring')

    # `run`: one more figure in its sentence, the most that was seen.
    done = run('run', program)
    m = re.search(r'MiB held, and outside of the pools ([\d.]+) MiB\.$', done.stderr, re.M)
    assert m and 70 < float(m.group(1)) <= 80, done.stderr

    # KFD counts by process, and the larger of both is taken.
    for i in 5, 6, 7, 8, 9:
        os.unlink('root/proc/self/fd/%d' % i)
    shell = 'for n in 1 2; do :; done; mkdir -p root/sys/class/kfd/kfd/proc/$$; echo 94371840 >root/sys/class/kfd/kfd/proc/$$/vram_777; exec "$@"'
    kfd(1, 777, 0x100, 99999999, 0)
    kfd(0, 0, 0, 99999999, 0)
    ready = os.path.join(folder, 'ready')
    child = subprocess.Popen(['sh', '-c', shell, 'sh', somashim, 'run', '--quiet', program, ready], env=device, stderr=subprocess.DEVNULL)
    try:
        for _ in range(60000):
            if os.path.exists(ready):
                break
            time.sleep(0.001)
        top = json.loads(run('top', '--once', '--json', '--wait', '2000').stdout)
        d = top['processes'][0]['devices'][0]
        equal((d['kernel'], d['managed'], d['host'], d['arrays'], d['runtime']), (90 * MIB, 3 * MIB, 5 * MIB, MIB, 2 * MIB), 'top')
        equal(d['rest'], 87 * MIB - d['reserved'], 'rest')
        equal((top['devices'][0]['kernel'], top['devices'][0]['rest']), (d['kernel'], d['rest']), 'sums')
        text = run('top', '--once').stdout
        assert 'the kernel counts 90.0 MiB, ' in text and re.search(r'\(managed\) +3.0 MiB$', text, re.M), text
    finally:
        if os.path.exists(ready):
            os.unlink(ready)
        child.wait(60)
    equal(child.returncode, 0, 'the program')

    # A kernel that says nothing, or nonsense: no figure, and no line.
    shutil.rmtree('root')
    assert 'kernel counts' not in run('run', program).stderr
    for text in '', 'drm-pdev:\t0000:01:00.0', 'drm-pdev:\t0000:01:00.0\ndrm-memory-vram:\tx', '\0' * 100, 'drm-pdev:' + 'x' * 9000, '\n' * 5000:
        put('/proc/self/fdinfo/5', text)
        os.makedirs('root/proc/self/fd', exist_ok=True)
        if not os.path.islink('root/proc/self/fd/5'):
            os.symlink('/dev/dri/renderD128', 'root/proc/self/fd/5')
        done = run('run', program)
        assert 'kernel counts' not in done.stderr and 'and outside of the pools' not in done.stderr, done.stderr
finally:
    os.chdir('/')
    shutil.rmtree(folder)
