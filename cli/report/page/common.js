// SPDX-License-Identifier: MIT
// The parts that all files of the page share: units, names, the tooltip, choices.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
for (const p of data.processes || []) {
	for (const s of p.sites) {
		s.frames = s.frames.map(i => p.frames[i]);
	}
}

function bytes(n) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let i = 0;
	for (; n >= 1024 && i < units.length - 1; i++) {
		n /= 1024;
	}
	return (i ? n.toFixed(2) : n.toFixed(0)) + ' ' + units[i];
}

// The same without needless digits: for the round numbers of an axis.
function axisBytes(n) {
	const [value, unit] = bytes(n).split(' ');
	return +value + ' ' + unit;
}

function seconds(t) {
	return t >= 1 || t === 0 ? t.toFixed(3) + ' s' : t >= 1e-3 ? (t * 1e3).toFixed(3) + ' ms' :
		(t * 1e6).toFixed(1) + ' µs';
}

// A moment on an axis that ends at `end` and whose ticks are `step` apart: with as many digits as tell them apart.
function moment(t, step, end) {
	const [unit, name] = end >= 1 ? [1, ' s'] : end >= 1e-3 ? [1e-3, ' ms'] : [1e-6, ' µs'];
	return (t / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)))) + name;
}

// "1 block", "2 blocks"
function counted(n, word) {
	return n + ' ' + word + (n === 1 ? '' : 's');
}

function percent(part, all) {
	return all ? (100 * part / all).toFixed(1) + ' %' : '';
}

function deviceName(device) {
	return device === null || device === 255 ? 'no device' : 'GPU ' + device;
}

function processName(p) {
	return (p.rank === null ? 'process ' + p.pid : 'rank ' + p.rank) + (p.host ? ' on ' + p.host : '');
}

// The kinds of groups, from the finest to the coarsest.
const KINDS = ['call site', 'function', 'file', 'module', 'stream', 'thread'];

// A row of samples: numbers with base 36 and spaces between them; "v*n" is n times v.
function unpack(text) {
	const out = [];
	for (const part of text ? text.split(' ') : []) {
		const [value, times] = part.split('*');
		for (let n = times ? parseInt(times, 36) : 1, v = parseInt(value, 36); n > 0; n--) {
			out.push(v);
		}
	}
	return out;
}

// The time line of a device. by(kind) has the sites or groups with names, and the bytes that they held at each time.
function timeLine(raw, process) {
	const seen = new Map(), sites = new Map(process.sites.map(s => [s.site, s]));
	const unpackKind = kind => ({ sites: raw.by[kind].sites,
		names: raw.by[kind].sites.map(s => kind === KINDS[0] ? sites.get(s).name : process.groups[kind][s].name),
		held: raw.by[kind].held.map(unpack) });
	return { device: raw.device, time: d3.range(raw.count).map(i => i * raw.span), used: unpack(raw.used),
		reserved: unpack(raw.reserved), in_flight: unpack(raw.in_flight),
		outside: Object.fromEntries(Object.entries(raw.outside).map(([k, v]) => [k, unpack(v)])),
		by(kind) {
			if (!seen.has(kind)) {
				seen.set(kind, unpackKind(kind));
			}
			return seen.get(kind);
		} };
}

// All text goes into the page as text, never as markup.
const tip = d3.select('body').append('div').attr('class', 'tip').attr('id', 'tip');

// Shows the tooltip near the pointer. `fill` puts its contents into an empty selection.
function showTip(event, fill) {
	tip.text('').style('display', 'block').call(fill);
	const box = tip.node().getBoundingClientRect();
	const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 16 :
		event.clientX + 16;
	const top = Math.min(event.clientY + 12, innerHeight - box.height - 8);
	tip.style('left', Math.max(0, left) + 'px').style('top', Math.max(0, top) + 'px');
}

function hideTip() {
	tip.style('display', 'none');
}

// A drop-down list; `change` gets the index of the choice, at once and later.
function choice(parent, id, label, names, change, first = 0) {
	const select = parent.append('label').text(label + ' ').append('select').attr('id', id)
		.on('change', function () { change(this.selectedIndex); });
	select.selectAll('option').data(names).enter().append('option').text(d => d);
	select.property('selectedIndex', first);
	change(first);
}

// Calls `draw` when the width of the window has changed.
function onResize(name, draw) {
	let width = innerWidth, frame = 0;
	d3.select(window).on('resize.' + name, () => {
		if (width !== innerWidth) {
			width = innerWidth;
			cancelAnimationFrame(frame);
			frame = requestAnimationFrame(draw);
		}
	});
}

function section(parent, id, title) {
	const s = parent.append('section').attr('id', id).attr('aria-labelledby', id + '-title');
	s.append('h2').attr('id', id + '-title').text(title);
	return s;
}

// A figure that can be compared with the JSON: the exact number is in data-value.
function figure(selection, name, value, text) {
	return selection.attr('data-figure', name).attr('data-value', value).text(text);
}

// A frame with its line: two calls in one function are two frames.
function frameName(f) {
	return (f.short || f.function) + (f.source ? ' (' + f.source.replace(/.*\//, '') + (f.line ? ':' + f.line : '') + ')' : '');
}

function stackText(site) {
	return site.frames.map(f => f.function + (f.source ? '  ' + f.source + ':' + f.line :
		f.module ? '  ' + f.module : '')).join('\n') || '(call stack not known)';
}
