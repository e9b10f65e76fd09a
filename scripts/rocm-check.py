#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rocm-check.py RELEASE ROOT SHIM: compares one release's headers and libraries with
what somashim assumes. ROOT holds the unpacked packages. Prints a line per
disagreement and exits 1 if there is one. Called by rocm-matrix.sh.
rocm-check.py --exports SHIM: only whether the library exports what its tables say;
needs no package."""
import glob
import os
import re
import subprocess
import sys
import tempfile

LAST = 9999  # what has not changed so far is as it was in releases to come, until one says otherwise
source = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
flags = ['-D_GNU_SOURCE', '-D__HIP_PLATFORM_AMD__', '-DSOMASHIM_VERSION=""', '-I' + source,
         '-fvisibility=hidden', '-Wno-deprecated-declarations']
hip_header = '#include <hip/hip_runtime_api.h>\n'
cc = os.environ.get('CC', 'gcc').split()

# In another header only; the mangled names, which the symbol check compares, carry the types.
cxx_only = re.compile(r'_Z\d+hip\w+|hipExtModuleLaunchKernel|hipHccModuleLaunchKernel|'
                      'hipGetDevicePropertiesR0000') # this one in hip_deprecated.h
# Exported beside the entries.
beside = {'hsa_amd_ipc_memory_create', 'hsa_amd_register_system_event_handler',
          'hsa_amd_portable_export_dmabuf', 'hsa_amd_portable_export_dmabuf_v2', 'hsa_amd_vmem_retain_alloc_handle',
          'rocprofiler_register_library_api_table',
          'roctxMarkA', 'roctxRangePop', 'roctxRangePushA', 'roctxRangeStartA', 'roctxRangeStop',
          'somashim_handed_out', 'somashim_report', 'somashim_returned', 'somashim_version',
          '__hipRegisterManagedVar', '_exit', '_Exit', 'dlsym', 'dlvsym',
          '__asan_default_options', '__tsan_default_suppressions'}
# Functions that the shim wraps on purpose: of libc, so that statistics are written at an exit of
# these kinds, too, and to answer for addresses of HIP; of roctx, whose ranges it records.
wrapped = {'_exit', '_Exit', 'dlsym', 'dlvsym'} | {name for name in beside if name.startswith('roctx')}
# Types that the shim knows by pointer only.
passed = {'HIP_MEMCPY3D', 'HIP_MEMSET_NODE_PARAMS', 'hipExternalMemoryHandleDesc',
          'hipExternalSemaphoreSignalParams', 'hipExternalSemaphoreWaitParams',
          'hipDeviceProp_t', 'hipDeviceProp_tR0600'}
# What the shim decides by the version it finds, or writes down for itself:
# (expression, value, first release, last release).
decided = [
    ('hipMemoryTypeDevice', 1, 502, 599), ('hipMemoryTypeDevice', 2, 600, LAST),
    ('__builtin_offsetof(hipMemPoolProps, maxSize)', 24, 600, LAST),
    ('sizeof(hipMemAllocationProp)', 32, 507, LAST),
    ('__builtin_offsetof(hipMemAllocationProp, type)', 0, 507, LAST),
    ('__builtin_offsetof(hipMemAllocationProp, requestedHandleType)', 4, 507, LAST),
    ('__builtin_offsetof(hipMemAllocationProp, location)', 8, 507, LAST),
    ('__builtin_offsetof(hipMemAllocationProp, win32HandleMetaData)', 16, 507, LAST),
    ('hipGraphNodeTypeHost', 3, 507, LAST),
    ('sizeof(hipLaunchParams)', 56, 502, LAST), ('__builtin_offsetof(hipLaunchParams, stream)', 48, 502, LAST),
    ('__builtin_offsetof(hipLaunchParams, args)', 32, 502, LAST),
    ('__builtin_offsetof(hipFunctionLaunchParams, kernelParams)', 48, 507, LAST),
    ('sizeof(hipFunctionLaunchParams)', 56, 507, LAST),
    ('__builtin_offsetof(hipFunctionLaunchParams, hStream)', 40, 507, LAST),
    ('__builtin_offsetof(hipLaunchConfig_t, stream)', 32, 702, LAST),
    ('__builtin_offsetof(HIP_LAUNCH_CONFIG, hStream)', 32, 702, LAST),
    ('hipGraphNodeTypeMemcpy', 1, 507, LAST), ('hipGraphNodeTypeMemset', 2, 507, LAST),
    ('__builtin_offsetof(hipGraphNodeParams, memset)', 16, 604, LAST),
    ('__builtin_offsetof(hipGraphNodeParams, memcpy.copyParams)', 32, 604, LAST),
    ('sizeof(hip_Memcpy2D)', 128, 502, LAST),
    ('hipMemoryTypeUnified', 3, 502, 599), ('hipMemoryTypeUnified', 11, 600, LAST),
    ('hipMemoryTypeManaged', 3, 600, LAST),
    ('__builtin_offsetof(HIP_MEMSET_NODE_PARAMS, pitch)', 8, 600, 699),
    ('__builtin_offsetof(HIP_MEMSET_NODE_PARAMS, elementSize)', 20, 600, 699),
    ('__builtin_offsetof(HIP_MEMSET_NODE_PARAMS, width)', 24, 600, 699),
    ('__builtin_offsetof(HIP_MEMSET_NODE_PARAMS, height)', 32, 600, 699),
] + [('__builtin_offsetof(%s, %s)' % (name, member), at, first, last)
     # shim/bounds/driver_copy.c: what both sides have, and the copy
     for name, first, last, members, offsets in (
         ('hip_Memcpy2D', 502, LAST, 'XInBytes Y MemoryType Device Pitch WidthInBytes Height',
          ((0, 8, 16, 32, 48), (56, 64, 72, 88, 104), (112, 120))),
         ('HIP_MEMCPY3D', 502, 599,
          'XInBytes Y Z MemoryType Device Pitch Height WidthInBytes Height Depth',
          ((0, 4, 8, 16, 32, 48, 52), (56, 60, 64, 72, 88, 104, 108), (112, 116, 120))),
         ('HIP_MEMCPY3D', 600, LAST,
          'XInBytes Y Z MemoryType Device Pitch Height WidthInBytes Height Depth',
          ((0, 8, 16, 32, 48, 64, 72), (80, 88, 96, 112, 128, 144, 152), (160, 168, 176))))
     for side, places in zip(('src', 'dst', ''), offsets)
     for member, at in zip(
         [side + m for m in (members.split()[-len(places):] if not side else
                             members.split()[:len(places)])], places)]
# The members that the shim reads or writes.
members = {
    'hipPointerAttribute_t': 'device devicePointer hostPointer isManaged allocationFlags',
    'hipMemPoolProps': 'allocType handleTypes location win32SecurityAttributes',
    'hipMemLocation': 'type id', 'hipMemAccessDesc': 'location flags',
    'hipExtent': 'width height depth', 'hipPos': 'x y z',
    'hipMemcpy3DParms': 'srcArray srcPos srcPtr dstArray dstPos dstPtr extent',
    'hipMemsetParams': 'dst elementSize height pitch width',
    'hipPitchedPtr': 'ptr pitch xsize ysize', 'hipIpcMemHandle_t': 'reserved',
    'hipMemPoolPtrExportData': 'reserved', 'dim3': 'x y z',
}
bad = []


def run_cc(text, arguments):
    return subprocess.run(cc + arguments + ['-x', 'c', '-'], input=text, text=True,
                          capture_output=True)


def errors(text, arguments=()):
    done = run_cc(text, [*theirs, '-fsyntax-only', '-Werror=incompatible-pointer-types',
                         *arguments])
    return re.findall(r'error: (.*)', done.stderr)


def symbols(path):
    """{name: version node} of what a library defines."""
    out = subprocess.run(['readelf', '-W', '--dyn-syms', path], text=True, check=True,
                         capture_output=True).stdout
    found = {}
    for f in map(str.split, out.splitlines()):
        if len(f) >= 8 and f[3] in ('FUNC', 'OBJECT', 'IFUNC') and f[6] not in ('UND', 'ABS'):
            name, _, node = f[7].replace('@@', '@').partition('@')
            found.setdefault(name, node)
    return found


def table(macro, parameters, wanted):
    """The rows of an X-macro of shim/entries.h, without any header of HIP."""
    done = run_cc('#include "shim/entries.h"\n#define ROW(%s) @ %s\n%s(ROW)\n'
                  % (parameters, wanted, macro), ['-I' + source, '-E', '-P'])
    rows = re.findall(r'@ ([^@\n]*)', done.stdout)
    if not rows:
        sys.exit('no rows in %s: %s' % (macro, done.stderr))
    return [r.split() for r in rows]


def driver_functions(macro):
    text = open(source + '/driver/rocm/calls.h').read()
    return re.findall(r'X\((\w+)\)', text[text.index('#define %s(X)' % macro):].split('\n\n')[0])


def compare_exports():
    """The shim shadows nothing that it does not implement, and implements what it says."""
    for name in sorted(names | beside):
        if name not in ours:
            bad.append('%s: in the table, but not exported by the shim' % name)
    for name in sorted(set(ours) - names - beside):
        bad.append('%s: exported by the shim, but not in the table' % name)


entries = table('SS_ENTRIES', 'kind, extra, name, node, since, params, args', 'name node since')
names = {e[0] for e in entries}
ours = symbols(sys.argv[-1])
if sys.argv[1] == '--exports':
    compare_exports()
    sys.exit('\n'.join(bad) or 0)

release, root, shim = sys.argv[1:]
libs = root + '/usr/lib/x86_64-linux-gnu/'
# By HIP's own number, which is not that of ROCm from 10.0 on (driver/rocm/releases.c).
number = dict(re.findall(r'#define HIP_VERSION_(MAJOR|MINOR)\s+(\d+)',
                         open(root + '/usr/include/hip/hip_version.h').read()))
code = int(number['MAJOR']) * 100 + int(number['MINOR'])
theirs = flags + ['-isystem', root + '/usr/include']
hip = symbols(glob.glob(libs + 'libamdhip64.so.[0-9]')[0])
hsa = symbols(libs + 'libhsa-runtime64.so.1')

# ---- every entry is there from the release on that it says ------------------
for name, node, since in entries:
    want = 'hip_%d.%d' % divmod(int(node), 100)
    if (name in hip) != (int(since) <= code):
        bad.append('%s: marked since %s, but %s' % (name, since,
                   'is exported' if name in hip else 'is not exported'))
    elif name in hip and hip[name] != want:
        bad.append('%s: version node %s, not %s' % (name, hip[name], want))
for name in driver_functions('SS_HIP_FUNCTIONS'):
    if name not in hip:
        bad.append('%s: the driver calls it, but it is not exported' % name)
for name in driver_functions('SS_HSA_FUNCTIONS'):
    if name not in hsa:
        bad.append('%s: the driver calls it, but it is not exported' % name)

# ---- the shim shadows nothing that it does not implement --------------------
compare_exports()
for path in glob.glob(libs + '*.so*') + glob.glob(root + '/lib/x86_64-linux-gnu/*.so*'):
    if re.search(r'/lib(amdhip64|hsa-runtime64|rocprofiler-register)\.', path) or \
            os.path.islink(path):
        continue
    with open(path, 'rb') as f:
        if f.read(4) != b'\x7fELF': # a linker script
            continue
    for name in sorted(set(symbols(path)) & set(ours) - wrapped):
        bad.append('%s: shadows %s' % (name, os.path.basename(path)))

# ---- prototypes -------------------------------------------------------------
prototypes = [name for name, node, since in entries
              if int(since) <= code and not cxx_only.fullmatch(name)]
text = hip_header + '#include "shim/entries.h"\n' + \
    '#define E(kind, extra, name, node, since, params, args) hipError_t name params;\n' + \
    'SS_ENTRIES(E)\n' + \
    '#define H(ret, name, params) ret name params;\nSS_HELPERS(H)\n'
bad += ['prototype: ' + e for e in errors(text)]
text = hip_header + ''.join('void *at_%s = (void *)%s;\n' % (n, n) for n in prototypes)
bad += ['header: ' + e for e in errors(text)]
# The whole of it is built from these headers as well.
for path in sorted(glob.glob(source + '/shim/**/*.c', recursive=True) +
                   glob.glob(source + '/driver/rocm/*.c')):
    base = os.path.basename(path)
    if base != 'audit.c':
        bad += ['%s: %s' % (base, e) for e in errors('#include "%s"\n' % path)]

# ---- values and sizes: the built shim has those of its own headers ----------
used = set()
for path in (glob.glob(source + '/shim/**/*.[ch]', recursive=True) +
             glob.glob(source + '/driver/rocm/*.[ch]')):
    text = re.sub(r'/\*.*?\*/', '', open(path).read(), flags=re.S)
    used |= set(re.findall(r'\b(?:hip|HIP_)\w+\b', text))
probes = []
for name in sorted(used - names):
    for probe in ('(long)(%s)' % name, '(long)sizeof(%s)' % name):
        probes.append(probe)
for struct, fields in members.items():
    probes.append('(long)sizeof(%s)' % struct)
    probes += ['(long)__builtin_offsetof(%s, %s)' % (struct, f) for f in fields.split()]


def values(arguments):
    """{probe: value}, without the probes that do not compile."""
    good, wrong = probes, True
    while wrong: # an undeclared name is reported once only
        text = hip_header + ''.join('enum { p%d = %s };\n' % p for p in enumerate(good))
        done = run_cc(text, [*arguments, '-fsyntax-only', '-fmax-errors=0'])
        wrong = {int(n) for n in re.findall(r'^<stdin>:(\d+):\d+: error', done.stderr, re.M)}
        good = [p for i, p in enumerate(good) if i + 2 not in wrong]
    text = hip_header + '#include <stdio.h>\nint main(void)\n{\n' + \
        ''.join('printf("%%ld\\n", %s);\n' % p for p in good) + 'return 0; }\n'
    with tempfile.TemporaryDirectory() as place:
        done = run_cc(text, [*arguments, '-o', place + '/values'])
        if done.returncode:
            sys.exit(done.stderr)
        out = subprocess.run([place + '/values'], text=True, capture_output=True, check=True)
    return dict(zip(good, map(int, out.stdout.split())))


mine, other = values(flags + ['-isystem', '/usr/include']), values(theirs)
if len(mine) < 60:
    bad.append('only %d values of the built shim could be read' % len(mine))
for probe, value in mine.items():
    name = re.sub(r'.*\((\w+).*', r'\1', probe)
    # What the shim uses but this release lacks cannot differ.
    if probe in other and other[probe] != value and name != 'hipMemAllocationProp' and \
            name not in passed and not name.startswith('HIP_VERSION'):
        bad.append('%s: %d, not %d' % (probe.replace('(long)', ''), other[probe], value))

text = hip_header
for expression, value, first, last in decided:
    if first <= code <= last:
        text += '_Static_assert((long)(%s) == %d, "decided at run time");\n' % (expression, value)
bad += ['layout: ' + e for e in errors(text)]

# ---- the positions of shim/route/api_table.h ------------------------------------------
header = root + '/usr/include/hip/amd_detail/hip_api_trace.hpp'
if os.path.exists(header) and os.path.exists(source + '/shim/route/api_table.h'):
    body = re.search(r'struct HipDispatchTable \{(.*?)\n\};', open(header).read(), re.S).group(1)
    order = re.findall(r'^\s*t_\w+\s+(\w+)_fn;', body, re.M)
    slots = re.findall(r'T\((\w+), (\d+)\)', open(source + '/shim/route/api_table.h').read())
    for name in sorted((names & set(order)) - {name for name, slot in slots}):
        bad.append('%s: not in shim/route/api_table.h, at position %d' % (name, order.index(name)))
    for name, slot in slots:
        if int(slot) < len(order) and order[int(slot)] != name:
            bad.append('%s: position %s of the API table is %s' % (name, slot, order[int(slot)]))
        elif name in order and order.index(name) != int(slot):
            bad.append('%s: position %d of the API table, not %s'
                       % (name, order.index(name), slot))

for line in bad:
    print('%s: %s' % (release, line))
print('%s: %d entries, %d prototypes, %d values compared' %
      (release, len(entries), len(prototypes), len(set(mine) & set(other))))
sys.exit(1 if bad else 0)
