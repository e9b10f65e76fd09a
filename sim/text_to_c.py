#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a header with a text file as a string: text_to_c.py NAME OUT TEXT"""
import json
import sys

name, out, text = sys.argv[1:]
with open(out, 'w') as f:
    f.write('static const char %s[] =\n' % name)
    for line in open(text):
        if not line.startswith('//'):
            f.write('\t%s\n' % json.dumps(line))
    f.write('\t;\n')
