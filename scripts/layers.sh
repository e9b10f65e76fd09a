#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints which folder uses which, from the symbols of the static libraries in a build (one per folder).
# Fails on a use upwards, and if more than three files use each other in a circle.
#   scripts/layers.sh [BUILD_DIR]     exits 77 if no room is divided into folders
# LAYERS=FILE replaces the table below (for the test of this script).
set -uo pipefail
. "$(dirname "$0")/usage.sh"
build=${1:-${BUILD:-$(dirname "$0")/../build}}
[ -d "$build" ] || wrong_call "no directory $build"

# A room and its folders from the lowest to the highest. A folder uses only those before it.
# Folders joined by commas are on one level and do not use each other. "." stands for the files in the
# room itself; a room with nothing else uses no other room. A name that starts with "/" is a room that
# stands below. A folder's library is in the folder, or in the room and named lib*-ROOM-FOLDER.a.
table='
live    .
core    /trace /config base range order,backing shelf pool check .
driver  rocm,fake .
shim    process sleep check alloc stream share bounds . route
sim     device hsa hip cuda,libcuda .
cli     readers,writers,analysis report,convert,check,snapshot .
'
[ -z "${LAYERS:-}" ] || table=$(cat "$LAYERS") || exit 2

python3 - "$build" "$table" <<'EOF'
import glob, json, os, re, subprocess, sys

build, table = sys.argv[1:]
MOST = 3                 # files that may use each other in a circle
folders, level = [], {}  # in the order of the table
alone = set()            # rooms that use no other
for line in table.split('\n'):
    room, *levels = line.split() or ['']
    if levels == ['.']:
        alone.add(room)
    for n, names in enumerate(levels):
        for name in names.split(','):
            folder = room if name == '.' else name[1:] if name[0] == '/' else room + '/' + name
            level[folder] = (room, n)
            folders.append(folder)

of_libc = {'_exit', 'dlsym', 'dlvsym'} # the preload stands in front of these; everybody else means libc's
defined, wants, home = {}, {}, {}  # symbol: files; file: symbols; file: folder

def read(path, folder):
    """Reads an archive or an object. What an archive copies from a lower one is the lower's."""
    out = subprocess.run(['nm', '-A', path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        where, kind, symbol = re.fullmatch(r'(.*):[ 0-9a-f]* ([A-Za-z]) (\S+).*', line).groups()
        name = re.sub(r'\.o$', '', os.path.basename(where.rsplit(':', 1)[-1]))
        if path in named: # built from the room's directory: FOLDER_FILE
            name = name.removeprefix(os.path.basename(folder) + '_')
        file = folder + '/' + name
        for other in folders:
            if other != folder and other.startswith(folder + '/') and other + '/' + name in home:
                file = other + '/' + name
        home.setdefault(file, folder)
        if symbol in of_libc:
            continue
        if kind == 'U': # a weak one is for what the program may have loaded
            wants.setdefault(file, set()).add(symbol)
        elif kind.isupper():
            defined.setdefault(symbol, []).append(file)

# Leaves out objects of files that have moved since. None: there is no list of Meson's.
current = None
if os.path.exists(build + '/meson-info/intro-targets.json'):
    current = set()
    for target in json.load(open(build + '/meson-info/intro-targets.json')):
        at = os.path.dirname(target['defined_in'])
        for output in map(os.path.realpath, target['filename']):
            current.add(output)
            for group in target['target_sources']:
                for source in group.get('sources', []):
                    name = os.path.relpath(source, at).replace('/', '_') + '.o'
                    current.add(output + '.p/' + name)

def built(*pattern):
    paths = sorted(glob.glob(os.path.join(build, *pattern)))
    return [p for p in paths if current is None or os.path.realpath(p) in current]

divided, named = set(), set()
for folder in sorted(folders, key=lambda f: -f.count('/')):  # rooms last
    room = level[folder][0]
    archives = built(folder, '*.a')
    if folder == room:
        archives = [p for p in archives if p not in named]
    else:
        found = built(room, 'lib*-%s.a' % folder.replace('/', '-'))
        archives += found
        named.update(found)
        if archives:
            divided.add(room)
    if room not in divided and room not in alone:
        continue
    for path in archives:
        read(path, folder)
    if folder == room:  # what is linked into a program or a shared library directly
        for path in built(room, '*.p', '*.o'):
            if not path.split('.p/')[0].endswith('.a'):
                read(path, folder)
if not divided:
    print('layers: no room is divided into folders')
    sys.exit(77)

uses, how = {file: set() for file in home}, {}
for file, symbols in wants.items():
    for symbol in symbols:
        files = defined.get(symbol, [])
        # Two libraries may each have a function of that name, and each is linked with its own.
        other = next((f for f in files if home[f] == home[file]), files[0] if files else None)
        if other and other != file:
            uses[file].add(other)
            how[file, other] = symbol

bad = 0
for folder in folders:
    room, at = level[folder]
    if room not in divided and room not in alone:
        continue
    used = {}
    for file in sorted(home):
        if home[file] == folder:
            for other in sorted(uses[file]):
                if home[other] != folder:
                    used.setdefault(home[other], []).append((file, other))
    print('%-16s uses %s' % (folder, ', '.join(sorted(used)) or 'nothing'))
    for target, pairs in used.items():
        if room in alone or level[target][0] == room and level[target][1] >= at:
            bad += 1
            for file, other in pairs:
                print('  UPWARDS  %s uses %s of %s' % (file, how[file, other], other))

# Circles: strongly connected components (Tarjan), without recursion.
index, low, stack, on, circles = {}, {}, [], set(), []
for start in sorted(uses):
    todo = [] if start in index else [(start, None)]
    while todo:
        file, rest = todo.pop()
        if rest is None:
            index[file] = low[file] = len(index)
            stack.append(file)
            on.add(file)
            rest = iter(sorted(uses[file]))
        for other in rest:
            if other not in index:
                todo += [(file, rest), (other, None)]
                break
            if other in on:
                low[file] = min(low[file], index[other])
        else:
            if low[file] == index[file]:
                circle = stack[stack.index(file):]
                del stack[-len(circle):]
                on -= set(circle)
                circles.append(circle)
            if todo:
                above = todo[-1][0]
                low[above] = min(low[above], low[file])
circles = sorted((c for c in circles if len(c) > 1), key=len, reverse=True)
for circle in circles:
    bad += len(circle) > MOST
    print('circle of %d%s: %s' % (len(circle), '  TOO LARGE' if len(circle) > MOST else '',
                                  ', '.join(sorted(circle))))
print('layers: %d folders, %d files, %d wrong' % (len(set(home.values())), len(home), bad))
sys.exit(bad != 0)
EOF
