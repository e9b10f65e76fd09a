#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of `somashim report --output` in a real browser. Exits 77 without one, or without d3.

    test_page.py SOMASHIM MAKE_TRACE [PICTURE]     PICTURE: where to leave a screenshot
"""
import json, os, shutil, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser

MIB = 1 << 20
somashim, make_trace = sys.argv[1:3]
folder = tempfile.mkdtemp(prefix='somashim-page-')


def path(name):
    return os.path.join(folder, name)


def make(kind, name, *more, **env):
    subprocess.run([make_trace, kind, path(name), *more], check=True, env=dict(os.environ, **env))


def report(*args):
    return subprocess.run([somashim, 'report', *args], check=True, capture_output=True, timeout=120)


def equal(got, want, what):
    assert got == want, ('%s: %r, not %r' % (what, got, want))[:2000]


def wait_for(b, script, what):
    end = time.monotonic() + 240
    while not b.evaluate(script):
        assert time.monotonic() < end, what
        time.sleep(0.05)


def check_figures(b, process):
    """Every figure in the page is that of the JSON."""
    shown = dict(b.evaluate('[...document.querySelectorAll("[data-figure]")].map('
                            'e => [e.dataset.figure, +e.dataset.value])'))
    want = {}
    for d in process['devices']:
        for name in ('used_peak.used', 'reserved_peak.reserved', 'in_flight_peak.in_flight',
                     'end.used', 'total'):
            at = d
            for part in name.split('.'):
                at = at[part]
            want['%d.%s' % (d['device'], name)] = at
        at = d['at_reserved_peak']
        parts = dict(at['waste'], asked=at['asked'])
        want.update(('%d.waste.%s' % (d['device'], k), v) for k, v in parts.items()
                    if v and k != 'largest_hole')
    for i, f in enumerate(process['failures']):
        parts = dict(f['waste'], asked=f['asked'])
        want.update(('failure.%d.%s' % (i, k), v) for k, v in parts.items()
                    if v and k != 'largest_hole')
    equal(shown, want, 'figures')


def check_timeline(b):
    equal(b.evaluate('document.querySelectorAll("#timeline path.layer").length'), 5, 'layers')
    box = b.box('#timeline')
    middle = box['x'] + box['width'] / 2, box['y'] + box['height'] / 2
    # When load_mesh holds memory depends on the machine: the trace has its clock.
    for part in range(20, 100, 2):
        b.mouse('mouseMoved', box['x'] + box['width'] * part / 100, middle[1])
        wait_for(b, 'document.querySelector("#tip").style.display == "block"', 'no tooltip')
        time.sleep(0.05)
        tip = b.evaluate('document.querySelector("#tip").textContent')
        assert tip.startswith('at ') and 'reserved' in tip, tip
        if 'load_mesh' in tip:
            break
    assert 'load_mesh' in tip, tip
    span = 'document.querySelector("#timeline").dataset.to - document.querySelector("#timeline").dataset.from'
    whole = b.evaluate(span)
    b.mouse('mouseWheel', *middle, deltaX=0, deltaY=-400)
    wait_for(b, '%s < %r / 1.5' % (span, whole), 'the wheel does not zoom')
    assert not b.evaluate('document.querySelector("#timeline path.layer").getAttribute("d").includes("NaN")')
    b.evaluate('document.querySelector("#timeline-stacked").click()')
    equal(b.evaluate('document.querySelectorAll("#timeline path.layer").length'), 1, 'layers')
    b.evaluate('document.querySelector("#timeline-stacked").click()')
    b.evaluate('(() => { const s = document.querySelector("#timeline-device"); s.selectedIndex = 1;'
               's.dispatchEvent(new Event("change")); })()')
    equal(b.evaluate('document.querySelectorAll("#timeline path.layer").length'), 1, 'GPU 1')


def check_flame(b):
    equal(b.evaluate('+document.querySelector("#flame").dataset.total'), 50 * MIB, 'flame graph')
    box = b.box('#flame g[data-name^=load_mesh] rect')
    narrow = box['width']
    b.click(box['x'] + narrow / 2, box['y'] + box['height'] / 2)
    wait_for(b, 'document.querySelector("#flame").dataset.focus.startsWith("load_mesh (make_trace.c:")', 'a click does not zoom')
    assert b.box('#flame g[data-name^=load_mesh] rect')['width'] > 3 * narrow
    b.evaluate('(() => { const s = document.querySelector("#flame-graph"); s.selectedIndex = 2;'
               's.dispatchEvent(new Event("change")); })()')
    equal(b.evaluate('+document.querySelector("#flame").dataset.total'), 14 * MIB, 'never freed')


def check_hiding(b):
    """What hides frames, the slider, callers and callees, other widths, sizes, and what is saved."""
    choose = ('(() => { const s = document.querySelector("%s"); s.selectedIndex = %s; s.dispatchEvent(new Event("change")); })()')
    enter = ('(() => { const s = document.querySelector("%s"); s.value = "%s"; s.dispatchEvent(new Event("input")); })()')
    names = '[...document.querySelectorAll("#flame g")].map(g => g.dataset.name.split(" ")[0])'
    total = '+document.querySelector("#flame").dataset.total'
    b.evaluate(choose % ('#flame-graph', 0))
    before = b.evaluate(names)
    assert 'alloc' in before and 'write_output' in before, before
    b.evaluate(enter % ('#flame-hide', 'ALLOC, event_begin, ss_trace_*'))
    hidden = b.evaluate(names)
    equal(sorted(set(before) - set(hidden)), ['alloc', 'event_begin', 'ss_trace_alloc', 'ss_trace_alloc_at', 'ss_trace_write_alloc'], 'hidden')
    equal(b.evaluate(total), 50 * MIB, 'hiding changes no sum')
    b.evaluate(enter % ('#flame-hide', '*'))
    equal(b.evaluate(names), ['all', '(hidden'], 'all hidden')
    b.evaluate(enter % ('#flame-hide', '(['))
    equal(b.evaluate(names), before, 'words are no patterns of another kind')
    b.evaluate(enter % ('#flame-hide', ''))
    b.evaluate(enter % ('#flame-least', '100')) # 20 %: load_mesh has 20, and its width is not less
    equal(b.evaluate(names), before, 'threshold')
    b.evaluate(choose % ('#flame-graph', 2)) # never freed: 10 and 4 MiB
    b.evaluate(enter % ('#flame-least', '0'))
    assert 'exchange' in b.evaluate(names)
    b.evaluate(choose % ('#flame-function', '[...document.querySelectorAll("#flame-function option")].findIndex(o => o.value == "alloc")'))
    equal(b.evaluate('+document.querySelector("#function-name").dataset.value'), 14 * MIB, 'one function')
    table = lambda id: b.evaluate('[...document.querySelectorAll("#%s tr")].map(r => [...r.cells].map(c => c.textContent).join(" "))' % id)
    equal(table('callers'), ['10.00 MiB 71.4 % load_mesh', '4.00 MiB 28.6 % exchange'], 'callers')
    equal(table('callees'), ['14.00 MiB 100.0 % ss_trace_alloc'], 'callees')
    b.evaluate('document.querySelector("#callers button").click()')
    equal(b.evaluate('+document.querySelector("#function-name").dataset.value'), 10 * MIB, 'a click on a caller')
    widths = b.evaluate('[...document.querySelectorAll("#flame-graph option")].map(o => o.textContent)')
    equal(widths[2:5], ['never freed', 'number of allocations', 'bytes of all allocations'], 'widths')
    b.evaluate(choose % ('#flame-graph', 3))
    equal(b.evaluate(total), 25, 'allocations')
    label = b.evaluate('[...document.querySelectorAll("#flame g")].find(g => g.dataset.name.startsWith("smooth")).getAttribute("aria-label")')
    assert ', 20, 80.0 %' in label, label
    bars = 'Object.fromEntries([...document.querySelectorAll("#sizes rect.size")].map(r => [r.dataset.from / 1048576, +r.dataset.value]))'
    equal(b.evaluate(bars), {'1': 20, '2': 1, '8': 1, '16': 1, '32': 1}, 'sizes')
    b.evaluate(choose % ('#sizes-value', 3))
    equal(b.evaluate(bars)['8'], 10 * MIB, 'bytes at the end')
    svg = b.evaluate('svgText(document.querySelector("#flame"))')
    assert svg.startswith('<svg ') and 'smooth' in svg and 'fill: rgb' in svg and 'var(' not in svg, svg[:300]
    saved = b.evaluate('(() => { const out = []; window.save = (name, blob) => out.push(name + " " + blob.type + " " + (blob.size > 100));'
                       'save = window.save; for (const id of ["flame-svg", "timeline-svg", "sites-csv"]) document.querySelector("#" + id).click();'
                       'return out; })()')
    equal(saved, ['flame.svg image/svg+xml true', 'timeline.svg image/svg+xml true', 'sites.csv text/csv true'], 'saved')
    equal(b.evaluate('csvText([{title: "A", value: r => r}], ["=1+1", "a\\"b,c", 5])'), '"A"\r\n" =1+1"\r\n"a""b,c"\r\n5\r\n', 'CSV')
    b.evaluate(choose % ('#flame-graph', 0))


def check_tools(b):
    """Search, bottom-up, the moment that was clicked, marks, the keyboard, the title, a dark and a narrow page."""
    assert b.evaluate('document.title').endswith(path('known') + ' - somashim report'), b.evaluate('document.title')
    b.evaluate('document.querySelector("#timeline-device").selectedIndex = 0,'
               'document.querySelector("#timeline-device").dispatchEvent(new Event("change"))')
    marks = b.evaluate('[...document.querySelectorAll("#timeline [data-mark]")].map(m => m.dataset.mark + " " + m.textContent)')
    equal(marks, ['peak peak 50.00 MiB', 'failure out of memory: 100.00 MiB'], 'marks')
    first = 'document.querySelector("section").id'
    equal(b.evaluate(first), 'failures', 'failures come first')
    b.evaluate('(() => { const s = document.querySelector("#flame-graph"); s.selectedIndex = 0;'
               's.dispatchEvent(new Event("change")); })()')
    search = ('(() => { const s = document.querySelector("#flame-search"); s.value = "%s";'
              's.dispatchEvent(new Event("input")); })()')
    b.evaluate(search % 'LOAD_mesh')
    equal(b.evaluate('document.querySelector("#flame-note").textContent'), '10.00 MiB (20.0 %) in matching frames', 'search')
    assert b.evaluate('document.querySelectorAll("#flame g.unmatched").length') > 0
    b.evaluate(search % '')
    equal(b.evaluate('document.querySelectorAll("#flame g.unmatched").length'), 0, 'no search')
    up = 'document.querySelector("#flame-bottom-up").click()'
    b.evaluate(up)
    names = b.evaluate('[...document.querySelectorAll("#flame g")].map(g => g.dataset.name)')
    assert names[1].startswith('event_begin ('), names
    b.evaluate(up)
    key = ('document.querySelector("%s").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}))')
    b.evaluate(key % '#flame g[data-name^=load_mesh]')
    wait_for(b, 'document.querySelector("#flame").dataset.focus.startsWith("load_mesh")', 'Enter does not zoom')
    b.evaluate(key % '#sites th:nth-child(4)')
    equal(b.evaluate('document.querySelector("#sites th:nth-child(4)").getAttribute("aria-sort")'), 'descending', 'Enter sorts')
    b.evaluate(key % '#sites th')
    # A click on the chart, near its end, where only load_mesh holds memory.
    box = b.box('#timeline')
    b.click(box['x'] + box['width'] * 0.9, box['y'] + box['height'] / 2)
    wait_for(b, '+document.querySelector("#flame").dataset.total == %d' % (10 * MIB), 'a click does not choose the moment')
    assert b.evaluate('document.querySelector("#flame-graph option:checked").textContent').startswith('at ')
    for scheme, paper in (('dark', 'rgb(13, 17, 23)'), ('light', 'rgb(255, 255, 255)')):
        b.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        equal(b.evaluate('getComputedStyle(document.body).backgroundColor'), paper, scheme)
    b.call('Emulation.setDeviceMetricsOverride', width=700, height=1000, deviceScaleFactor=1, mobile=False)
    wide = b.evaluate('[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > 700 && '
                      '!e.closest("svg, .scroll")).map(e => e.tagName + " " + e.id + " " + e.textContent.slice(0, 60))')
    assert b.evaluate('document.documentElement.scrollWidth') <= 700, wide
    assert b.evaluate('document.querySelector("#sites thead").getBoundingClientRect().height') < 60
    b.call('Emulation.clearDeviceMetricsOverride')
    # Labels of ticks that are close to each other differ.
    labels = b.evaluate('[0, 1, 2].map(i => moment(1.141 + i * 1e-5, 1e-5, 1.142))')
    equal(labels, ['1.14100 s', '1.14101 s', '1.14102 s'], 'ticks')
    equal(b.evaluate('[moment(0, 5, 20), moment(5, 5, 20), moment(0.002, 5e-4, 0.02)]'), ['0 s', '5 s', '2.0 ms'], 'ticks')


def check_rest(b):
    moment = '+document.querySelector("#map-info").dataset.time'
    before = b.evaluate(moment)
    assert '112.00 MiB reserved' in b.evaluate('document.querySelector("#map-info").textContent')
    b.evaluate('(() => { const s = document.querySelector("#map-moment"); s.value = s.max;'
               's.dispatchEvent(new Event("input")); })()')
    assert b.evaluate(moment) > before
    assert ' 64.00 MiB reserved' in b.evaluate('document.querySelector("#map-info").textContent')
    equal(b.evaluate('(() => { const s = document.querySelector("#map-moment"), seen = [];'
                     'for (s.value = 0;; s.stepUp()) { s.dispatchEvent(new Event("input")); seen.push(%s);'
                     'if (s.value == s.max) break; } return seen.length - new Set(seen).size; })()' % moment),
          0, 'moments that are there twice')
    equal(b.evaluate('document.querySelectorAll("#sites tbody tr").length'), 9, 'call sites')
    b.evaluate('(() => { const s = document.querySelector("#sites-filter"); s.value = "smooth";'
               's.dispatchEvent(new Event("input")); })()')
    equal(b.evaluate('document.querySelectorAll("#sites tbody tr").length'), 1, 'filter')
    b.evaluate('document.querySelector("#sites tbody tr").dispatchEvent(new Event("click"))')
    assert 'make_trace.c:' in b.evaluate('document.querySelector("#sites pre").textContent')


def choose(b, select, text):
    """Chooses the option with that text."""
    b.evaluate('(() => { const s = document.querySelector("%s"); s.selectedIndex = [...s.options].findIndex(o => o.text == "%s");'
               's.dispatchEvent(new Event("change")); })()' % (select, text))


def legend(b):
    return b.evaluate('[...document.querySelectorAll("#timeline-legend div")].map(d => d.textContent)')[:-2]


def drag(b, box, start, end):
    y = box['y'] + box['height'] / 2
    b.mouse('mousePressed', box['x'] + box['width'] * start, y, button='left', buttons=1, clickCount=1)
    for part in (start + end) / 2, end:
        b.mouse('mouseMoved', box['x'] + box['width'] * part, y, button='left', buttons=1)
    b.mouse('mouseReleased', box['x'] + box['width'] * end, y, button='left', clickCount=1)


def check_many(b):
    """With 420 call sites: groups, a range of the chart, the blocks of a call site, the keyboard, other widths."""
    make('many', 'many')
    report('-o', path('many.html'), path('many'))
    b.open('file://' + path('many.html'))
    wait_for(b, 'document.title.includes("many") && document.querySelector("#sites tbody tr") != null', 'no page')
    # The chart begins with a kind that shows most of the memory, not with one that is grey.
    functions = ['particles', 'density', 'velocity', 'pressure', 'energy', 'halo']
    equal(legend(b), functions, 'functions')
    equal(b.evaluate('document.querySelector("#timeline-by").value'), 'function', 'the first kind')
    for kind, want in (('call site', 13), ('file', 1), ('module', 1), ('stream', 3), ('thread', 2)):
        choose(b, '#timeline-by', kind)
        equal(len(legend(b)), want, kind)
    names = legend(b)
    assert all(n.startswith('thread ') for n in names), names
    choose(b, '#timeline-by', 'function')
    # A range: from where only particles are missing, and the flame graph has all call sites of it.
    total = '+document.querySelector("#flame").dataset.total'
    box = b.box('#timeline')
    drag(b, box, 0.2, 0.9)
    wait_for(b, 'document.querySelector("#timeline-note").textContent.includes("in the mean")', 'a drag chooses no range')
    options = b.evaluate('[...document.querySelectorAll("#flame-graph option")].map(o => o.textContent)')
    assert len(options) == 6 and options[4].startswith('mean from ') and options[5].startswith('most in that range'), options
    mean = b.evaluate(total)
    assert 0 < mean < 630 * MIB, mean
    names = b.evaluate('[...document.querySelectorAll("#flame g")].map(g => g.dataset.name)')
    assert not any('other' in n for n in names), names
    span = 'document.querySelector("#timeline").dataset.to - document.querySelector("#timeline").dataset.from'
    whole = b.evaluate(span)
    b.evaluate('document.querySelector("#timeline-zoom").click()')
    wait_for(b, '%s < 0.9 * %r' % (span, whole), 'the range does not zoom')
    # The keys do the same: all, the peak, and a range.
    key = ('document.querySelector("%s").dispatchEvent(new KeyboardEvent("keydown", {key: "%s", shiftKey: %s, bubbles: true}))')
    b.evaluate(key % ('#timeline', '0', 'false'))
    wait_for(b, '%s == %r' % (span, whole), '0 does not show all')
    b.evaluate('document.querySelector("#timeline").focus()')
    b.evaluate(key % ('#timeline', 'ArrowRight', 'false'))
    assert b.evaluate('document.querySelector("#timeline-note").textContent').startswith('at ')
    for _ in range(3):
        b.evaluate(key % ('#timeline', 'ArrowLeft', 'true'))
    b.evaluate(key % ('#timeline', 'Enter', 'false'))
    assert 'in the mean' in b.evaluate('document.querySelector("#timeline-note").textContent')
    # Single blocks, with their lives, size and stream.
    row = '#sites tbody tr'
    b.evaluate('(() => { const s = document.querySelector("#sites-filter"); s.value = "velocity";'
               's.dispatchEvent(new Event("input")); })()')
    b.evaluate(key % (row, 'Enter', 'false'))
    equal(b.evaluate('document.querySelector("%s").getAttribute("aria-expanded")' % row), 'true', 'unfolded')
    equal(b.evaluate('document.querySelector(".lives-note").textContent'), '1 block', 'blocks')
    cells = b.evaluate('[...document.querySelectorAll("table.lives td")].map(d => d.textContent)')
    equal((cells[3], cells[4]), ('1.00 MiB', 'stream 0x11000, GPU 0'), cells)
    assert cells[1] != 'not freed' and cells[5].startswith('thread '), cells
    choose(b, '#sites-by', 'stream')
    got = b.evaluate('[...document.querySelectorAll("#sites tbody tr")].map(r => r.firstChild.textContent + r.lastChild.textContent)')
    equal(got, ['280.00 MiBstream 0x11000, GPU 0', '210.00 MiBnull stream, GPU 0', '140.00 MiBstream 0x12000, GPU 0'], 'streams')
    # One row of a table and one frame of the flame graph are in the order of Tab, and arrows lead on.
    equal(b.evaluate('document.querySelectorAll("#sites tbody tr[tabindex=\'0\'], #flame g[tabindex=\'0\']").length'), 2, 'tab stops')
    b.evaluate(key % ('#sites tbody tr', 'ArrowDown', 'false'))
    equal(b.evaluate('document.activeElement.lastChild.textContent'), 'null stream, GPU 0', 'arrow')
    b.evaluate(key % ('#flame g', 'ArrowDown', 'false'))
    assert b.evaluate('document.activeElement.dataset.name').startswith('main'), 'arrow'
    # Whatever has no text has a name for screen readers.
    unnamed = b.evaluate('[...document.querySelectorAll("svg[role], canvas, input, select, button")].filter(e => '
                         '!e.getAttribute("aria-label") && !e.textContent && !(e.labels && e.labels.length)).map(e => e.id)')
    equal(unnamed, [], 'without a name')
    # The chart is drawn anew for a narrow window, and what was chosen stays.
    ticks = 'document.querySelectorAll("#timeline .tick").length'
    before = b.evaluate(ticks)
    b.call('Emulation.setDeviceMetricsOverride', width=700, height=1000, deviceScaleFactor=1, mobile=False)
    # (There may be as many, if steps of the same size suit both widths.)
    wait_for(b, '[...document.querySelectorAll("#timeline .tick")].every(t => t.getBoundingClientRect().right <= 700)',
             'ticks by width')
    assert 2 <= b.evaluate(ticks) <= before
    assert 'in the mean' in b.evaluate('document.querySelector("#timeline-note").textContent')
    assert b.evaluate('document.documentElement.scrollWidth') <= 700
    assert b.evaluate('document.querySelector("#sites").scrollWidth') <= 700
    b.call('Emulation.clearDeviceMetricsOverride')


def check_rebuilt(b):
    """A page without names says why: the program was built again."""
    program = path('program')
    shutil.copy(make_trace, program)
    subprocess.run([program, 'known', path('rebuilt')], check=True)
    with open(program, 'rb') as f:
        code = bytearray(f.read())
    os.remove(program)
    code[code.index(b'\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0') + 16] ^= 0xff # the build id
    with open(program, 'wb') as f:
        f.write(code)
    report('-o', path('rebuilt.html'), path('rebuilt'))
    b.open('file://' + path('rebuilt.html'))
    wait_for(b, 'document.title.includes("rebuilt") && document.querySelector("#sites tbody tr") != null', 'no page')
    text = b.evaluate('(document.querySelector("#rebuilt") || document.body).textContent')
    assert text.startswith(program + ' was built after the recording'), text[:300]


def check_ranks(b):
    os.mkdir(path('job'))
    for rank in range(3):
        make('rank', 'job/%d' % rank, str((rank + 1) * 4 * MIB), SLURM_PROCID=str(rank))
    report('-o', path('job.html'), path('job'))
    b.open('file://' + path('job.html'))
    wait_for(b, 'document.querySelector("#over-pools tbody tr") != null', 'no table of ranks')
    row = b.evaluate('document.querySelector("#over-pools tbody tr").textContent')
    assert '12.00 MiB8.00 MiB4.00 MiB1.50rank 2' in row, row
    titles = b.evaluate('[...document.querySelectorAll("#ranks h3")].map(h => h.textContent)')
    assert titles[0] == 'Processes, the worst first' and titles[-2] == 'Pools', titles
    b.evaluate('(() => { const s = document.querySelector("#process"); s.selectedIndex = 2;'
               's.dispatchEvent(new Event("change")); })()')
    equal(b.evaluate('+document.querySelector("[data-figure=\'0.used_peak.used\']").dataset.value'),
          12 * MIB, 'rank 2')
    report('-o', path('diff.html'), '--diff', '--by', 'function', path('many'), path('known'))
    b.open('file://' + path('diff.html'))
    wait_for(b, 'document.querySelector("#difference tbody tr") != null', 'no table of changes')
    equal(b.evaluate('document.querySelector("#changes-title").textContent'), 'Functions that changed', 'title')
    equal(b.evaluate('document.querySelector("#difference tbody tr").lastChild.textContent'), 'new: write_output', 'change')
    # The flame graph of a difference: as wide as the larger side, and each frame says both.
    equal(b.evaluate('+document.querySelector("#flame").dataset.total'), (630 + 10 + 20 + 1 + 40 + 4 + 2) * MIB, 'difference')
    label = b.evaluate('[...document.querySelectorAll("#flame g")].find(g => g.dataset.name == "particles").getAttribute("aria-label")')
    assert label.endswith('210.00 MiB before, 0 B after'), label
    equal(b.evaluate('document.querySelector("#totals tbody tr").textContent'), 'used peak630.00 MiB54.00 MiB-576.00 MiB', 'totals')


def main():
    if not browser.find():
        return 77
    make('known', 'known')
    page = subprocess.run([somashim, 'report', '-o', path('known.html'), path('known')],
                          capture_output=True, text=True)
    if page.returncode == 2 and 'without d3' in page.stderr:
        return 77
    equal((page.returncode, page.stdout, page.stderr), (0, '', ''), 'report -o')
    with open(path('known.html'), 'rb') as f:
        equal(report('-o', '-', path('known')).stdout == f.read(), True, 'report -o -')
    b = browser.Browser()
    try:
        b.open('file://' + path('known.html'))
        check_figures(b, json.loads(report('--json', path('known')).stdout)['processes'][0])
        if len(sys.argv) > 3:
            b.screenshot(sys.argv[3])
        check_timeline(b)
        check_flame(b)
        check_hiding(b)
        check_tools(b)
        check_rest(b)
        check_many(b)
        check_rebuilt(b)
        check_ranks(b)
        equal(b.complaints(), [], 'console')
    finally:
        b.close()
    return 0


try:
    status = main()
finally:
    shutil.rmtree(folder)
sys.exit(status)
