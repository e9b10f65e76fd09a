// SPDX-License-Identifier: MIT
// Memory over time: used, reserved and in flight, stacked by call site. Wheel and drag zoom, the
// tooltip shows who holds memory at that moment.
'use strict';

const LAYERS = 12; // call sites with a colour of their own

// `chosen` gets the line and the index of a moment that is clicked.
function drawTimeline(parent, process, sites, chosen) {
	const bar = parent.append('div').attr('class', 'bar');
	const svg = parent.append('svg').attr('id', 'timeline').attr('role', 'img')
		.attr('aria-label', 'Memory over time: used by call site, reserved and in flight');
	const legend = parent.append('div').attr('class', 'soft').style('margin-top', '4px');
	const lines = process.charts.devices;
	const show = { stacked: true, reserved: true };
	let index = 0;

	function draw() {
		svg.text('').on('.zoom', null);
		legend.text('');
		if (lines.length) {
			drawDevice(svg, legend, lines[index], process, sites, show, i => chosen(lines[index], i));
		}
	}
	choice(bar, 'timeline-device', 'Device', lines.map(l => deviceName(l.device)), i => {
		index = i;
	});
	for (const [name, text] of [['stacked', ' stacked by call site'], ['reserved', ' with reserved']]) {
		const box = bar.append('label');
		box.append('input').attr('type', 'checkbox').attr('id', 'timeline-' + name).property('checked', true)
			.on('change', function () { show[name] = this.checked; draw(); });
		box.append('span').text(text);
	}
	bar.append('span').attr('class', 'soft').text('wheel: zoom, drag: move, double click: all, click: who held memory then');
	bar.select('select').on('change.draw', draw);
	draw();
}

// The layers of the chart from the bottom up, each with values per sample.
function layersOf(line, sites, stacked) {
	if (!stacked) {
		return [{ name: 'used', color: 'var(--used)', values: line.used }];
	}
	const order = d3.range(line.sites.length).sort((a, b) => d3.max(line.held[b]) - d3.max(line.held[a]))
		.slice(0, LAYERS);
	const color = i => d3.schemeTableau10[i % 10];
	const layers = order.map((k, i) => ({ name: sites.get(line.sites[k]).name, values: line.held[k],
		color: i < 10 ? color(i) : d3.color(color(i)).darker(0.8) }));
	const rest = line.used.map((u, i) => u - d3.sum(order, k => line.held[k][i]));
	if (rest.some(x => x > 0)) {
		layers.push({ name: 'other call sites', values: rest, color: 'var(--other)' });
	}
	return layers;
}

function drawDevice(svg, legend, line, process, sites, show, chosen) {
	const width = svg.node().getBoundingClientRect().width || 1200, height = 360;
	const margin = { left: 80, right: 16, top: 12, bottom: 28 };
	const end = Math.max(process.seconds, 1e-9);
	const x0 = d3.scaleLinear().domain([0, end]).range([margin.left, width - margin.right]);
	let x = x0, frame = 0;
	const y = d3.scaleLinear().range([height - margin.bottom, margin.top]);
	const layers = layersOf(line, sites, show.stacked);
	const sums = line.used.map(() => 0);
	for (const l of layers) {
		l.low = sums.slice();
		l.values.forEach((v, i) => { sums[i] += v; });
		l.high = sums.slice();
	}
	svg.attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height);
	svg.append('clipPath').attr('id', 'plot').append('rect').attr('x', margin.left).attr('y', 0)
		.attr('width', width - margin.left - margin.right).attr('height', height);
	const plot = svg.append('g').attr('clip-path', 'url(#plot)');
	const areas = plot.selectAll('path.layer').data(layers).enter().append('path')
		.attr('class', 'layer').attr('fill', l => l.color).attr('opacity', 0.85);
	const curve = name => plot.append('path').attr('fill', 'none').attr('data-line', name);
	const reserved = curve('reserved').attr('stroke', 'var(--reserved)').attr('stroke-width', 1.5);
	const flight = curve('in_flight').attr('stroke', 'var(--flight)').attr('stroke-width', 1.5);
	const marks = plot.selectAll('g.moment').data(marksOf(line, process)).enter().append('g').attr('class', 'moment')
		.attr('data-mark', m => m.kind);
	marks.append('line').attr('class', 'mark').attr('y1', margin.top).attr('y2', height - margin.bottom);
	marks.append('text').attr('x', 4).attr('y', (m, i) => margin.top + 10 + 14 * (i % 4)).text(m => m.text);
	const cursor = plot.append('line').attr('y1', margin.top).attr('y2', height - margin.bottom)
		.attr('stroke', 'var(--ink)').attr('stroke-dasharray', '3,3').style('display', 'none');
	const xAxis = svg.append('g').attr('transform', 'translate(0,' + (height - margin.bottom) + ')');
	const yAxis = svg.append('g').attr('transform', 'translate(' + margin.left + ',0)');

	function render() {
		const [from, to] = x.domain();
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
		yAxis.call(d3.axisLeft(y).tickValues(roundBytes(most)).tickFormat(bytes));
		svg.attr('data-from', from).attr('data-to', to);
	}

	const zoom = d3.zoom().scaleExtent([1, Math.max(1, line.time.length)])
		.extent([[margin.left, 0], [width - margin.right, height]])
		.translateExtent([[margin.left, 0], [width - margin.right, height]])
		.on('zoom', () => {
			x = d3.event.transform.rescaleX(x0);
			cancelAnimationFrame(frame); // one drawing per frame, however fast the wheel turns
			frame = requestAnimationFrame(render);
		});
	svg.call(zoom).on('dblclick.zoom', () => svg.call(zoom.transform, d3.zoomIdentity));
	svg.on('mousemove', function () {
		const [mx] = d3.mouse(this);
		const i = Math.min(line.time.length - 1, Math.max(0, d3.bisectRight(line.time, x.invert(mx)) - 1));
		cursor.style('display', null).attr('x1', mx).attr('x2', mx);
		showTip(d3.event, t => momentTip(t, line, i, sites));
	}).on('mouseleave', () => { hideTip(); cursor.style('display', 'none'); })
		.on('click', function () {
			const i = d3.bisectRight(line.time, x.invert(d3.mouse(this)[0])) - 1;
			chosen(Math.min(line.time.length - 1, Math.max(0, i)));
		});
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

function momentTip(t, line, i, sites) {
	t.append('div').text('at ' + seconds(line.time[i]) + ': used ' + bytes(line.used[i]) + ', in flight ' +
		bytes(line.in_flight[i]) + ', reserved ' + bytes(line.reserved[i]));
	const held = d3.range(line.sites.length).filter(k => line.held[k][i] > 0)
		.sort((a, b) => line.held[b][i] - line.held[a][i]).slice(0, 8);
	const rows = t.append('table').selectAll('tr').data(held).enter().append('tr');
	rows.append('td').text(k => bytes(line.held[k][i]));
	rows.append('td').text(k => percent(line.held[k][i], line.used[i]));
	rows.append('td').attr('class', 'name').text(k => sites.get(line.sites[k]).name);
}
