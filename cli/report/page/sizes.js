// SPDX-License-Identifier: MIT
// How large the blocks were: a bar for each power of two.
'use strict';

const SIZE_VALUES = [['allocations', 'allocations', n => String(n)], ['bytes', 'bytes of all allocations', bytes],
	['live_blocks', 'blocks at the end', n => String(n)], ['live', 'bytes at the end', bytes]];

function drawSizes(parent, process) {
	const devices = process.devices.filter(d => d.sizes.length);
	const bar = parent.append('div').attr('class', 'bar');
	const svg = parent.append('svg').attr('id', 'sizes').attr('role', 'img');
	let device = devices[0], value = SIZE_VALUES[0];
	function draw() {
		svg.text('');
		if (!device) {
			return;
		}
		const [key, title, text] = value, width = svg.node().getBoundingClientRect().width || 1200, height = 220;
		const margin = { left: 80, right: 20, top: 12, bottom: 34 };
		const first = Math.log2(Math.max(1, device.sizes[0].from)), last = Math.log2(Math.max(1, device.sizes[device.sizes.length - 1].from));
		const powers = d3.range(first, last + 1), rows = new Map(device.sizes.map(s => [Math.log2(Math.max(1, s.from)), s]));
		const x = d3.scaleBand().domain(powers).range([margin.left, width - margin.right]).padding(0.15);
		const most = Math.max(1, d3.max(device.sizes, s => s[key]));
		const y = d3.scaleLinear().domain([0, most * 1.05]).range([height - margin.bottom, margin.top]);
		svg.attr('viewBox', '0 0 ' + width + ' ' + height).attr('height', height).attr('aria-label', 'Sizes of blocks: ' + title + ' of ' +
			device.label + ', most from ' + axisBytes(device.sizes[d3.scan(device.sizes, (a, b) => b[key] - a[key])].from) + ' on');
		svg.selectAll('rect').data(powers.filter(p => rows.has(p))).enter().append('rect').attr('class', 'size')
			.attr('data-from', p => rows.get(p).from).attr('data-value', p => rows.get(p)[key])
			.attr('x', x).attr('width', x.bandwidth()).attr('y', p => y(rows.get(p)[key])).attr('height', p => y(0) - y(rows.get(p)[key]))
			.on('mousemove', p => showTip(d3.event, t => {
				const s = rows.get(p);
				t.append('div').text('from ' + axisBytes(s.from) + ' to ' + axisBytes(2 * Math.max(1, s.from)));
				for (const [k, name, show] of SIZE_VALUES) {
					t.append('div').attr('class', 'soft').text(name + ': ' + show(s[k]));
				}
			})).on('mouseleave', hideTip);
		const step = Math.ceil(powers.length * 60 / (width - margin.left - margin.right));
		svg.append('g').attr('transform', 'translate(0,' + (height - margin.bottom) + ')').call(d3.axisBottom(x)
			.tickValues(powers.filter((p, i) => i % step === 0)).tickFormat(p => axisBytes(Math.pow(2, p))).tickSizeOuter(0));
		svg.append('g').attr('transform', 'translate(' + margin.left + ',0)').call(key.startsWith('live_') || key === 'allocations' ?
			d3.axisLeft(y).ticks(Math.min(5, most)).tickFormat(d3.format('d')) : d3.axisLeft(y).tickValues(roundBytes(most)).tickFormat(axisBytes));
	}
	choice(bar, 'sizes-device', 'Device', devices.map(d => d.label), i => { device = devices[i]; draw(); });
	choice(bar, 'sizes-value', 'Bars', SIZE_VALUES.map(v => v[1]), i => { value = SIZE_VALUES[i]; draw(); });
	drawSaves(bar, svg, 'sizes');
	onResize('sizes', draw);
}
