// SPDX-License-Identifier: MIT
// One function: what it holds, by whom it is called, and what it calls.
'use strict';

const FUNCTION_ROWS = 20;

// Sums over the holders whose stacks have the function. One that calls itself counts once for each holder.
function aroundFunction(holders, sites, name) {
	const callers = new Map(), callees = new Map();
	let all = 0, own = 0;
	const add = (map, key, n) => map.set(key, (map.get(key) || 0) + n);
	for (const h of holders) {
		const names = sites.get(h.site).frames.map(f => f.function);
		if (!names.includes(name)) {
			continue;
		}
		all += h.bytes;
		own += names[0] === name ? h.bytes : 0;
		const above = new Set(), below = new Set();
		names.forEach((n, i) => {
			if (n !== name) {
				return;
			}
			if (names[i + 1] !== name) {
				above.add(i + 1 < names.length ? names[i + 1] : '(nobody: it is the outermost)');
			}
			if (i && names[i - 1] !== name) {
				below.add(names[i - 1]);
			}
		});
		above.forEach(n => add(callers, n, h.bytes));
		below.forEach(n => add(callees, n, h.bytes));
	}
	const sorted = map => Array.from(map, ([key, value]) => ({ key, value })).sort((a, b) => b.value - a.value);
	return { all, own, callers: sorted(callers), callees: sorted(callees) };
}

// Draws the function below the flame graph; `pick` chooses another one.
function drawFunction(parent, graph, sites, name, pick) {
	parent.text('');
	if (!name) {
		return;
	}
	const around = aroundFunction(graph.holders, sites, name), text = graph.text || bytes;
	parent.append('p').attr('id', 'function-name').attr('data-value', around.all).text(name + ': ' + text(around.all) + ' (' +
		percent(around.all, graph.all) + '), ' + text(around.own) + ' of it itself');
	const pair = parent.append('div').attr('class', 'pair');
	for (const [id, title, rows] of [['callers', 'Callers', around.callers], ['callees', 'Callees', around.callees]]) {
		const part = pair.append('div');
		part.append('h3').text(title + (rows.length > FUNCTION_ROWS ? ', the first ' + FUNCTION_ROWS + ' of ' + rows.length : ''));
		if (!rows.length) {
			part.append('p').attr('class', 'soft').text('none');
			continue;
		}
		const lines = part.append('table').attr('id', id).selectAll('tr').data(rows.slice(0, FUNCTION_ROWS)).enter().append('tr');
		lines.append('td').text(r => text(r.value));
		lines.append('td').text(r => percent(r.value, around.all));
		lines.append('td').attr('class', 'name').each(function (r) {
			if (r.key.startsWith('(nobody')) {
				d3.select(this).text(r.key);
			} else {
				d3.select(this).append('button').attr('type', 'button').attr('class', 'link').text(r.key).on('click', () => pick(r.key));
			}
		});
	}
}
