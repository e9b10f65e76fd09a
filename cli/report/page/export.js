// SPDX-License-Identifier: MIT
// Saves what is on the page: charts as SVG and PNG, tables as CSV. Everything happens in the browser.
'use strict';

function save(name, blob) {
	const link = document.createElement('a');
	link.href = URL.createObjectURL(blob);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A drawing in a file needs the rules of the page's style sheet in the drawing itself.
const KEPT_STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font', 'display', 'text-anchor'];

function svgText(svg) {
	const copy = svg.cloneNode(true), from = svg.querySelectorAll('*'), to = copy.querySelectorAll('*');
	const box = svg.getBoundingClientRect(), paper = getComputedStyle(document.body).backgroundColor;
	from.forEach((e, i) => {
		const style = getComputedStyle(e);
		for (const name of KEPT_STYLES) {
			to[i].style.setProperty(name, style.getPropertyValue(name));
		}
		for (const name of ['tabindex', 'role', 'aria-label', 'class']) {
			to[i].removeAttribute(name);
		}
	});
	copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
	copy.setAttribute('width', box.width);
	copy.setAttribute('height', box.height);
	copy.setAttribute('style', 'background: ' + paper);
	return new XMLSerializer().serializeToString(copy);
}

function savePng(svg, name) {
	const box = svg.getBoundingClientRect(), scale = 2, picture = new Image();
	picture.onload = () => {
		const canvas = document.createElement('canvas'), to = canvas.getContext('2d');
		canvas.width = box.width * scale;
		canvas.height = box.height * scale;
		to.fillStyle = getComputedStyle(document.body).backgroundColor;
		to.fillRect(0, 0, canvas.width, canvas.height);
		to.drawImage(picture, 0, 0, canvas.width, canvas.height);
		canvas.toBlob(blob => save(name, blob), 'image/png');
	};
	picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svgText(svg));
}

// Buttons that save a drawing.
function drawSaves(bar, svg, name) {
	const button = (kind, act) => bar.append('button').attr('type', 'button').attr('id', name + '-' + kind)
		.attr('aria-label', 'save as ' + kind.toUpperCase()).text(kind.toUpperCase()).on('click', act);
	button('svg', () => save(name + '.svg', new Blob([svgText(svg.node())], { type: 'image/svg+xml' })));
	button('png', () => savePng(svg.node(), name + '.png'));
}

// RFC 4180. A text that begins as a formula of a spreadsheet gets a blank in front.
function csvText(columns, rows) {
	const field = v => typeof v === 'number' ? String(v) :
		'"' + String(v).replace(/^(?=[=+@-])/, ' ').replace(/"/g, '""') + '"';
	return [columns.map(c => field(c.title))].concat(rows.map(r => columns.map(c => field(c.value(r)))))
		.map(r => r.join(',') + '\r\n').join('');
}
