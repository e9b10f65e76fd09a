// SPDX-License-Identifier: MIT
// Flame graphs: of the peak of each device, of what was never freed, of allocations, of a moment or range that was chosen on
// the time line, and of a difference. A click makes a frame as wide as the graph.
'use strict';

// A tree of frames from the outermost one, or from the innermost; `holders` have a site and its bytes, and in a difference
// its earlier bytes. `shown` decides which frames count.
function frameTree(holders, sites, all, bottomUp, shown = () => true) {
	const empty = () => ({ own: 0, ownBefore: 0, ownAfter: 0, children: new Map() });
	const root = { key: 'all', name: 'all', ...empty() };
	let sum = 0;
	for (const h of holders) {
		let at = root;
		const stack = sites.get(h.site).frames, frames = stack.filter(shown);
		const boxes = frames.length ? frames.map(f => ({ key: f.function + '\n' + f.source + ':' + f.line,
			name: frameName(f), full: f.function })) : [stack.length ? { key: 'hidden', name: '(hidden frames)' } :
			{ key: '', name: '(call stack not known)' }];
		for (const box of bottomUp ? boxes : boxes.reverse()) {
			if (!at.children.has(box.key)) {
				at.children.set(box.key, { ...box, ...empty() });
			}
			at = at.children.get(box.key);
		}
		at.own += h.bytes;
		at.ownBefore += h.before || 0;
		at.ownAfter += h.after || 0;
		sum += h.bytes;
	}
	if (all > sum) {
		root.children.set('other call sites', { key: 'other', name: 'other call sites', ...empty(), own: all - sum });
	}
	return root;
}

function plainCount(n) {
	return String(Math.round(n));
}

// The graphs that a process has without a choice on the time line.
function graphsOf(process, sites) {
	const graphs = process.devices.filter(d => d.at_used_peak).map(d => ({
		name: 'bytes at the peak of ' + d.label, holders: d.at_used_peak.holders, all: d.used_peak.used }));
	const leaks = process.rankings.never_freed.map(s => ({ site: s, bytes: sites.get(s).live }));
	if (leaks.length) {
		graphs.push({ name: process.leaks_title.toLowerCase(), holders: leaks,
			all: d3.sum(Array.from(sites.values()), s => s.suppressed ? 0 : s.live) });
	}
	for (const [key, name, text] of [['allocations', 'number of allocations', plainCount], ['bytes', 'bytes of all allocations', bytes]]) {
		const holders = process.sites.map(s => ({ site: s.site, bytes: s[key] })).filter(h => h.bytes > 0);
		if (holders.length) {
			graphs.push({ name, holders, text, all: d3.sum(holders, h => h.bytes) });
		}
	}
	return graphs;
}

// The inputs that hide frames: words that a function or file has (* stands for any text), and modules. `change` gets a function
// that decides which frames are shown.
function drawHiding(bar, place, sites, change) {
	const modules = Array.from(new Set([].concat(...Array.from(sites.values(), s => s.frames.map(f => f.module)))))
		.filter(m => m).sort((a, b) => d3.ascending(base(a), base(b)));
	const hidden = new Set();
	let words = [];
	const shown = f => !hidden.has(f.module) && !words.some(w => w.test(f.function) || w.test(base(f.source)));
	bar.append('input').attr('id', 'flame-hide').attr('type', 'search').attr('size', 30).attr('placeholder', 'hide frames: std::*, libtorch*')
		.attr('aria-label', 'hide frames whose function or file has one of these words, with commas between them').on('input', function () {
			words = this.value.split(',').map(w => w.trim()).filter(w => w).map(w =>
				new RegExp(w.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*+/g, '.*'), 'i'));
			change(shown);
		});
	if (modules.length > 1) {
		const list = place.append('details').attr('id', 'flame-modules');
		list.append('summary').text('Modules');
		const boxes = list.append('div').attr('class', 'bar').selectAll('label').data(modules).enter().append('label').attr('title', m => m);
		boxes.append('input').attr('type', 'checkbox').property('checked', true).on('change', function (m) {
			(this.checked ? hidden.delete(m) : hidden.add(m));
			change(shown);
		});
		boxes.append('span').text(m => ' ' + base(m));
	}
}

