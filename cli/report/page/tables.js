// SPDX-License-Identifier: MIT
// Tables that sort by a click on a column, and unfold a row by a click on it.
'use strict';

const ROWS = 500; // more rows would make the page slow; the filter finds the rest

// Enter and the space bar do what a click does.
function keyAsClick() {
	if (d3.event.target === this && (d3.event.key === 'Enter' || d3.event.key === ' ')) {
		d3.event.preventDefault();
		this.dispatchEvent(new Event('click'));
	}
}

// The arrows move between the rows, of which Tab finds one.
function moveBetweenRows() {
	const next = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[d3.event.key];
	let row = next && d3.event.target === this ? this[next] : null;
	while (row && !row.hasAttribute('tabindex')) {
		row = row[next];
	}
	if (row) {
		d3.event.preventDefault();
		this.setAttribute('tabindex', -1);
		row.setAttribute('tabindex', 0);
		row.focus();
	}
}

// A narrow window shows minor columns only in the unfolded row.
function classOf(column) {
	return column.name ? 'name' : column.minor ? 'minor' : null;
}

function show(column, row) {
	return column.text ? column.text(column.value(row)) : column.value(row);
}

// Columns have a title, value(row) and text(value); `detail` gives the text of an unfolded row, and
// `more`, if there is one, draws what stands below that text.
function drawTable(parent, id, columns, all, detail, more) {
	const bar = parent.append('div').attr('class', 'bar');
	const filter = bar.append('input').attr('id', id + '-filter').attr('type', 'search')
		.attr('placeholder', 'filter').attr('aria-label', 'filter').on('input', draw);
	const note = bar.append('span').attr('class', 'soft').attr('aria-live', 'polite');
	bar.append('button').attr('type', 'button').attr('id', id + '-csv').attr('aria-label', 'save the table as CSV').text('CSV')
		.on('click', () => save(id + '.csv', new Blob([csvText(columns, found)], { type: 'text/csv' })));
	let found = all;
	const table = parent.append('div').attr('class', 'scroll').append('table').attr('id', id)
		.attr('role', 'treegrid').attr('aria-label', id.replace(/-/g, ' '));
	let by = 0, down = true;
	table.append('thead').append('tr').selectAll('th').data(columns).enter().append('th')
		.attr('class', classOf).text(c => c.title).attr('tabindex', 0).attr('scope', 'col')
		.on('click', (c, i) => {
			down = by === i ? !down : true;
			by = i;
			draw();
		}).on('keydown', keyAsClick);
	const body = table.append('tbody');
	function draw() {
		const word = filter.property('value').toLowerCase();
		const value = columns[by].value;
		table.selectAll('th').attr('aria-sort', (c, i) => i !== by ? null : down ? 'descending' : 'ascending');
		found = all.filter(r => !word || detail(r).toLowerCase().includes(word) ||
			columns.some(c => c.name && c.value(r).toLowerCase().includes(word)));
		found.sort((a, b) => (down ? 1 : -1) * d3.descending(value(a), value(b)));
		note.text(found.length > ROWS ? 'the first ' + ROWS + ' of ' + found.length : counted(found.length, 'row'));
		body.text('');
		const rows = body.selectAll('tr').data(found.slice(0, ROWS)).enter().append('tr')
			.attr('tabindex', (r, i) => i ? -1 : 0).attr('aria-expanded', false)
			.on('keydown.click', keyAsClick).on('keydown.move', moveBetweenRows)
			.on('click', function (r) {
				const open = !d3.select(this).classed('open');
				d3.select(this).classed('open', open).attr('aria-expanded', open);
				if (!open) {
					this.nextElementSibling.remove();
					return;
				}
				const cell = d3.select(this.parentNode).insert('tr', () => this.nextElementSibling).attr('class', 'detail')
					.append('td').attr('colspan', columns.length);
				cell.append('pre').text(detail(r));
				cell.append('p').attr('class', 'narrow').text(columns.filter(c => c.minor && show(c, r) !== '')
					.map(c => c.title + ': ' + show(c, r)).join(', '));
				if (more) {
					more(cell, r);
				}
			});
		columns.forEach(c => rows.append('td').attr('class', classOf(c)).text(r => show(c, r)));
	}
	draw();
}

function drawSites(parent, process) {
	const bar = parent.append('div').attr('class', 'bar'), place = parent.append('div');
	choice(bar, 'sites-by', 'By', KINDS, i => {
		place.text('');
		drawSitesBy(place, process, KINDS[i]);
	});
}

function kindTitle(kind) {
	return kind === KINDS[0] ? 'Call site, innermost first' : kind[0].toUpperCase() + kind.slice(1);
}

function drawSitesBy(parent, process, kind) {
	const single = kind === KINDS[0];
	drawTable(parent, 'sites', [
		{ title: 'Peak', value: s => s.peak, text: bytes },
		{ title: process.leaks_title, value: s => s.live, text: bytes },
		{ title: 'Grows', value: s => s.grows ? 'yes' : '', minor: true },
		{ title: 'Allocations', value: s => s.allocations },
		{ title: 'Bytes in all', value: s => s.bytes, text: bytes, minor: true },
		{ title: 'Mean life', value: s => s.mean_life ?? -1, text: t => t < 0 ? '' : seconds(t), minor: true },
		{ title: 'Repeats', value: s => s.repeats, minor: true },
		{ title: 'Waits', value: s => s.wait_time, text: seconds, minor: true },
		{ title: kindTitle(kind), value: s => s.name, name: true },
	], single ? process.sites : process.groups[kind], single ? stackText : s => s.name,
	single ? (cell, site) => drawLives(cell, process, site) : null);
}

