// SPDX-License-Identifier: MIT
// Flame graphs of the peak of each device and of what was never freed. A click makes a frame as
// wide as the graph.
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

// Returns what draws a moment of a time line.
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
			'click or Enter: zoom in, on the top: all');
	}
	draw();
	const own = graphs.length, select = bar.select('select');
	return (line, i) => {
		graph = graphs[own] = { all: line.used[i],
			holders: line.sites.map((site, k) => ({ site, bytes: line.held[k][i] })).filter(h => h.bytes > 0) };
		select.selectAll('option.moment').remove();
		select.append('option').attr('class', 'moment').text('at ' + seconds(line.time[i]) + ' on ' + deviceName(line.device));
		select.property('selectedIndex', own);
		draw();
	};
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
	const color = d => d.depth === 0 ? 'var(--other)' : d3.interpolateYlOrRd(0.15 + 0.5 * hash(d.data.name));
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
		const added = groups.enter().append('g').attr('data-name', d => d.data.name).attr('tabindex', 0).attr('role', 'button');
		added.append('rect').attr('class', 'frame').attr('height', row).attr('fill', color);
		added.append('text').attr('dy', 13).style('pointer-events', 'none');
		const left = d => Math.max(0, x(d.x0)), right = d => Math.min(width, x(d.x1));
		const now = added.merge(groups).attr('transform', d => 'translate(' + left(d) + ',' + d.depth * row + ')');
		now.classed('unmatched', d => word !== '' && !matches(d) && !d.ancestors().some(matches))
			.attr('aria-label', d => d.data.name + ', ' + bytes(d.value) + ', ' + percent(d.value, root.value))
			.on('keydown', d => { if (d3.event.key === 'Enter' || d3.event.key === ' ') { d3.event.preventDefault(); render(d); } });
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
