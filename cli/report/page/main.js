// SPDX-License-Identifier: MIT
// Puts the page together. With several processes, one is shown at a time, below the comparison.
'use strict';

function drawCards(parent, process) {
	process.devices.forEach(d => {
		const cards = parent.append('div').attr('class', 'cards');
		const id = d.device === null ? 'none' : d.device;
		const card = (title, name, value, note) => {
			const c = cards.append('div').attr('class', 'card');
			c.append('span').text(d.label + ' ' + title);
			figure(c.append('b'), id + '.' + name, value, bytes(value));
			c.append('span').text(note);
		};
		card('used peak', 'used_peak.used', d.used_peak.used, 'at ' + seconds(d.used_peak.time));
		card('reserved peak', 'reserved_peak.reserved', d.reserved_peak.reserved,
			'at ' + seconds(d.reserved_peak.time));
		card('in flight peak', 'in_flight_peak.in_flight', d.in_flight_peak.in_flight,
			'at ' + seconds(d.in_flight_peak.time));
		card('used at the end', 'end.used', d.end.used, process.leaks_title.toLowerCase());
		card('memory', 'total', d.total, d.name + ' ' + d.pci);
	});
}

const wasteNames = { asked: 'asked for by the program', rounding: 'rounding of block sizes',
	in_flight_own: 'in flight on the same stream',
	in_flight_others: 'in flight on other streams',
	fragmentation: 'fragmentation: holes that are too small', other_pools: 'free in other pools',
	idle: 'free and large enough' };

function drawWaste(parent, picture, prefix) {
	const parts = Object.assign({ asked: picture.asked }, picture.waste);
	const rows = parent.append('table').style('width', 'auto').selectAll('tr')
		.data(Object.keys(wasteNames).filter(k => parts[k] > 0)).enter().append('tr');
	rows.append('td').each(function (k) { figure(d3.select(this), prefix + k, parts[k], bytes(parts[k])); });
	rows.append('td').text(k => percent(parts[k], picture.reserved));
	rows.append('td').attr('class', 'name').text(k => wasteNames[k]);
}

function drawWastes(parent, process) {
	process.devices.filter(d => d.at_reserved_peak).forEach(d => {
		const p = d.at_reserved_peak;
		parent.append('p').text('The ' + bytes(p.reserved) + ' reserved of ' + d.label + ' when it had most, at ' +
			seconds(p.time) + (p.request ? ', as it grew for a block of ' + bytes(p.request) : ''));
		drawWaste(parent, p, d.device + '.waste.');
	});
}

function drawFailures(parent, process, sites) {
	process.failures.forEach((f, i) => {
		const name = sites.has(f.site) ? sites.get(f.site).name : '';
		parent.append('p').attr('class', 'bad').text(f.kind + ' at ' + seconds(f.time) + ': ' + bytes(f.request) +
			' asked for on ' + deviceName(f.device) + ', largest hole ' + bytes(f.waste.largest_hole) + ', by ' + name);
		parent.append('p').text('Where the reserved memory was');
		drawWaste(parent, f, 'failure.' + i + '.');
		parent.append('p').text('Who held it: bytes, blocks, call site');
		const rows = parent.append('table').style('width', 'auto').selectAll('tr').data(f.holders).enter().append('tr');
		rows.append('td').text(h => bytes(h.bytes));
		rows.append('td').text(h => h.blocks);
		rows.append('td').attr('class', 'name').text(h => sites.get(h.site).name);
	});
	if (process.all_failures > process.failures.length) {
		parent.append('p').text('and ' + (process.all_failures - process.failures.length) + ' more');
	}
}

function drawWaits(parent, process) {
	const rows = parent.append('table').style('width', 'auto').selectAll('tr').data(process.wait_causes).enter().append('tr');
	rows.append('td').text(w => w.count);
	rows.append('td').text(w => seconds(w.time));
	rows.append('td').text(w => 'longest ' + seconds(w.longest));
	rows.append('td').attr('class', 'name').text(w => w.cause);
}