function titled(parent, title) {
	const part = parent.append('div');
	part.append('h3').text(title);
	return part;
}

function drawRanks(parent, over) {
	const mean = f => r => r[f].mean, most = f => r => r[f].max;
	const columns = [
		{ title: 'Peak max', value: most('peak'), text: bytes },
		{ title: 'mean', value: mean('peak'), text: bytes, minor: true },
		{ title: 'min', value: r => r.peak.min, text: bytes, minor: true },
		{ title: 'max / mean', value: r => r.peak.imbalance, text: x => x.toFixed(2) },
		{ title: 'Most in', value: r => r.peak.rank === null ? 'process ' + r.peak.process : 'rank ' + r.peak.rank },
		{ title: 'Host', value: r => r.peak.host, minor: true },
		{ title: 'Mean over time', value: mean('mean'), text: bytes, minor: true },
		{ title: 'Never freed max', value: most('never_freed'), text: bytes, minor: true },
		{ title: 'In', value: r => r.in, minor: true },
		{ title: 'Name', value: r => r.name, name: true },
	];
	const detail = r => ['allocations', 'frees', 'mean', 'peak', 'reserved', 'never_freed'].map(f =>
		f + ': min ' + r[f].min + ', mean ' + r[f].mean + ', max ' + r[f].max).join('\n');
	drawRows(parent, over);
	drawTable(titled(parent, 'Pools'), 'over-pools', columns, over.pools, detail);
	drawTable(titled(parent, 'Call sites, innermost first'), 'over-sites', columns, over.sites, detail);
}

// A row for each process, and the GPUs that several share.
function drawRows(parent, over) {
	drawTable(titled(parent, 'Processes, the worst first'), 'over-rows', [
		{ title: 'Failures', value: r => r.failures },
		{ title: 'Reserved peak', value: r => r.reserved_peak, text: bytes },
		{ title: 'Used peak', value: r => r.used_peak, text: bytes },
		{ title: 'At the end', value: r => r.used_at_end, text: bytes },
		{ title: 'Growing', value: r => r.growing, text: bytes },
		{ title: 'Process', value: r => (r.rank === null ? 'process ' + r.pid : 'rank ' + r.rank) +
			(r.host ? ' on ' + r.host : ''), name: true },
	], over.ranks, r => r.path);
	if (over.shared_gpus.length) {
		drawTable(titled(parent, 'GPUs that several processes share'), 'over-gpus', [
			{ title: 'Reserved together, at most', value: g => g.peak, text: bytes },
			{ title: 'at', value: g => g.peak_time, text: seconds },
			{ title: 'If all peaks came at once', value: g => g.sum_of_peaks, text: bytes },
			{ title: 'Processes', value: g => g.processes },
			{ title: 'GPU', value: g => g.pci + (g.host ? ' on ' + g.host : ''), name: true },
		], over.shared_gpus, g => g.steps.map(s => seconds(s[0]) + '  ' + bytes(s[1])).join('\n'));
	}
}

function signed(n) {
	return n === 0 ? '=' : (n < 0 ? '-' : '+') + bytes(Math.abs(n));
}

function drawDifference(parent, difference) {
	const [a, b] = [difference.a, difference.b];
	parent.append('h1').text('What grew');
	const side = s => s.name + (s.processes > 1 ? ' (means over ' + s.processes + ' processes)' : '');
	parent.append('p').attr('class', 'soft').text('A: ' + side(a));
	parent.append('p').attr('class', 'soft').text('B: ' + side(b));
	const totals = [['used peak', 'used_peak'], ['reserved peak', 'reserved_peak'], ['used at the end', 'used_at_end']];
	const table = parent.append('table').attr('id', 'totals').style('width', 'auto');
	table.append('thead').append('tr').selectAll('th').data(['Figure', 'A', 'B', 'change']).enter().append('th').attr('class', (d, i) => i ? null : 'name').attr('scope', 'col').text(d => d);
	const rows = table.append('tbody').selectAll('tr').data(totals).enter().append('tr');
	rows.append('td').attr('class', 'name').text(t => t[0]);
	rows.append('td').text(t => bytes(a[t[1]]));
	rows.append('td').text(t => bytes(b[t[1]]));
	rows.append('td').each(function (t) { figure(d3.select(this), 'difference.' + t[1], b[t[1]] - a[t[1]], signed(b[t[1]] - a[t[1]])); });
	const change = f => s => s[f][1] - s[f][0];
	drawTable(section(parent, 'changes', difference.by[0].toUpperCase() + difference.by.slice(1) + 's that changed'), 'difference', [
		{ title: 'Peak grew by', value: change('peak'), text: signed },
		{ title: 'Peak A', value: s => s.peak[0], text: bytes, minor: true },
		{ title: 'Peak B', value: s => s.peak[1], text: bytes, minor: true },
		{ title: 'At the end', value: change('live'), text: signed },
		{ title: 'Allocations A', value: s => s.allocations[0], minor: true },
		{ title: 'B', value: s => s.allocations[1], minor: true },
		{ title: kindTitle(difference.by), value: s => (s.in_a ? s.in_b ? '' : 'gone: ' : 'new: ') + s.name, name: true },
	], difference.sites, s => s.name.split(' < ').join('\n'));
	drawDifferenceFlame(section(parent, 'difference-graph', 'What changed, as a flame graph'), difference);
}
