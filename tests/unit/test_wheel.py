#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/wheel.py: the wheel of a small tree is whole, always the same, and runs where it was unpacked.

    test_wheel.py WHEEL_PY SOMASHIM LIBRARY MAN_PAGE
"""
import base64, csv, hashlib, os, shutil, subprocess, sys, tempfile, zipfile

wheel_py, command, library, man_page = sys.argv[1:5]
folder = tempfile.mkdtemp(prefix='somashim-wheel-')


def path(*names):
    return os.path.join(folder, *names)


def run(*args, **env):
    return subprocess.run(args, capture_output=True, text=True, timeout=120, env=dict(os.environ, **env))


try:
    for source, place in ((command, 'bin/somashim'), (library, 'lib/libsomashim.so'), (man_page, 'share/man/man1/somashim.1')):
        os.makedirs(os.path.dirname(path('tree', place)), exist_ok=True)
        shutil.copy(source, path('tree', place))
    made = []
    for out in 'one', 'two':
        os.mkdir(path(out))
        done = run(sys.executable, wheel_py, path('tree'), '1.2.3', 'manylinux2014_x86_64', path(out))
        assert done.returncode == 0, done
        made.append(done.stdout.strip())
    assert os.path.basename(made[0]) == 'somashim-1.2.3-py3-none-manylinux2014_x86_64.whl', made
    assert open(made[0], 'rb').read() == open(made[1], 'rb').read(), 'not reproducible'
    with zipfile.ZipFile(made[0]) as wheel:
        names = set(wheel.namelist())
        info = 'somashim-1.2.3.dist-info/'
        listed = {}
        for name, digest, size in csv.reader(wheel.read(info + 'RECORD').decode().splitlines()):
            listed[name] = digest
            if digest:
                data = wheel.read(name)
                want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
                assert digest == 'sha256=' + want and int(size) == len(data), name
        assert set(listed) == names and [n for n in listed if not listed[n]] == [info + 'RECORD'], names ^ set(listed)
        assert 'somashim-1.2.3.data/data/share/man/man1/somashim.1' in names, names
        assert wheel.getinfo('somashim/tree/bin/somashim').external_attr >> 16 & 0o111
        wheel.extractall(path('site'))  # which keeps no modes
    where = dict(PYTHONPATH=path('site'))
    preload = run(sys.executable, '-m', 'somashim', '--preload', **where).stdout.strip()
    assert preload == path('site', 'somashim', 'tree', 'lib', 'libsomashim.so') and os.path.exists(preload), preload
    done = run(sys.executable, '-m', 'somashim', 'options', **where)
    assert done.returncode == 0 and 'SOMASHIM_BACKING' in done.stdout, done
    # It serves with the library of the wheel. The program makes no HIP call, and its status comes back.
    done = run(sys.executable, '-m', 'somashim', 'run', '-q', 'sh', '-c', 'echo "$LD_PRELOAD"; exit 7', **where)
    assert done.returncode == 7 and preload in done.stdout, done
finally:
    shutil.rmtree(folder)
