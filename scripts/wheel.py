#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Packs an installed tree of somashim into a wheel. Called by scripts/dist.sh --wheel.

    wheel.py TREE VERSION PLATFORM FOLDER      prints the path of the wheel

The tree lies whole inside the package, because the command finds its libraries by its own place, and pip may put a package
anywhere. Man pages go where `man` looks beside the commands of an environment.
"""
import base64, hashlib, os, stat, sys, zipfile

TEXT = """Metadata-Version: 2.1
Name: somashim
Version: %s
Summary: Stream-ordered memory pools for unmodified HIP programs
License: MIT
Keywords: HIP,ROCm,GPU,memory
Requires-Python: >=3.6
Description-Content-Type: text/markdown

somashim serves the GPU memory of an unmodified HIP program from its own stream-ordered pools:

    somashim run ./app
    python -m somashim run python train.py

`python -m somashim --preload` prints the path of the library for LD_PRELOAD.
"""
INIT = '''# SPDX-License-Identifier: MIT
"""Stream-ordered memory pools for unmodified HIP programs. The package holds the command and the library to preload."""
import os

_TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tree')


def command():
    """Path of the command."""
    return os.path.join(_TREE, 'bin', 'somashim')


def preload():
    """Path of the library, for LD_PRELOAD."""
    return os.path.join(_TREE, 'lib', 'libsomashim.so')
'''
MAIN = '''# SPDX-License-Identifier: MIT
import os
import sys

from somashim import command, preload


def main():
    if sys.argv[1:] == ['--preload']:
        print(preload())
        return
    # Some installers do not keep the bit that makes it a program.
    if not os.access(command(), os.X_OK):
        os.chmod(command(), 0o755)
    os.execv(command(), ['somashim'] + sys.argv[1:])


if __name__ == '__main__':
    main()
'''


def digest(data):
    return 'sha256=' + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()


def files_of(tree):
    """Every file of the tree, with its place in the wheel. Links become what they point to."""
    for folder, names, files in os.walk(tree):
        names.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, tree)
            yield path, inside


def main():
    tree, version, platform, out = sys.argv[1:5]
    info = 'somashim-%s.dist-info' % version
    tag = 'py3-none-' + platform
    target = os.path.join(out, 'somashim-%s-%s.whl' % (version, tag))
    records = []
    with zipfile.ZipFile(target, 'w', zipfile.ZIP_DEFLATED) as wheel:
        def put(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))  # the same tree makes the same file
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        def add(name, data, mode=0o644):
            put(name, data, mode)
            records.append('%s,%s,%d' % (name, digest(data), len(data)))

        add('somashim/__init__.py', INIT.encode())
        add('somashim/__main__.py', MAIN.encode())
        for path, inside in files_of(tree):
            with open(path, 'rb') as f:
                data = f.read()
            place = 'somashim/tree/' + inside
            if inside.startswith('share/man/'):
                place = 'somashim-%s.data/data/%s' % (version, inside)
            add(place, data, 0o755 if os.access(path, os.X_OK) else 0o644)
        add(info + '/METADATA', (TEXT % version).encode())
        add(info + '/WHEEL', ('Wheel-Version: 1.0\nGenerator: somashim\nRoot-Is-Purelib: false\nTag: %s\n' % tag).encode())
        add(info + '/entry_points.txt', b'[console_scripts]\nsomashim = somashim.__main__:main\n')
        put(info + '/RECORD', '\n'.join(records + [info + '/RECORD,,']).encode() + b'\n')
    print(target)


main()
