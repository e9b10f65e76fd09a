// SPDX-License-Identifier: MIT
// Flame graphs: of the peak of each device, of what was never freed, and of a moment or range that
// was chosen on the time line. A click makes a frame as wide as the graph.
'use strict';

// A tree of frames from the outermost one, or from the innermost; `holders` have site and bytes.
function frameTree(holders, sites, all, bottomUp) {
	const root = { key: 'all', name: 'all', own: 0, children: new Map() };
	let sum = 0;
	for (const h of holders) {
		let at = root;
		const frames = sites.get(h.site).frames;
		const boxes = frames.length ? frames.map(f => ({ key: f.function + '\n' + f.source + ':' + f.line,
			name: frameName(f), full: f.function })) : [{ key: '', name: '(call stack not known)' }];
		for (const box of bottomUp ? boxes : boxes.reverse()) {
			if (!at.children.has(box.key)) {
				at.children.set(box.key, { ...box, own: 0, children: new Map() });
			}
			at = at.children.get(box.key);
		}
		at.own += h.bytes;
		sum += h.bytes;
	}
	if (all > sum) {
		root.children.set('other call sites', { key: 'other', name: 'other call sites', own: all - sum, children: new Map() });
	}
	return root;
}

// Returns what draws a moment or range of a time line, by its first and last sample.
function drawFlame(parent, process, sites) {
	const graphs = process.devices.filter(d => d.at_used_peak).map(d => ({
		name: 'peak of ' + d.label, holders: d.at_used_peak.holders, all: d.used_peak.used }));
	const leaks = process.rankings.never_freed.map(s => ({ site: s, bytes: sites.get(s).live }));
	if (leaks.length) {
		graphs.push({ name: process.leaks_title.toLowerCase(), holders: leaks,
			all: d3.sum(Array.from(sites.values()), s => s.live) });
	}
	const bar = parent.append('div').attr('class', 'bar');
	const svg = parent.append('svg').attr('id', 'flame').attr('role', 'group')
		.attr('aria-label', 'Flame graph: who held memory');
	let graph = graphs[0], bottomUp = false, word = '', note = null;
	function draw() {
		if (graph && note) {
			drawFrames(svg, frameTree(graph.holders, sites, graph.all, bottomUp), word, found);
		}
	}
	choice(bar, 'flame-graph', 'Bytes', graphs.map(g => g.name), i => {
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
	note = bar.append('span').attr('class', 'soft').attr('id', 'flame-note');
	function found(bytesFound, all) {
		note.text(word ? bytes(bytesFound) + ' (' + percent(bytesFound, all) + ') in matching frames' :
			'click or Enter: zoom in, on the top: all; arrows: next frame');
	}
	draw();
	onResize('flame', draw);
	const own = graphs.length, select = bar.select('select');
	// Shows these graphs below the others of the list, and the first of them at once.
	function offer(more) {
		graphs.splice(own, graphs.length, ...more);
		select.selectAll('option').data(graphs).join(
			enter => enter.append('option').attr('class', 'moment').text(g => g.name),
			update => update.text(g => g.name), exit => exit.remove());
		select.property('selectedIndex', own);
		graph = graphs[own];
		draw();
	}
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

function holdersOf(line, value) {
	const { sites, held } = line.by(KINDS[0]);
	return sites.map((site, k) => ({ site, bytes: value(held[k]) })).filter(h => h.bytes > 0);
}

// Calls `found` with the bytes of frames that have `word` in their names.
function drawFrames(svg, tree, word, found) {
	const width = svg.node().getBoundingClientRect().width || 1200, row = 18;
	const root = d3.hierarchy(tree, d => Array.from(d.children.values())).sum(d => d.own)
		.sort((a, b) => b.value - a.value);
	d3.partition()(root);
	const height = (root.height + 1) * row;
	const x = d3.scaleLinear().range([0, width]);
	const matches = d => word !== '' && (d.data.name + ' ' + (d.data.full || '')).toLowerCase().includes(word);
	const sum = d => matches(d) ? d.value : d3.sum(d.children || [], sum);
	found(sum(root), root.value);
	const color = d => d.depth === 0 ? '#c9ced4' : d3.interpolateYlOrRd(0.15 + 0.5 * hash(d.data.name));
	svg.text('').attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height)
		.attr('data-total', root.value).attr('data-focus', 'all');
	// Frames of less than half a pixel are drawn when a click makes them wider.
	function render(focus) {
		x.domain([focus.x0, focus.x1]);
		svg.attr('data-focus', focus.data.name);
		const seen = root.descendants().filter(d => d.x1 > focus.x0 && d.x0 < focus.x1 &&
			x(d.x1) - x(d.x0) > 0.5);
		const groups = svg.selectAll('g').data(seen, d => d.ancestors().map(a => a.data.key).join('\n\n'));
		groups.exit().remove();
		const added = groups.enter().append('g').attr('data-name', d => d.data.name).attr('role', 'button');
		added.append('rect').attr('class', 'frame').attr('height', row).attr('fill', color);
		added.append('text').attr('dy', 13).style('pointer-events', 'none');
		const left = d => Math.max(0, x(d.x0)), right = d => Math.min(width, x(d.x1));
		const now = added.merge(groups).attr('transform', d => 'translate(' + left(d) + ',' + d.depth * row + ')');
		now.classed('unmatched', d => word !== '' && !matches(d) && !d.ancestors().some(matches))
			.attr('aria-label', d => d.data.name + ', ' + bytes(d.value) + ', ' + percent(d.value, root.value))
			.attr('tabindex', d => d === focus ? 0 : -1).on('keydown', d => {
				const next = nextFrame(d, d3.event.key, f => seen.includes(f));
				if (d3.event.key === 'Enter' || d3.event.key === ' ') {
					d3.event.preventDefault();
					render(d);
				} else if (next) {
					d3.event.preventDefault();
					now.attr('tabindex', f => f === next ? 0 : -1).filter(f => f === next).node().focus();
				}
			});
		now.select('rect').attr('width', d => right(d) - left(d));
		now.select('text').attr('x', 4).text(d => fit(d.data.name, right(d) - left(d) - 8));
		now.on('click', render).on('mousemove', d => showTip(d3.event, t => {
			t.append('div').text(d.data.name);
			if (d.data.full && !d.data.name.startsWith(d.data.full)) {
				t.append('div').attr('class', 'soft').text(d.data.full);
			}
			t.append('div').attr('class', 'soft').text(bytes(d.value) + ', ' + percent(d.value, root.value));
		})).on('mouseleave', hideTip);
	}
	render(root);
}

// Where an arrow leads: down to the widest caller or callee, up to the parent, and to both sides.
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
