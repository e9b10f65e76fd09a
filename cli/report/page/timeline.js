// SPDX-License-Identifier: MIT
// Memory over time: used, reserved and in flight, stacked by call site, function, file and so on. The
// tooltip shows who holds memory at that moment; pick.js has what the mouse and the keys choose.
'use strict';

const LAYERS = 12; // with a colour of their own
const ENOUGH = 0.6; // of the used bytes at the peak: less in these layers is too grey to say who held memory

// The finest kind whose layers show most of the memory of the device that used most.
function bestKind(lines) {
	const line = lines[d3.scan(lines, (a, b) => d3.max(b.used) - d3.max(a.used))];
	const peak = line ? d3.scan(line.used, (a, b) => b - a) : 0;
	const best = KINDS.findIndex(kind => {
		const held = line ? line.by(kind).held.map(h => h[peak]).sort((a, b) => b - a) : [];
		return held.length > 1 && d3.sum(held.slice(0, LAYERS)) >= ENOUGH * line.used[peak];
	});
	return Math.max(0, best);
}

// `chosen` gets the line and the first and last index of a moment or range.
function drawTimeline(parent, process, chosen) {
	const bar = parent.append('div').attr('class', 'bar');
	const svg = parent.append('svg').attr('id', 'timeline').attr('tabindex', 0).attr('role', 'application')
		.attr('aria-roledescription', 'chart').attr('aria-describedby', 'timeline-help')
		.attr('aria-label', 'Memory over time: used, reserved and in flight');
	const note = parent.append('div').attr('class', 'bar').attr('id', 'timeline-note').attr('aria-live', 'polite');
	const legend = parent.append('div').attr('class', 'soft legend').attr('id', 'timeline-legend');
	parent.append('p').attr('class', 'soft').attr('id', 'timeline-help')
		.text('Click: who held memory at that moment. Drag: who held it in that range. Wheel: zoom. Shift and drag: move. ' +
			'Double click: all. Keys: arrows, Shift and arrows for a range, Enter to choose, + and - to zoom, 0 for all.');
	const lines = process.charts.devices.map(raw => timeLine(raw, process));
	const show = { stacked: true, reserved: true, outside: true, phases: true, kind: null, range: null };
	let index = 0;

	function draw() {
		svg.text('').on('.zoom', null);
		legend.text('');
		note.text('');
		if (lines.length && show.kind !== null) {
			drawDevice({ svg, legend, note, process, show, line: lines[index],
				chosen: (from, to) => chosen(lines[index], from, to) });
		}
	}
	choice(bar, 'timeline-device', 'Device', lines.map(l => deviceName(l.device)), i => {
		index = i;
		show.range = null;
		draw();
	});
	choice(bar, 'timeline-by', 'By', KINDS, i => {
		show.kind = KINDS[i];
		draw();
	}, bestKind(lines));
	onResize('timeline', draw);
	const boxes = [['stacked', ' stacked'], ['reserved', ' with reserved']];
	if (process.charts.devices.some(d => Object.keys(d.outside).length)) {
		boxes.push(['outside', ' with memory outside of the pools']);
	}
	if (process.charts.spans.length || process.marks.length) {
		boxes.push(['phases', ' with phases']);
	}
	for (const [name, text] of boxes) {
		const box = bar.append('label');
		box.append('input').attr('type', 'checkbox').attr('id', 'timeline-' + name).property('checked', true)
			.on('change', function () { show[name] = this.checked; draw(); });
		box.append('span').text(text);
	}
	drawSaves(bar, svg, 'timeline');
}

const BAND = 18; // pixels of a row of phases
const BAND_ROWS = 6;
const OUTSIDE = { managed: '#9c755f', host: '#b07aa1', arrays: '#edc948', runtime: '#59a14f', kernel: '#e15759', rest: '#f28e2b' };

// Rows of ranges: those of a thread that nest lie below each other, and each thread has rows of its own.
function bandsOf(process, show) {
	const spans = process.charts.spans, rows = new Map();
	if (!show.phases || !spans.length) {
		return { rows: 0, spans: [], more: 0 };
	}
	for (const [, , , thread, depth] of spans) {
		rows.set(thread, Math.max(rows.get(thread) || 0, depth + 1));
	}
	const first = new Map();
	let count = 0;
	for (const [thread, n] of rows) {
		first.set(thread, count);
		count += n;
	}
	const placed = spans.map(([name, from, to, thread, depth]) => ({ name, from, to, thread, row: first.get(thread) + depth }))
		.filter(s => s.row < BAND_ROWS);
	return { rows: Math.min(count, BAND_ROWS), spans: placed };
}

