// SPDX-License-Identifier: MIT
// The addresses of a pool at a chosen moment: live, in flight, free. A cell is a part of the
// mapped memory; a line marks where addresses are missing between two cells.
'use strict';

const COLUMNS = 64;

function drawAddresses(parent, process) {
	const maps = d3.nest().key(m => m.pool).entries(process.charts.maps);
	if (!maps.length) {
		parent.append('p').attr('class', 'soft').text('No pool had memory of its own.');
		return;
	}
	const pools = new Map(process.pools.map(q => [q.pool, q]));
	const bar = parent.append('div').attr('class', 'bar');
	const info = parent.append('p').attr('id', 'map-info');
	const canvas = parent.append('canvas').attr('id', 'map').attr('role', 'img').attr('aria-describedby', 'map-info')
		.attr('aria-label', 'Addresses of the pool: live, in flight and free');
	const legend = parent.append('p').attr('class', 'soft');
	for (const [name, color] of [['live', 'var(--used)'], ['in flight', 'var(--flight)'], ['free', 'var(--line)']]) {
		legend.append('span').attr('class', 'swatch').style('background', color);
		legend.append('span').text(name + '   ');
	}
	let list = maps[0].values;
	const slider = bar.append('label').text('Moment ').append('input').attr('type', 'range').attr('id', 'map-moment')
		.attr('min', 0).style('width', '400px').on('input', draw);
	function draw() {
		const m = list[+slider.property('value')];
		const live = d3.sum(m.live, c => +c), flight = d3.sum(m.in_flight, c => +c);
		info.attr('data-time', m.time).text('at ' + seconds(m.time) + ': ' + bytes(m.bytes) +
			' reserved, about ' + percent(live, 9 * m.live.length) + ' live and ' +
			percent(flight, 9 * m.live.length) + ' in flight, largest hole ' + bytes(m.largest_hole) +
			'; a cell is ' + bytes(m.cell));
		drawCells(canvas.node(), m);
	}
	bar.insert('label', ':first-child').text('Pool ').append('select').attr('id', 'map-pool')
		.on('change', function () { list = maps[this.selectedIndex].values; start(); })
		.selectAll('option').data(maps).enter().append('option').text(m => {
			const q = pools.get(+m.key);
			return q ? (q.name || 'pool without name') + ', ' + deviceName(q.device) : m.key;
		});
	// Begins at the moment with the most reserved.
	function start() {
		slider.attr('max', list.length - 1).property('value', d3.scan(list, (a, b) => b.bytes - a.bytes));
		draw();
	}
	canvas.on('mousemove', function () {
		const m = list[+slider.property('value')];
		const [mx, my] = d3.mouse(this), box = this.getBoundingClientRect();
		const i = Math.floor(my / box.height * rows(m)) * COLUMNS + Math.floor(mx / box.width * COLUMNS);
		if (i < 0 || i >= m.live.length) {
			hideTip();
			return;
		}
		showTip(d3.event, t => t.append('div').text('cell ' + i + ' at ' + bytes(i * m.cell) + ': live ' +
			percent(+m.live[i], 9) + ', in flight ' + percent(+m.in_flight[i], 9)));
	}).on('mouseleave', hideTip);
	start();
}

function rows(m) {
	return Math.ceil(m.live.length / COLUMNS);
}

function drawCells(canvas, m) {
	const w = 1280 / COLUMNS, h = 16, gaps = new Set(m.gaps);
	canvas.width = 1280;
	canvas.height = rows(m) * h;
	const c = canvas.getContext('2d'), style = getComputedStyle(document.documentElement);
	const color = name => style.getPropertyValue(name).trim();
	const [free, used, inFlight, ink] = ['--line', '--used', '--flight', '--ink'].map(color);
	for (let i = 0; i < m.live.length; i++) {
		const x = i % COLUMNS * w, y = Math.floor(i / COLUMNS) * h;
		const live = m.live[i] / 9 * (w - 1), flight = m.in_flight[i] / 9 * (w - 1);
		c.fillStyle = free;
		c.fillRect(x, y, w - 1, h - 1);
		c.fillStyle = used;
		c.fillRect(x, y, live, h - 1);
		c.fillStyle = inFlight;
		c.fillRect(x + live, y, Math.min(flight, w - 1 - live), h - 1);
		if (gaps.has(i)) {
			c.fillStyle = ink;
			c.fillRect(x - 1, y, 2, h);
		}
	}
}
