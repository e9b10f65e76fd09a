// SPDX-License-Identifier: MIT
// The single blocks of a call site: when each lived, how large it was, and on which stream and thread.
'use strict';

function drawLives(parent, process, site) {
	const { sites, streams, threads } = process.charts.lives, lives = sites.find(s => s.site === site.site);
	if (!lives || !lives.blocks.length) {
		parent.append('p').attr('class', 'soft').text('The page has no blocks of this call site: ' + (site.allocations ?
			'it has those of the ' + sites.length + ' with the largest peaks' : 'it allocated none'));
		return;
	}
	const blocks = lives.blocks.map(([begin, end, size, stream, thread]) => ({ begin, end, size,
		until: end === null ? process.seconds : end, stream: streams[stream], thread: threads[thread] }));
	const left = lives.all - blocks.length;
	parent.append('p').attr('class', 'lives-note').text(counted(lives.all, 'block') + (left ?
		'; here are the ' + blocks.length + ' that took most bytes x time, ' + left + ' are left out' : ''));
	drawBars(parent, process, blocks);
	const columns = [['From', b => seconds(b.begin)], ['to', b => b.end === null ? 'not freed' : seconds(b.end)],
		['Life', b => seconds(b.until - b.begin)], ['Size', b => bytes(b.size)],
		['Stream', b => b.stream], ['Thread', b => b.thread]];
	const table = parent.append('div').attr('class', 'scroll').append('table').attr('class', 'lives');
	table.append('thead').append('tr').selectAll('th').data(columns).enter().append('th').attr('scope', 'col').text(c => c[0]);
	const rows = table.append('tbody').selectAll('tr').data(blocks).enter().append('tr');
	columns.forEach(c => rows.append('td').text(c[1]));
}

// A bar for each block, on the time of the whole recording.
function drawBars(parent, process, blocks) {
	const width = parent.node().getBoundingClientRect().width - 24 || 800, step = Math.max(2, Math.min(12, 160 / blocks.length));
	const end = Math.max(process.seconds, 1e-9), height = step * blocks.length + 24;
	const x = d3.scaleLinear().domain([0, end]).range([28, width - 34]);
	const streams = Array.from(new Set(blocks.map(b => b.stream)));
	const svg = parent.append('svg').attr('class', 'bars').attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height)
		.attr('role', 'img').attr('aria-label', 'When ' + counted(blocks.length, 'block') + ' lived');
	svg.selectAll('rect').data(blocks).enter().append('rect').attr('x', b => pixel(x(b.begin))).attr('y', (b, i) => i * step)
		.attr('width', b => pixel(Math.max(1, x(b.until) - x(b.begin)))).attr('height', Math.max(1, step - 1))
		.attr('fill', b => d3.schemeTableau10[streams.indexOf(b.stream) % 10])
		.on('mousemove', b => showTip(d3.event, t => t.append('div').text(bytes(b.size) + ', ' + seconds(b.begin) + ' to ' +
			(b.end === null ? 'the end' : seconds(b.end)) + ', ' + b.stream + ', ' + b.thread)))
		.on('mouseleave', hideTip);
	const ticks = x.ticks(Math.max(2, Math.floor(width / 110)));
	svg.append('g').attr('transform', 'translate(0,' + (height - 24) + ')').call(d3.axisBottom(x).tickValues(ticks)
		.tickFormat(t => moment(t, ticks.length > 1 ? ticks[1] - ticks[0] : 1, end)).tickSizeOuter(0));
}
