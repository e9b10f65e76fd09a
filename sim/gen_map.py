#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a linker version script from the tables of exports. Every export gets the version
node that it has in the real library."""
import re
import sys

kind, out, tables = sys.argv[1], sys.argv[2], sys.argv[3:]
nodes = {}
for path in tables:
    for line in open(path):
        m = re.match(r'([ESVNX])\((?:[\w ]+\*?, )?(_*h(?:ip|sa)\w+|_Z\w+), (?:([\d.]+))?', line)
        if m:
            node = 'ROCR_1' if kind == 'hsa' else 'hip_' + m.group(3)
            nodes.setdefault(node, []).append(m.group(2) + ('_spt' if m.group(1) == 'S' else ''))
with open(out, 'w') as f:
    prev = ''
    order = sorted(nodes, key=lambda n: [int(x) for x in re.findall(r'\d+', n)])
    for i, node in enumerate(order):
        f.write('%s {\nglobal:\n%s' % (node, ''.join('\t%s;\n' % s for s in sorted(nodes[node]))))
        f.write('local: *;\n}%s;\n' % prev if i == 0 else '}%s;\n' % prev)
        prev = ' ' + node
    own = '\tsomasim_*;\n' + {'hsa': '\tsim_*;\n', 'cuda': '\tsomacuda_*;\n'}.get(kind, '')
    f.write('SOMASIM_1 {\nglobal:\n%s};\n' % own)
