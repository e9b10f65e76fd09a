#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/format.sh does: format.py CLANG_FORMAT CHECK [FILE...]"""
import difflib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTH, TAB = 100, 8
OFF, ON = '/* clang-format off */', '/* clang-format on */'
HOLD, FREE = '// clang-format off', '// clang-format on'  # around macros, while clang-format runs


def columns(text):
    return len(text.expandtabs(TAB))


def by_hand(lines):
    """(start, end) of what is laid out by hand: macros, and what is between OFF and ON."""
    found, start, off = [], None, False
    for n, line in enumerate(lines):
        if start is None and (line.strip() == OFF or re.match(r'\s*#\s*define\b', line)):
            start, off = n, line.strip() == OFF
        if start is not None and (line.strip() == ON or n + 1 == len(lines) if off else not line.endswith('\\')):
            found.append((start, n + 1))
            start = None
    return found


def replaced(lines, blocks):
    """The lines with other blocks at the places that are laid out by hand."""
    places = by_hand(lines)
    if len(places) != len(blocks):
        raise SystemExit('format.sh: clang-format moved a macro')
    for (start, end), block in reversed(list(zip(places, blocks))):
        lines[start:end] = block
    return lines


def fill(words, first, rest, last):
    """Words as lines that begin with `first`, then `rest`, with room for `last` at the end."""
    out, line = [], first
    for i, word in enumerate(words):
        blank = '' if line in (first, rest) and (line.endswith(' ') or not line) else ' '
        end = last if i == len(words) - 1 else ''
        if columns(line + blank + word + end) > WIDTH and line not in (first, rest):
            out.append(line)
            line, blank = rest, ''
        line += blank + word
    return out + [line + last]


def paragraphs(body):
    """Groups of lines of a comment that may be filled together. What stands in columns, or is
    indented, is alone, and is not filled: (lines, indent of the first, of the others or None)."""
    groups = []
    for text in body:
        lead = len(text) - len(text.lstrip(' '))
        item = re.match(r' *([-*] +|\d+\. +)', text)
        group = groups[-1] if groups else None
        row = re.match(r' *\S.*?\S {2,}(?=\S)', text)
        if row and not re.search(r' {2,}|\t', text[row.end():]):
            groups.append([[text], lead, row.end()])  # a name, and what it means
        elif not text.strip() or row or '\t' in text.strip():
            groups.append([[text], 0, None])
        elif item:
            groups.append([[text], lead, item.end()])
        elif group and group[2] is not None and lead == group[2]:
            group[0].append(text)
        else:
            groups.append([[text], lead, lead if lead == 0 else None])
    return groups


def wrap_comment(lines):
    """A comment that begins a line: fills the paragraphs that are too wide anew."""
    indent = re.match(r'\s*', lines[0]).group()
    compact = not re.fullmatch(r'\s*/\*+', lines[0])
    rest, source = indent + ' * ', lines
    if compact:
        # Text without stars is aligned by hand.
        stars = all(re.match(r'\s*\*', line) for line in lines[1:])
        body = [re.sub(r'^\s*(/\*|\*(?!/)|)' + (' ?' if stars else r'\s*'), '', line) for line in lines]
        body[-1] = re.sub(r'\s*\*/\s*$', '', body[-1])
        if not body[-1].strip():
            return lines  # the end stands on a line of its own
    elif all(re.match(r'\s*\*', line) for line in lines[1:]) and lines[-1].strip() == '*/':
        source = lines[1:-1]
        body = [re.sub(r'^\s*\* ?', '', line) for line in source]
    else:
        return lines
    out, at = [], 0
    for texts, first, hang in paragraphs(body):
        begin = indent + '/* ' if compact and at == 0 else rest
        last = ' */' if compact and at + len(texts) == len(body) else ''
        own = source[at:at + len(texts)]
        if hang is not None and any(columns(line) > WIDTH for line in own):
            own = fill(re.findall(r'\S+(?: {2,}\S+)?', ' '.join(t.strip() for t in texts)), begin + ' ' * first,
                       rest + ' ' * hang, last)
        out += own
        at += len(texts)
    return out if compact else [lines[0]] + out + [lines[-1]]


def trailing(line):
    """(code, comment) of a line that ends with a comment, or begins one behind code."""
    m = re.fullmatch(r'(\s*\S.*?)\s*(/\*((?!\*/).)*(\*/)?)', line)
    if not m or m.group(1).count('"') % 2 or m.group(1).lstrip().startswith(('*', '/*')):
        return None
    return m.group(1), m.group(2), bool(m.group(4))


