#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files as C arrays: embed.py NAME=FILE[,FILE...]... >HEADER

Each NAME becomes `static const char NAME[]` with all its files, and `NAME_size`.
"""
import sys


def literal(data):
    out = []
    for byte in data:
        if byte == 10:
            out.append('\\n')
        elif byte in b'"\\':
            out.append('\\' + chr(byte))
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append('\\%03o' % byte)
    return '"' + ''.join(out) + '"'


for argument in sys.argv[1:]:
    name, files = argument.split('=', 1)
    data = b''.join(open(f, 'rb').read() for f in files.split(','))
    print('static const char %s[] =' % name)
    for at in range(0, len(data) or 1, 120):
        print('\t' + literal(data[at:at + 120]))
    print(';\n#define %s_size (sizeof(%s) - 1)' % (name, name))
