// SPDX-License-Identifier: MIT
// The mouse and the keys on the chart of memory over time: they zoom, and choose a moment or a range.
'use strict';

const MOVED = 4; // pixels; a shorter way of the mouse is a click

// `chart` comes from drawDevice(); `render` draws it again after a zoom. Returns a function that puts the selection in its place.
function drawPicker(chart, render) {
	const { svg, plot, line, note, margin, width, height, x0, end } = chart;
	const band = plot.append('rect').attr('class', 'band').attr('y', margin.top)
		.attr('height', height - margin.top - margin.bottom).style('display', 'none');
	const cursor = plot.append('line').attr('y1', margin.top).attr('y2', height - margin.bottom)
		.attr('stroke', 'var(--ink)').attr('stroke-dasharray', '3,3').style('display', 'none');
	const last = line.time.length - 1;
	const sample = t => Math.min(last, Math.max(0, d3.bisectRight(line.time, t) - 1));
	const until = i => i < last ? line.time[i + 1] : end;
	let range = chart.show.range, at = null, start = null, frame = 0; // range: first and last sample; at: of the keys

	const zoom = d3.zoom().scaleExtent([1, Math.max(1, line.time.length)])
		.extent([[margin.left, 0], [width - margin.right, height]])
		.translateExtent([[margin.left, 0], [width - margin.right, height]])
		.filter(() => d3.event.type !== 'mousedown' || (d3.event.shiftKey && !d3.event.button))
		.on('zoom', () => {
			chart.x = d3.event.transform.rescaleX(x0);
			cancelAnimationFrame(frame); // one drawing per frame, however fast the wheel turns
			frame = requestAnimationFrame(render);
		});
	svg.call(zoom).on('dblclick.zoom', () => svg.call(zoom.transform, d3.zoomIdentity));

	// Shows the samples from `from` to `to` as wide as the chart.
	function zoomTo(from, to) {
		const all = width - margin.left - margin.right, left = x0(line.time[from]);
		const scale = Math.min(all / Math.max(1e-9, x0(until(to)) - left), Math.max(1, line.time.length));
		svg.call(zoom.transform, d3.zoomIdentity.translate(margin.left - left * scale, 0).scale(scale));
	}
	function place() {
		band.style('display', range ? null : 'none');
		if (range) {
			const from = chart.x(line.time[range[0]]), to = chart.x(until(range[1]));
			band.attr('x', from).attr('width', Math.max(1, to - from));
		}
		cursor.style('display', at === null ? 'none' : null);
		if (at !== null) {
			cursor.attr('x1', chart.x(line.time[at])).attr('x2', chart.x(line.time[at]));
		}
	}
	function sayRange([from, to]) {
		const used = line.used.slice(from, to + 1);
		note.text('').append('span').text(from === to ? momentText(line, from) : rangeName(line, from, to, end) +
			': used ' + bytes(d3.min(used)) + ' to ' + bytes(d3.max(used)) + ', ' + bytes(d3.mean(used)) + ' in the mean');
		if (from !== to) {
			note.append('button').attr('id', 'timeline-zoom').text('Zoom in').on('click', () => zoomTo(from, to));
		}
	}
	// Draws who held memory then.
	function choose(from, to) {
		range = chart.show.range = [from, to];
		sayRange(range);
		place();
		chart.chosen(from, to);
	}
	const here = () => sample(chart.x.invert(d3.mouse(svg.node())[0]));
	svg.on('mousedown.pick', () => {
		if (!d3.event.button && !d3.event.shiftKey) {
			start = { x: d3.event.clientX, i: here() };
		}
	}).on('mousemove', () => {
		const [mx] = d3.mouse(svg.node()), i = here();
		cursor.style('display', null).attr('x1', mx).attr('x2', mx);
		if (start && Math.abs(d3.event.clientX - start.x) >= MOVED) {
			range = [Math.min(start.i, i), Math.max(start.i, i)];
			place();
		}
		showTip(d3.event, t => momentTip(t, line, i, chart.show.kind));
	}).on('mouseleave', () => { hideTip(); place(); });
	d3.select(window).on('mouseup.pick', () => {
		if (start) {
			const i = here(), drag = Math.abs(d3.event.clientX - start.x) >= MOVED, from = start.i;
			start = null;
			choose(drag ? Math.min(from, i) : i, drag ? Math.max(from, i) : i);
		}
	});
	svg.on('keydown', () => {
		const e = d3.event, [from, to] = chart.x.domain().map(sample), way = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
		if (e.altKey || e.ctrlKey || e.metaKey) {
			return;
		}
		if (way) {
			const old = at === null ? Math.round((from + to) / 2) : at;
			at = Math.min(last, Math.max(0, old + way * Math.max(1, Math.round((to - from) / 100))));
			start = null;
			const other = range && range.anchor !== undefined ? range.anchor : old;
			range = e.shiftKey ? Object.assign([Math.min(other, at), Math.max(other, at)], { anchor: other }) : null;
			if (at < from || at > to) {
				svg.call(zoom.translateTo, x0(line.time[at]), 0);
			}
			note.text(range ? rangeName(line, range[0], range[1], end) : momentText(line, at));
			place();
		} else if (e.key === 'Enter' || e.key === ' ') {
			choose(...(range || [at === null ? from : at, at === null ? to : at]));
		} else if (e.key === '+' || e.key === '-') {
			svg.call(zoom.scaleBy, e.key === '+' ? 2 : 0.5, at === null ? undefined : [chart.x(line.time[at]), 0]);
		} else if (e.key === '0') {
			svg.call(zoom.transform, d3.zoomIdentity);
		} else {
			return;
		}
		e.preventDefault();
	});
	if (range) {
		sayRange(range);
	}
	return place;
}

function rangeName(line, from, to, end) {
	const step = (end - line.time[0]) / 1000, until = to < line.time.length - 1 ? line.time[to + 1] : end;
	return moment(line.time[from], step, end) + ' to ' + moment(until, step, end);
}

function momentText(line, i) {
	return 'at ' + seconds(line.time[i]) + ': used ' + bytes(line.used[i]) + ', in flight ' +
		bytes(line.in_flight[i]) + ', reserved ' + bytes(line.reserved[i]);
}

function momentTip(t, line, i, kind) {
	const { names, held } = line.by(kind);
	t.append('div').text(momentText(line, i));
	const most = d3.range(held.length).filter(k => held[k][i] > 0).sort((a, b) => held[b][i] - held[a][i]).slice(0, 8);
	const rows = t.append('table').selectAll('tr').data(most).enter().append('tr');
	rows.append('td').text(k => bytes(held[k][i]));
	rows.append('td').text(k => percent(held[k][i], line.used[i]));
	rows.append('td').attr('class', 'name').text(k => names[k]);
}
