#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the documents name is there: files, functions, links, variables, and options of the command.

    test_docs.py SOMASHIM SOURCE
"""
import glob, os, re, subprocess, sys

somashim, source = map(os.path.realpath, sys.argv[1:])
os.chdir(source)
bad = []
documents = sorted(set(glob.glob('*.md') + glob.glob('docs/*.md') + glob.glob('docs/*.[17]') + glob.glob('*/README.md') +
                       glob.glob('sim/*/README.md') + glob.glob('examples/*/README.md')))
texts = {path: open(path, encoding='utf-8').read() for path in documents}
folders = 'bench cli compat config core debian docs driver live packaging scripts shim sim tests trace'.split()
tracked = [os.path.join(folder, name) for top in folders for folder, _, names in os.walk(top) for name in names]
code = ' '.join(open(path, encoding='utf-8').read() for path in tracked if re.search(r'\.(c|h|py|sh|build|in|mjs)$', path))
words = set(re.findall(r'\w+', code))


def wrong(path, text, what):
    bad.append('%s:%d: %s' % (path, texts[path].count('\n', 0, text) + 1, what))


def anchors(path):
    return {re.sub(r'[^\w\- ]', '', head.lower()).replace(' ', '-') for head in re.findall(r'^#+ (.*)', texts[path], re.M)}


for path, text in texts.items():
    plain = re.sub(r'\\f.|\\(?=-)', '', text) # of a man page
    # A path from the root, if its first folder is there. <name>, NAME and * stand for any.
    for m in re.finditer(r'(?<![\w/.$-])(?:%s)/[\w./-]*\w' % '|'.join(folders), text):
        after = text[m.end():m.end() + 1]
        name = m.group()
        if after in ('<', '*', '{', '%', '$') or re.search(r'[A-Z]{3,}$|/NN', name) or not os.path.isdir(name.split('/')[0]):
            continue
        if 'ninja -C' in text[text.rfind('\n', 0, m.start()):m.start()]:
            continue # a target of the build
        near = (name, os.path.join(os.path.dirname(path), name))
        if not any(os.path.exists(n) or glob.glob(n + '.*') for n in near):
            wrong(path, m.start(), 'there is no %s' % name)
    for m in re.finditer(r'\]\(([^)# ]*)(#[^) ]*)?\)', text):
        if re.match(r'[a-z]+:', m.group(1)):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(path), m.group(1))) if m.group(1) else path
        if not os.path.exists(target):
            wrong(path, m.start(), 'a link to %s' % target)
        elif m.group(2) and target in texts and m.group(2)[1:] not in anchors(target):
            wrong(path, m.start(), 'no heading %s' % m.group(2))
    for m in re.finditer(r'\b(?:ss|do)_[a-z]\w*\w\b(?!\*)', text):
        if m.group() not in words and not m.group().endswith('_'):
            wrong(path, m.start(), 'there is no %s' % m.group())
    for m in re.finditer(r'\bSOMA(?:SHIM|SIM)_[A-Z0-9_]*[A-Z0-9]\b', plain):
        name = m.group()
        if name not in words and '"%s"' % name.split('_', 1)[1] not in code:
            wrong(path, m.start(), 'there is no variable %s' % name)

# Each tuned number of the core stands in docs/constants.md, with its value.
rows = {(m.group(3), m.group(1)): m.group(2) for m in
        re.finditer(r'^\| `(\w+)` \| `([^`]+)` \| [^|]+ \| (\S+) \|', texts['docs/constants.md'], re.M)}
for path in glob.glob('core/*.[ch]') + glob.glob('core/[!c]*/*.[ch]'):
    for m in re.finditer(r'^#define ([A-Z_]+) +(\(?[0-9][^/\n]*?) *(?:/\*.*)?$', open(path).read(), re.M):
        if 'SS_' in m.group(2):
            continue # made of others
        if path.endswith('.c') and (path, m.group(1)) not in rows:
            bad.append('%s: %s has no row in docs/constants.md' % (path, m.group(1)))
        if rows.pop((path, m.group(1)), m.group(2)) != m.group(2):
            bad.append('docs/constants.md: %s is %s in %s' % (m.group(1), m.group(2), path))
bad += ['docs/constants.md: there is no %s in %s' % (name, path) for path, name in rows]

# Prose fits on a screen. Tables, code and links to pictures may be wider.
for path, text in texts.items():
    for number, line in enumerate(text.split('\n'), 1):
        if path.endswith('.md') and len(line) > 120 and not line.startswith(('|', '    ', '![', '#')):
            bad.append('%s:%d: a line of %d columns' % (path, number, len(line)))

# The version stands in meson.build. Whoever else names it, names the same.
version = re.search(r"version: '([0-9.]+)'", open('meson.build').read()).group(1)
for path, first in {'packaging/somashim.spec': r'somashim_version:([0-9.]+)\}', 'debian/changelog': r'\Asomashim \(([0-9.]+)\)',
                    'CHANGELOG.md': r'\n## ([0-9.]+)'}.items():
    m = re.search(first, open(path, encoding='utf-8').read())
    if not m or m.group(1) != version:
        bad.append('%s: the version is %s, not %s' % (path, version, m and m.group(1)))
for path, text in texts.items():
    for m in re.finditer(r'somashim[- ](\d+\.\d+\.\d+)', text):
        if m.group(1) != version and path != 'CHANGELOG.md':
            wrong(path, m.start(), 'the version is %s' % version)

# Each option has its place in the manual.
manual = texts['docs/libsomashim.7'].replace('\\', '')
for name in subprocess.run([somashim, 'options'], capture_output=True, text=True).stdout.split('\n'):
    name = name.split(' ')[0]
    if name.startswith('SOMASHIM_') and not re.search(r'^\.B\w* %s\b' % name, manual, re.M):
        bad.append('docs/libsomashim.7: no entry for %s' % name)

# Options of the command, where it is called in a document.
known = {}
for path, text in texts.items():
    for m in re.finditer(r'somashim ([a-z]+) ([^`\n]*)', text):
        command, rest = m.groups()
        if command not in known:
            help = subprocess.run([somashim, command, '--help'], capture_output=True, text=True)
            known[command] = help.returncode == 0 and set(re.findall(r'(--[a-z][a-z-]*)', help.stdout))
        if not known[command]:
            continue
        # What follows a program belongs to that.
        for word in rest.split():
            option = re.match(r'--[a-z][a-z-]*', word.strip('(),.;'))
            if option and option.group() not in known[command]:
                wrong(path, m.start(), 'somashim %s has no %s' % (command, option.group()))
            elif not word.startswith('-') and command in ('run', 'record', 'check'):
                break

# Each option of each subcommand stands in the manual.
command_manual = texts['docs/somashim.1'].replace('\\', '')
for command in re.findall(r'^  ([a-z]+) {2,}', subprocess.run([somashim, '--help'], capture_output=True, text=True).stdout, re.M):
    help = subprocess.run([somashim, command, '--help'], capture_output=True, text=True).stdout
    for option in sorted(set(re.findall(r'--[a-z][a-z-]*', help)) - {'--help', '--usage', '--version'}):
        if option not in command_manual:
            bad.append('docs/somashim.1: no %s of somashim %s' % (option, command))

print('%d documents' % len(texts))
print('\n'.join(bad))
assert len(texts) > 10 and known.get('replay')
sys.exit(bool(bad))