// Returns a function that puts them in their places.
function drawPhaseBands(plot, bands, process, chart) {
	const place = plot.append('g').attr('class', 'phases');
	const marks = plot.append('g').selectAll('line').data(chart.show.phases ? process.marks : []).enter().append('line')
		.attr('class', 'roctx').attr('y1', chart.margin.top - bands.rows * BAND).attr('y2', chart.height - chart.margin.bottom);
	marks.append('title').text(m => m.name);
	return x => {
		const [from, to] = x.domain();
		const seen = bands.spans.filter(s => s.to >= from && s.from <= to && x(s.to) - x(s.from) > 0.3);
		const left = s => Math.max(chart.margin.left, x(s.from)), wide = s => Math.max(0.5, Math.min(chart.width - chart.margin.right, x(s.to)) - left(s));
		const all = place.selectAll('g').data(seen, s => s.row + ' ' + s.from);
		all.exit().remove();
		const added = all.enter().append('g').attr('data-phase', s => s.name);
		added.append('rect').attr('class', 'phase').attr('height', BAND - 2).attr('fill', s => d3.schemeTableau10[Math.floor(hash(s.name) * 10)]);
		added.append('text').attr('aria-hidden', 'true').attr('y', 12).style('pointer-events', 'none');
		added.append('title').text(s => s.name + ', ' + seconds(s.from) + ' to ' + seconds(s.to) + ', thread ' + s.thread);
		const now = added.merge(all).attr('transform', s => 'translate(' + pixel(left(s)) + ',' + (4 + s.row * BAND) + ')');
		now.select('rect').attr('width', s => pixel(wide(s)));
		now.select('text').attr('x', 3).text(s => fit(s.name, wide(s) - 6));
		marks.attr('x1', m => x(m.time)).attr('x2', m => x(m.time));
	};
}

// The layers of the chart from the bottom up, each with values per sample.
function layersOf(line, show) {
	if (!show.stacked) {
		return [{ name: 'used', color: 'var(--used)', values: line.used }];
	}
	const { names, held } = line.by(show.kind), most = held.map(h => d3.max(h));
	const order = d3.range(held.length).sort((a, b) => most[b] - most[a]).slice(0, LAYERS);
	const color = i => d3.schemeTableau10[i % 10];
	const layers = order.map((k, i) => ({ name: names[k], values: held[k],
		color: i < 10 ? color(i) : d3.color(color(i)).darker(0.8) }));
	const rest = line.used.map((u, i) => u - d3.sum(order, k => held[k][i]));
	if (rest.some(x => x > 0)) {
		layers.push({ name: 'other ' + show.kind + 's', values: rest, color: 'var(--other)' });
	}
	return layers;
}

