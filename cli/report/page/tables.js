// SPDX-License-Identifier: MIT
// Tables that sort by a click on a column, and unfold a row by a click on it.
'use strict';

const ROWS = 500; // more rows would make the page slow; the filter finds the rest

// Columns have a title, value(row) and text(value); `detail` gives the text of an unfolded row.
function drawTable(parent, id, columns, all, detail) {
	const filter = parent.append('div').attr('class', 'bar').append('input').attr('id', id + '-filter')
		.attr('placeholder', 'filter').on('input', draw);
	const note = parent.select('.bar').append('span').attr('class', 'soft');
	const table = parent.append('div').attr('class', 'scroll').append('table').attr('id', id);
	let by = 0, down = true;
	table.append('thead').append('tr').selectAll('th').data(columns).enter().append('th')
		.attr('class', c => c.name ? 'name' : null).text(c => c.title).on('click', (c, i) => {
			down = by === i ? !down : true;
			by = i;
			draw();
		});
	const body = table.append('tbody');
	function draw() {
		const word = filter.property('value').toLowerCase();
		const value = columns[by].value;
		const found = all.filter(r => !word || detail(r).toLowerCase().includes(word) ||
			columns.some(c => c.name && c.value(r).toLowerCase().includes(word)));
		found.sort((a, b) => (down ? 1 : -1) * d3.descending(value(a), value(b)));
		note.text(found.length > ROWS ? 'the first ' + ROWS + ' of ' + found.length : found.length + ' rows');
		body.text('');
		const rows = body.selectAll('tr').data(found.slice(0, ROWS)).enter().append('tr')
			.on('click', function (r) {
				const open = !d3.select(this).classed('open');
				d3.select(this).classed('open', open).select('pre').remove();
				if (open) {
					d3.select(this).select('td.name').append('pre').text(detail(r));
				}
			});
		columns.forEach(c => rows.append('td').attr('class', c.name ? 'name' : null)
			.text(r => c.text ? c.text(c.value(r)) : c.value(r)));
	}
	draw();
}

function drawSites(parent, process) {
	drawTable(parent, 'sites', [
		{ title: 'Peak', value: s => s.peak, text: bytes },
		{ title: process.leaks_title, value: s => s.live, text: bytes },
		{ title: 'Grows', value: s => s.grows ? 'yes' : '' },
		{ title: 'Allocations', value: s => s.allocations },
		{ title: 'Bytes in all', value: s => s.bytes, text: bytes },
		{ title: 'Mean life', value: s => s.mean_life, text: seconds },
		{ title: 'Repeats', value: s => s.repeats },
		{ title: 'Waits', value: s => s.wait_time, text: seconds },
		{ title: 'Call site, innermost first', value: s => s.name, name: true },
	], process.sites, stackText);
}

function drawRanks(parent, over) {
	const mean = f => r => r[f].mean, most = f => r => r[f].max;
	const columns = [
		{ title: 'Peak max', value: most('peak'), text: bytes },
		{ title: 'mean', value: mean('peak'), text: bytes },
		{ title: 'min', value: r => r.peak.min, text: bytes },
		{ title: 'max / mean', value: r => r.peak.imbalance, text: x => x.toFixed(2) },
		{ title: 'Most in', value: r => r.peak.rank === null ? 'process ' + r.peak.process : 'rank ' + r.peak.rank },
		{ title: 'Host', value: r => r.peak.host },
		{ title: 'Mean over time', value: mean('mean'), text: bytes },
		{ title: 'Never freed max', value: most('never_freed'), text: bytes },
		{ title: 'In', value: r => r.in },
		{ title: 'Name', value: r => r.name, name: true },
	];
	const detail = r => ['allocations', 'frees', 'mean', 'peak', 'reserved', 'never_freed'].map(f =>
		f + ': min ' + r[f].min + ', mean ' + r[f].mean + ', max ' + r[f].max).join('\n');
	drawTable(parent.append('div'), 'over-pools', columns, over.pools, detail);
	drawTable(parent.append('div'), 'over-sites', columns, over.sites, detail);
}