function base(path) {
	return (path || '').replace(/.*\//, '');
}

// Draws graphs and the inputs that change them. Returns a function that shows other graphs below those of the list.
// The first graph is shown at once.
function drawFlames(parent, graphs, sites, label) {
	const bar = parent.append('div').attr('class', 'bar'), second = parent.append('div').attr('class', 'bar');
	const modules = parent.append('div');
	const svg = parent.append('svg').attr('id', 'flame').attr('role', 'group').attr('aria-label', label);
	const around = parent.append('div').attr('id', 'function');
	let graph = graphs[0], bottomUp = false, word = '', note = null, shown = () => true, least = 0, name = '';
	function draw() {
		if (graph && note) {
			drawFrames(svg, frameTree(graph.holders, sites, graph.all, bottomUp, shown), { word, found, least, text: graph.text || bytes,
				compares: graph.compares, pick });
			drawFunction(around, graph, sites, name, pick);
		}
	}
	function pick(next) {
		name = next;
		functions.property('value', next);
		drawFunction(around, graph, sites, name, pick);
	}
	choice(bar, 'flame-graph', 'Width', graphs.map(g => g.name), i => {
		graph = graphs[i];
		draw();
	});
	const up = bar.append('label');
	up.append('input').attr('type', 'checkbox').attr('id', 'flame-bottom-up').on('change', function () {
		bottomUp = this.checked;
		draw();
	});
	up.append('span').text(' bottom-up');
	bar.append('input').attr('id', 'flame-search').attr('type', 'search').attr('placeholder', 'search')
		.attr('aria-label', 'search in the flame graph').on('input', function () {
			word = this.value.toLowerCase();
			draw();
		});
	drawHiding(second, modules, sites, s => { shown = s; draw(); });
	const slider = second.append('label');
	const share = slider.append('span').text('frames from 0 % on ');
	slider.append('input').attr('id', 'flame-least').attr('type', 'range').attr('min', 0).attr('max', 100).attr('value', 0)
		.on('input', function () { /* finer near 0 */
			least = Math.pow(this.value / 100, 2) * 0.2;
			share.text('frames from ' + (100 * least).toFixed(least < 0.01 ? 2 : 1) + ' % on ');
			draw();
		});
	const names = Array.from(new Set([].concat(...Array.from(sites.values(), s => s.frames.map(f => f.function))))).sort(d3.ascending);
	const functions = second.append('label').text('Callers of ').append('select').attr('id', 'flame-function')
		.on('change', function () { pick(this.value); });
	functions.selectAll('option').data([''].concat(names)).enter().append('option').attr('value', n => n)
		.text(n => n === '' ? '(no function)' : n.length > 80 ? n.slice(0, 40) + '…' + n.slice(-39) : n);
	drawSaves(second, svg, 'flame');
	note = parent.insert('p', '#function').attr('class', 'soft').attr('id', 'flame-note');
	function found(bytesFound, all) {
		note.text(word ? (graph.text || bytes)(bytesFound) + ' (' + percent(bytesFound, all) + ') in matching frames' :
			'Click or Enter: zoom in, on the top: all. Arrows: next frame. C, or click with Ctrl: callers and callees.');
	}
	draw();
	onResize('flame', draw);
	const own = graphs.length, select = bar.select('select');
	return more => {
		graphs.splice(own, graphs.length, ...more);
		select.selectAll('option').data(graphs).join(
			enter => enter.append('option').attr('class', 'moment').text(g => g.name),
			update => update.text(g => g.name), exit => exit.remove());
		select.property('selectedIndex', own);
		graph = graphs[own];
		draw();
	};
}

// Returns a function that draws a moment or range of a time line, by its first and last sample.
function drawFlame(parent, process, sites) {
	const offer = drawFlames(parent, graphsOf(process, sites), sites, 'Flame graph: who held memory');
	return (line, from, to) => {
		const gpu = ' on ' + deviceName(line.device), part = rows => rows.slice(from, to + 1);
		const most = from + d3.scan(part(line.used), (a, b) => b - a);
		const at = i => ({ name: 'at ' + seconds(line.time[i]) + gpu, all: line.used[i], holders: holdersOf(line, h => h[i]) });
		offer(from === to ? [at(from)] : [
			{ name: 'mean from ' + rangeName(line, from, to, process.seconds) + gpu, all: d3.mean(part(line.used)),
				holders: holdersOf(line, h => d3.mean(part(h))) },
			{ ...at(most), name: 'most in that range, ' + at(most).name }]);
	};
}

// The graphs of a difference: as wide as the larger of both, red where it grew and blue where it shrank.
function drawDifferenceFlame(parent, difference) {
	const sites = new Map(difference.sites.map((s, i) => [i, s]));
	const graph = (key, name, text) => {
		const holders = difference.sites.map((s, i) => ({ site: i, bytes: Math.max(...s[key]), before: s[key][0], after: s[key][1] }))
			.filter(h => h.bytes > 0);
		return { name, holders, text, compares: true, all: d3.sum(holders, h => h.bytes) };
	};
	const graphs = [graph('peak', 'sum of peaks', bytes), graph('live', 'bytes at the end', bytes),
		graph('allocations', 'number of allocations', plainCount), graph('bytes', 'bytes of all allocations', bytes)].filter(g => g.all > 0);
	if (graphs.length) {
		drawFlames(parent, graphs, sites, 'Flame graph: what changed');
		parent.append('p').attr('class', 'soft').text('As wide as A or B, whichever is more. Red grew, blue shrank. Only call sites that differ are here.');
	}
}

function holdersOf(line, value) {
	const { sites, held } = line.by(KINDS[0]);
	return sites.map((site, k) => ({ site, bytes: value(held[k]) })).filter(h => h.bytes > 0);
}

// A colour for how much it changed: the share of what it is now and was before.
function changeColor(before, after) {
	const part = before + after ? (after - before) / Math.max(before, after) : 0;
	return part > 0 ? d3.interpolateRgb('#f3ede9', '#e07a5f')(part) : d3.interpolateRgb('#f3ede9', '#7fa8d8')(-part);
}

// Calls `found` with the bytes of frames that have `word` in their names. Frames of less than the share `least` are left out.
function drawFrames(svg, tree, { word, found, least, text, compares, pick }) {
	const width = svg.node().getBoundingClientRect().width || 1200, row = 18;
	const root = d3.hierarchy(tree, d => Array.from(d.children.values())).sum(d => d.own)
		.sort((a, b) => b.value - a.value);
	d3.partition()(root);
	const deepest = d3.max(root.descendants(), d => d.value >= least * root.value ? d.depth : 0);
	const height = (deepest + 1) * row;
	const x = d3.scaleLinear().range([0, width]);
	const matches = d => word !== '' && (d.data.name + ' ' + (d.data.full || '')).toLowerCase().includes(word);
	const sum = d => matches(d) ? d.value : d3.sum(d.children || [], sum);
	found(sum(root), root.value);
	if (compares) {
		root.eachAfter(d => {
			d.before = d.data.ownBefore + d3.sum(d.children || [], c => c.before);
			d.after = d.data.ownAfter + d3.sum(d.children || [], c => c.after);
		});
	}
	const color = d => d.depth === 0 ? '#c9ced4' : compares ? changeColor(d.before, d.after) :
		d3.interpolateYlOrRd(0.15 + 0.5 * hash(d.data.name));
	const says = d => compares ? text(d.before) + ' before, ' + text(d.after) + ' after' :
		text(d.value) + ', ' + percent(d.value, root.value);
	svg.text('').attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height)
		.attr('data-total', root.value).attr('data-focus', 'all');
	// Frames of less than half a pixel are drawn when a click makes them wider.
	function render(focus) {
		x.domain([focus.x0, focus.x1]);
		svg.attr('data-focus', focus.data.name);
		const seen = root.descendants().filter(d => d.x1 > focus.x0 && d.x0 < focus.x1 &&
			x(d.x1) - x(d.x0) > 0.5 && (d.value >= least * root.value || d.depth <= focus.depth));
		const groups = svg.selectAll('g').data(seen, d => d.ancestors().map(a => a.data.key).join('\n\n'));
		groups.exit().remove();
		const added = groups.enter().append('g').attr('data-name', d => d.data.name).attr('role', 'button');
		added.append('rect').attr('class', 'frame').attr('height', row).attr('fill', color);
		added.append('text').attr('aria-hidden', 'true').attr('dy', 13).style('pointer-events', 'none');
		const left = d => Math.max(0, x(d.x0)), right = d => Math.min(width, x(d.x1));
		const written = d => fit(d.data.name, right(d) - left(d) - 8);
		const now = added.merge(groups).attr('transform', d => 'translate(' + left(d) + ',' + d.depth * row + ')');
		now.classed('unmatched', d => word !== '' && !matches(d) && !d.ancestors().some(matches))
			.attr('aria-label', d => [written(d), d.data.name].filter((t, i) => i || !d.data.name.startsWith(t)).join(': ') + ', ' + says(d))
			.attr('tabindex', d => d === focus ? 0 : -1).on('keydown', d => {
				const next = nextFrame(d, d3.event.key, f => seen.includes(f));
				if (d3.event.key === 'c' && d.data.full) {
					pick(d.data.full);
				} else if (d3.event.key === 'Enter' || d3.event.key === ' ') {
					d3.event.preventDefault();
					render(d);
				} else if (next) {
					d3.event.preventDefault();
					now.attr('tabindex', f => f === next ? 0 : -1).filter(f => f === next).node().focus();
				}
			});
		now.select('rect').attr('width', d => right(d) - left(d));
		now.select('text').attr('x', 4).text(written);
		now.on('click', d => (d3.event.ctrlKey || d3.event.metaKey) && d.data.full ? pick(d.data.full) : render(d)).on('mousemove', d => showTip(d3.event, t => {
			t.append('div').text(d.data.name);
			if (d.data.full && !d.data.name.startsWith(d.data.full)) {
				t.append('div').attr('class', 'soft').text(d.data.full);
			}
			t.append('div').attr('class', 'soft').text(says(d));
		})).on('mouseleave', hideTip);
	}
	render(root);
}

// The frame to which an arrow key leads: down to the widest caller or callee, up to the parent, and to both sides.
function nextFrame(d, key, seen) {
	const beside = d.parent ? d.parent.children.filter(seen) : [d], i = beside.indexOf(d);
	return { ArrowUp: d.parent, ArrowDown: (d.children || []).find(seen), ArrowLeft: beside[i - 1], ArrowRight: beside[i + 1] }[key];
}

// A name that is too long loses its middle: its end has the line.
function fit(name, room) {
	const most = Math.floor(room / 6.5), half = Math.floor((most - 1) / 2);
	return most < 3 ? '' : name.length <= most ? name : most < 16 ? name.slice(0, most - 1) + '…' :
		name.slice(0, most - 1 - half) + '…' + name.slice(-half);
}

// A number from 0 to 1, the same for each name.
function hash(name) {
	let h = 0;
	for (let i = 0; i < name.length; i++) {
		h = (h * 31 + name.charCodeAt(i)) >>> 0;
	}
	return h % 1000 / 1000;
}
