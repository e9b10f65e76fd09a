# SPDX-License-Identifier: MIT
"""Applies mutants, patches that break one ordering rule each, to the tree in the current folder.

    apply.py PATCH...
    apply.py --check

A hunk is found by its text, not by the numbers of its lines, and white space does not count. So a
change elsewhere in the file does not matter; but the text must be there exactly once. --check changes nothing and fails if one of the
patches beside this file would not apply.
"""
import glob
import os
import sys


def hunks(path):
    """Yields (file, lines before, lines after) for each hunk of a unified diff."""
    name, old, new = None, [], []
    for line in open(path, encoding='utf-8'):
        if line.startswith(('--- ', '+++ ', '@@')):
            if old or new:
                yield name, ''.join(old), ''.join(new)
            old, new = [], []
            if line.startswith('+++ '):
                name = line[4:].strip().split('/', 1)[1]
        elif name and line[0] in ' -+':
            if line[0] != '+':
                old.append(line[1:])
            if line[0] != '-':
                new.append(line[1:])
    if old or new:
        yield name, ''.join(old), ''.join(new)


def replace(text, old, new):
    """Returns text with new in place of old, and how often old was found."""
    solid = [i for i, c in enumerate(text) if not c.isspace()]
    packed, old = ''.join(text[i] for i in solid), ''.join(old.split())
    at, found = packed.find(old), packed.count(old)
    if found != 1:
        return text, found
    return text[:solid[at]] + new.strip() + text[solid[at + len(old) - 1] + 1:], found


def apply(path):
    """Returns the changed files of the patch, by name, and how many hunks it has."""
    files, count = {}, 0
    for name, old, new in hunks(path):
        if name not in files:
            files[name] = open(name, encoding='utf-8').read()
        files[name], found = replace(files[name], old, new)
        if found != 1 or old == new:
            sys.exit(f'{path}: {found} places in {name} fit, not one:\n{old}')
        count += 1
    if not count:
        sys.exit(f'{path}: no hunk')
    return files, count


def main():
    check = sys.argv[1:] == ['--check']
    here = os.path.dirname(os.path.abspath(__file__))
    patches = sorted(glob.glob(here + '/*.patch')) if check else sys.argv[1:]
    if not patches:
        sys.exit(__doc__)
    total = 0
    for path in patches:
        files, count = apply(path)
        total += count
        for name, text in files.items():
            if not check:
                open(name, 'w', encoding='utf-8').write(text)
    print(f'{len(patches)} patches, {total} places')


main()