function drawPhases(parent, process) {
	drawTable(parent, 'phase-table', [
		{ title: 'Used peak', value: p => p.used_peak, text: bytes },
		{ title: 'at', value: p => p.used_peak_time, text: seconds, minor: true },
		{ title: 'Reserved peak', value: p => p.reserved_peak, text: bytes, minor: true },
		{ title: 'Grew by', value: p => p.grew, text: signed },
		{ title: 'Ranges', value: p => p.count },
		{ title: 'Time', value: p => p.time, text: seconds },
		{ title: 'Allocations', value: p => p.allocations, minor: true },
		{ title: 'Name', value: p => p.name, name: true },
	], process.phases, p => p.name + '\nthe range with that peak: ' + seconds(p.peak_range[0]) + ' to ' + seconds(p.peak_range[1]));
}

function drawProcess(parent, process) {
	const sites = new Map(process.sites.map(s => [s.site, s]));
	parent.text('');
	parent.append('h1').text(process.command || process.program || process.path);
	parent.append('p').attr('class', 'soft').text(processName(process) + ', ' + counted(process.events, 'event') + ' in ' +
		seconds(process.seconds) + ', ' + counted(process.allocations, 'allocation') + '; ' + process.path +
		', recording: ' + process.recording);
	if (process.damaged_places || process.lost_events || process.lost_stacks) {
		parent.append('p').attr('class', 'bad').text('Not complete: ' + counted(process.lost_events, 'event') + ' and ' +
			counted(process.lost_stacks, 'stack') + ' lost, ' + counted(process.damaged_places, 'damaged place') + '. ' +
			process.damage);
	}
	if (process.part) {
		parent.append('p').attr('id', 'part').text('From ' + seconds(process.part[0]) + (process.part[1] === null ? '' : ' to ' +
			seconds(process.part[1])) + ' of the recording; times count from there.');
	}
	if (process.lost_names) {
		parent.append('p').attr('class', 'bad').text(counted(process.lost_names, 'frame') +
			' of Python without a name: the program has more functions than a recording keeps');
	}
	if (process.rebuilt) {
		parent.append('p').attr('class', 'bad').attr('id', 'rebuilt').text(process.rebuilt +
			' was built after the recording, so names are missing (--debug-path finds a copy)');
	}
	drawCards(parent, process);
	if (process.failures.length) {
		drawFailures(section(parent, 'failures', 'Failed allocations'), process, sites);
	}
	const time = section(parent, 'over-time', 'Memory over time');
	const drawChosen = drawFlame(section(parent, 'flame-graphs', 'Who held memory'), process, sites);
	drawTimeline(time, process, drawChosen);
	if (process.devices.some(d => d.sizes.length)) {
		drawSizes(section(parent, 'block-sizes', 'How large the blocks were'), process);
	}
	drawAddresses(section(parent, 'addresses', 'Addresses of a pool'), process);
	drawWastes(section(parent, 'waste', 'Where reserved memory was'), process);
	if (process.phases.length) {
		drawPhases(section(parent, 'phases', 'Phases'), process);
	}
	if (process.wait_causes.length) {
		drawWaits(section(parent, 'waits', 'Time in waits and in calls of the driver'), process);
	}
	drawSites(section(parent, 'call-sites', 'Call sites'), process);
}

function drawPage() {
	const body = d3.select('body');
	if (data.difference) {
		drawDifference(body.append('main'), data.difference);
		return;
	}
	if (data.over_ranks) {
		const main = body.append('main'), s = section(main, 'ranks', data.over_ranks.processes + ' processes' +
			(data.processes.length < data.over_ranks.processes ? ', of which the page has the ' + data.processes.length + ' worst' : ''));
		drawRanks(s, data.over_ranks);
		const bar = main.append('div').attr('class', 'bar'), one = main.append('div');
		choice(bar, 'process', 'Process', data.processes.map(processName), i => drawProcess(one, data.processes[i]));
	} else {
		drawProcess(body.append('main'), data.processes[0]);
	}
}

drawPage();
