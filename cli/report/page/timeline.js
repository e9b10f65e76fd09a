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
	const show = { stacked: true, reserved: true, kind: null, range: null };
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
	for (const [name, text] of [['stacked', ' stacked'], ['reserved', ' with reserved']]) {
		const box = bar.append('label');
		box.append('input').attr('type', 'checkbox').attr('id', 'timeline-' + name).property('checked', true)
			.on('change', function () { show[name] = this.checked; draw(); });
		box.append('span').text(text);
	}
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
	const width = svg.node().getBoundingClientRect().width || 1200, height = 360;
	const margin = { left: 80, right: 30, top: 12, bottom: 28 };
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
			most = Math.max(most, show.reserved ? line.reserved[i] : 0, sums[i], line.in_flight[i]);
		}
		y.domain([0, most * 1.05]);
		// Where each sample begins, and where the last one ends.
		const px = d3.range(first, last + 1).map(i => pixel(x(i < line.time.length ? line.time[i] : end)));
		const steps = values => stepPath(px, values, first, last, v => pixel(y(v)));
		areas.attr('d', l => steps(l.high) + stepsBack(px, l.low, first, last, v => pixel(y(v))) + 'Z');
		reserved.attr('d', show.reserved ? steps(line.reserved) : '');
		flight.attr('d', steps(line.in_flight));
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
	drawLegend(legend, layers);
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

function drawLegend(legend, layers) {
	const entries = layers.concat([{ name: 'reserved', color: 'var(--reserved)' },
		{ name: 'in flight', color: 'var(--flight)' }]);
	const rows = legend.selectAll('div').data(entries).enter().append('div');
	rows.append('span').attr('class', 'swatch').style('background', l => l.color);
	rows.append('span').text(l => l.name);
}