function drawDevice(chart) {
	const { svg, legend, line, process, show } = chart;
	const bands = bandsOf(process, show);
	const width = svg.node().getBoundingClientRect().width || 1200, height = 360 + bands.rows * BAND;
	const margin = { left: 80, right: 30, top: 12 + bands.rows * BAND, bottom: 28 };
	const end = Math.max(process.seconds, 1e-9);
	Object.assign(chart, { width, height, margin, end,
		x0: d3.scaleLinear().domain([0, end]).range([margin.left, width - margin.right]) });
	chart.x = chart.x0;
	const y = d3.scaleLinear().range([height - margin.bottom, margin.top]);
	const layers = layersOf(line, show);
	const sums = line.used.map(() => 0);
	for (const l of layers) {
		l.low = sums.slice();
		l.values.forEach((v, i) => { sums[i] += v; });
		l.high = sums.slice();
	}
	svg.attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height);
	svg.append('clipPath').attr('id', 'plot').append('rect').attr('x', margin.left).attr('y', 0)
		.attr('width', width - margin.left - margin.right).attr('height', height);
	const plot = chart.plot = svg.append('g').attr('clip-path', 'url(#plot)');
	const areas = plot.selectAll('path.layer').data(layers).enter().append('path')
		.attr('class', 'layer').attr('fill', l => l.color).attr('opacity', 0.85);
	const curve = name => plot.append('path').attr('fill', 'none').attr('data-line', name);
	const reserved = curve('reserved').attr('stroke', 'var(--reserved)').attr('stroke-width', 1.5);
	const flight = curve('in_flight').attr('stroke', 'var(--flight)').attr('stroke-width', 1.5);
	const outside = show.outside ? Object.keys(line.outside).filter(k => k in OUTSIDE) : [];
	const outsides = outside.map(k => curve('outside-' + k).attr('stroke', OUTSIDE[k]).attr('stroke-width', 1.5).attr('stroke-dasharray', '6,2'));
	const drawBands = drawPhaseBands(plot, bands, process, chart);
	const marks = plot.selectAll('g.moment').data(marksOf(line, process)).enter().append('g').attr('class', 'moment')
		.attr('data-mark', m => m.kind);
	marks.append('line').attr('class', 'mark').attr('y1', margin.top).attr('y2', height - margin.bottom);
	marks.append('text').attr('y', (m, i) => margin.top + 10 + 14 * (i % 4)).text(m => m.text);
	const xAxis = svg.append('g').attr('transform', 'translate(0,' + (height - margin.bottom) + ')');
	const yAxis = svg.append('g').attr('transform', 'translate(' + margin.left + ',0)');
	const picker = drawPicker(chart, render);

	function render() {
		const x = chart.x, [from, to] = x.domain();
		const first = Math.max(0, d3.bisectRight(line.time, from) - 1);
		const last = Math.min(line.time.length, d3.bisectLeft(line.time, to) + 1);
		let most = 1;
		for (let i = first; i < last; i++) {
			most = Math.max(most, show.reserved ? line.reserved[i] : 0, sums[i], line.in_flight[i], d3.max(outside, k => line.outside[k][i]) || 0);
		}
		y.domain([0, most * 1.05]);
		// The begin of each sample, and the end of the last one.
		const px = d3.range(first, last + 1).map(i => pixel(x(i < line.time.length ? line.time[i] : end)));
		const steps = values => stepPath(px, values, first, last, v => pixel(y(v)));
		areas.attr('d', l => steps(l.high) + stepsBack(px, l.low, first, last, v => pixel(y(v))) + 'Z');
		reserved.attr('d', show.reserved ? steps(line.reserved) : '');
		flight.attr('d', steps(line.in_flight));
		outsides.forEach((o, i) => o.attr('d', steps(line.outside[outside[i]])));
		drawBands(x);
		const ticks = x.ticks(Math.max(2, Math.floor(width / 110)));
		const tickStep = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
		xAxis.call(d3.axisBottom(x).tickValues(ticks).tickFormat(t => moment(t, tickStep, to)).tickSizeOuter(0));
		marks.attr('transform', m => 'translate(' + pixel(x(m.time)) + ',0)');
		// A text that would leave the chart on the right stands on the left of its line.
		const room = m => width - margin.right - x(m.time) > m.text.length * 6.5 + 8;
		marks.select('text').attr('x', m => room(m) ? 4 : -4).attr('text-anchor', m => room(m) ? 'start' : 'end');
		yAxis.call(d3.axisLeft(y).tickValues(roundBytes(most)).tickFormat(axisBytes));
		svg.attr('data-from', from).attr('data-to', to);
		picker();
	}
	drawLegend(legend, layers, outside.map(k => ({ name: 'outside of the pools: ' + k, color: OUTSIDE[k] })));
	render();
}

// The peak, and allocations that failed.
function marksOf(line, process) {
	const device = process.devices.find(d => d.device === line.device || (d.device === null && line.device === 255));
	const marks = device ? [{ kind: 'peak', time: device.used_peak.time, text: 'peak ' + bytes(device.used_peak.used) }] : [];
	return marks.concat(process.failures.filter(f => device && f.device === device.device)
		.map(f => ({ kind: 'failure', time: f.time, text: f.kind + ': ' + bytes(f.request) })));
}

function pixel(v) {
	return Math.round(v * 10) / 10;
}

// A line of steps through the values of the samples from `first` to before `last`. d3's curves do the
// same, and are too slow for a dozen layers of thousands of samples.
function stepPath(px, values, first, last, height) {
	let path = '', before = null;
	for (let i = first; i < last; i++) {
		const y = height(values[i]);
		if (before === null) {
			path += 'M' + px[0] + ',' + y;
		} else if (y !== before) {
			path += 'H' + px[i - first] + 'V' + y;
		}
		before = y;
	}
	return path + (before === null ? '' : 'H' + px[last - first]);
}

// The same from the right to the left, as the rest of an area.
function stepsBack(px, values, first, last, height) {
	let path = '', before = null;
	for (let i = last - 1; i >= first; i--) {
		const y = height(values[i]);
		if (y !== before) {
			path += (before === null ? '' : 'H' + px[i + 1 - first]) + 'V' + y;
		}
		before = y;
	}
	return path + 'H' + px[0];
}

// Values for the axis: multiples of a power of two.
function roundBytes(most) {
	const step = Math.pow(2, Math.max(0, Math.ceil(Math.log2(most / 6))));
	return d3.range(0, most * 1.05, step);
}

function drawLegend(legend, layers, outside) {
	const entries = layers.concat([{ name: 'reserved', color: 'var(--reserved)' },
		{ name: 'in flight', color: 'var(--flight)' }], outside);
	const rows = legend.selectAll('div').data(entries).enter().append('div');
	rows.append('span').attr('class', 'swatch').style('background', l => l.color);
	rows.append('span').text(l => l.name);
}