def wrap_comments(lines):
    out, i, off = [], 0, False
    while i < len(lines):
        line = lines[i]
        off = line.strip() == OFF or off and line.strip() != ON
        if off or line.endswith('\\'):
            out.append(line)
            i += 1
            continue
        if line.lstrip().startswith('/*'):
            end = i
            while '*/' not in lines[end]:
                end += 1
            comment = lines[i:end + 1]
            if lines[end].rstrip().endswith('*/') and any(columns(t) > WIDTH for t in comment):
                comment = wrap_comment(comment)
            out += comment
            i = end + 1
            continue
        found = trailing(line)
        if found:
            end = i
            while '*/' not in lines[end]:
                end += 1
            if any(columns(t) > WIDTH for t in lines[i:end + 1]) and lines[end].rstrip().endswith('*/'):
                code, first, _ = found
                words = ' '.join([first] + [re.sub(r'^\s*\*?\s*', '', t, count=1) if not
                                            re.fullmatch(r'\s*\*/', t) else '*/' for t in lines[i + 1:end + 1]]).split()
                indent = re.match(r'\s*', code).group()
                if re.match(r'[a-z]+$', words[1]):
                    words[1] = words[1].capitalize()
                out += fill(words[1:-1], indent + '/* ', indent + ' * ', ' */')
                out.append(code)
                i = end + 1
                continue
            out += lines[i:end + 1]
            i = end + 1
            continue
        out.append(line)
        i += 1
    return out


def lay_out(program, texts):
    """Makes each text of {name: text} final: wrapping comments changes what clang-format does, and
    the reverse, so both run until nothing changes."""
    left = list(texts)
    with tempfile.TemporaryDirectory() as at:
        shutil.copy('.clang-format', at)
        for _ in range(6):
            paths, kept = ['%s/%d%s' % (at, n, name[-2:]) for n, name in enumerate(left)], []
            for name, path in zip(left, paths):
                lines = wrap_comments(texts[name].splitlines())
                kept.append([lines[start:end] for start, end in by_hand(lines)])
                # clang-format would take {a, b} in a macro for a block of statements.
                held = [block if block[0].strip() == OFF else [HOLD] + block + [FREE] for block in kept[-1]]
                with open(path, 'w', encoding='utf-8') as file:
                    file.write('\n'.join(replaced(lines, held)) + '\n')
            jobs = [subprocess.Popen([program, '-i'] + paths[n::2]) for n in range(2) if paths[n::2]]
            if any([job.wait() for job in jobs]):
                raise SystemExit('format.sh: clang-format failed')
            moved = []
            for name, path, blocks in zip(left, paths, kept):
                with open(path, encoding='utf-8') as file:
                    lines = [line for line in file.read().splitlines() if line.strip() not in (HOLD, FREE)]
                # It takes braces away even there.
                new = '\n'.join(wrap_comments(replaced(lines, blocks))) + '\n'
                if new != texts[name]:
                    moved.append(name)
                texts[name] = new
            left = moved
            if not left:
                return
    raise SystemExit('format.sh: no layout is final: ' + ' '.join(left))


def too_wide(text):
    """Numbers of the lines of code that are wider than they may be, and could be broken. Macros, and
    comments that stand in columns, are laid out by hand."""
    off = macro = False
    for n, line in enumerate(text.splitlines(), 1):
        off = line.strip() == OFF or off and line.strip() != ON
        macro = macro or re.match(r'\s*#\s*define\b', line)
        if not off and not macro and columns(line) > WIDTH and re.match(r'[^*/ ].* ', line.strip()):
            yield n
        macro = macro and line.endswith('\\')


def main():
    program, check, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not names:
        names = subprocess.run(['git', 'ls-files', '*.c', '*.h'], capture_output=True, text=True,
                               check=True).stdout.split()
    before, wrong = {}, 0
    for name in names:
        with open(name, encoding='utf-8') as file:
            before[name] = file.read()
    after = dict(before)
    lay_out(program, after)
    for name in names:
        if after[name] != before[name] and check:
            wrong += 1
            diff = difflib.unified_diff(before[name].splitlines(), after[name].splitlines(), name, name,
                                        n=0, lineterm='')
            print('\n'.join(list(diff)[:12]))
        elif after[name] != before[name]:
            with open(name, 'w', encoding='utf-8') as file:
                file.write(after[name])
        for n in too_wide(after[name]):
            wrong += 1
            print('%s:%d: wider than %d columns' % (name, n, WIDTH))
    if wrong:
        print('format.sh: %d places are not as they should be' % wrong)
    return wrong != 0


if __name__ == '__main__':
    sys.exit(main())
