// A chart with a line for each item: rank, name, language, value, and a mark in the plot. On narrow
// screens the plot goes under the text.
//
// An item is {id, name, tag, anser, class, rank, sup, value, about, bad, row}; the spec is
// {figure, title, about, legend, items, axis(from, to), tick, mark(item, axis, y), none}.
const rowHeight = 25;
const tallRow = 44;
const barHeight = 13;

function rowChart(spec) {
	const { figure } = spec;
	const width = Math.max(260, figure.clientWidth - 2 * parseFloat(getComputedStyle(figure).paddingLeft));
	const focused = figure.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
	figure.replaceChildren(el("figcaption", {},
		el("h3", { id: figure.id + "-title" }, spec.title), el("span", { class: "about" }, spec.about),
		spec.legend && el("div", { class: "legend" }, spec.legend)));
	if (!spec.items.length) {
		figure.append(el("p", { class: "empty" }, spec.none));
		return;
	}
	const layout = layOut(spec, width);
	const bottom = layout.height * spec.items.length;
	const svg = draw("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, height: bottom + 22, role: "list", "aria-labelledby": figure.id + "-title" });
	const axis = spec.axis(layout.from, width - 12);
	for (const value of axis.ticks) {
		const x = axis.at(value);
		svg.append(draw("path", { class: "grid", d: `M${x} 0V${bottom}` }), draw("text", { class: "axis-text mid", x, y: bottom + 16, "aria-hidden": "true" }, spec.tick(value)));
	}
	spec.items.forEach((item, index) => svg.append(chartRow(spec, item, index, layout, axis, width)));
	walkable(svg, focused);
	figure.append(svg);
	if (focused) svg.querySelector("[tabindex='0']").focus();
}

// layOut gives every column of text the width of its widest cell.
function layOut(spec, width) {
	const widest = (of) => Math.max(0, ...spec.items.map(of));
	const value = widest((item) => (item.bad ? 0 : textWidth(item.value, item.anser)));
	const tag = Math.min(110, widest((item) => textWidth(item.tag)));
	const name = widest((item) => textWidth(nameOf(item), item.anser) + (item.sup ? 6 + 7 * item.sup.length : 0));
	const narrow = width < 30 + name + tag + value + 230;
	if (narrow) return { narrow, value, height: tallRow, from: 4, rank: 0, name: 26, names: Math.max(60, width - 26 - tag - value - 34), tag };
	const start = 26 + Math.min(name, 240);
	return { narrow, value, height: rowHeight, from: start + 12 + tag + 14 + value + 14, rank: 0, name: 26, names: Math.min(name, 240), tag };
}

const nameOf = (item) => (item.anser ? "◆ " : "") + item.name;

function chartRow(spec, item, index, layout, axis, width) {
	const top = index * layout.height;
	const base = top + (layout.narrow ? 17 : layout.height / 2 + 4.5);
	const y = layout.narrow ? top + 31 : top + layout.height / 2;
	const sup = item.sup ? 6 + 7 * item.sup.length : 0;
	const shown = shorten(nameOf(item), layout.names - sup, item.anser);
	const nameEnd = layout.name + textWidth(shown, item.anser);
	const tagAt = layout.narrow ? nameEnd + sup + 10 : layout.name + layout.names + 12;
	const valueAt = layout.narrow ? width - 4 : layout.from - 14;
	return draw("g", { class: `row ${item.anser ? "anser" : item.class}`, role: "listitem", tabindex: -1, "data-id": item.id, "data-peer": item.name, "aria-label": item.about },
		draw("rect", { class: "band", x: -6, y: top + 1, width: width + 12, height: layout.height - 2, rx: 6 }),
		item.rank && draw("text", { class: "m n end", x: 18, y: base }, item.rank),
		draw("text", { class: "name", x: layout.name, y: base }, shown),
		item.sup && draw("text", { class: "sup", x: nameEnd + 4, y: base - 4 }, item.sup),
		draw("text", { class: "m", x: tagAt, y: base }, shorten(item.tag, layout.tag)),
		item.bad
			? draw("text", { class: "bad", x: layout.narrow ? layout.name : layout.from - 14 - layout.value, y: layout.narrow ? base + 18 : base }, shorten(item.bad, layout.narrow ? width - 40 : width - layout.from + layout.value))
			: [draw("text", { class: "value n end", x: valueAt, y: base }, item.value), spec.mark(item, axis, y)]);
}

// walkable makes the rows one stop of the tab key, with the arrow keys inside.
function walkable(svg, focused) {
	const rows = Array.from(svg.querySelectorAll("g.row"));
	const current = rows.find((row) => row.dataset.id === focused) || rows[0];
	current.setAttribute("tabindex", "0");
	const go = (row) => {
		rows.forEach((other) => other.setAttribute("tabindex", other === row ? "0" : "-1"));
		row.focus();
	};
	svg.addEventListener("keydown", (event) => {
		const at = rows.indexOf(event.target.closest("g.row"));
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
		if (event.key === "Escape") hideTip();
		if (event.key === "Enter" || event.key === " ") {
			event.preventDefault();
			openInTable(event.target.closest("g.row").dataset.id);
		}
		if (to === undefined || !rows[to]) return;
		event.preventDefault();
		go(rows[to]);
	});
	for (const row of rows) {
		row.addEventListener("pointerenter", (event) => light(row, event.pointerType === "mouse"));
		row.addEventListener("pointerleave", unlight);
		row.addEventListener("focus", () => light(row, row.matches(":focus-visible")));
		row.addEventListener("blur", unlight);
		row.addEventListener("click", () => openInTable(row.dataset.id));
	}
}

// light shows the same peer in every chart, and what is known about it.
function light(row, tip) {
	unlight();
	for (const other of document.querySelectorAll("g.row")) other.classList.toggle("lit", other.dataset.peer === row.dataset.peer);
	if (tip) showTip(row);
}

function unlight() {
	for (const other of document.querySelectorAll("g.row.lit")) other.classList.remove("lit");
	hideTip();
}

const tipOf = new Map(); // what the tip says, by the id of an item

function showTip(node) {
	const content = tipOf.get(node.dataset.id);
	if (!content) return;
	const tip = byId("tip");
	tip.replaceChildren(...content());
	tip.hidden = false;
	const at = node.getBoundingClientRect();
	const left = Math.min(at.left + at.width * 0.45, innerWidth - tip.offsetWidth - 12);
	const above = at.bottom + tip.offsetHeight + 14 > innerHeight && at.top > tip.offsetHeight + 14;
	tip.style.left = Math.max(8, left) + scrollX + "px";
	tip.style.top = (above ? at.top - tip.offsetHeight - 8 : at.bottom + 8) + scrollY + "px";
}

function hideTip() { byId("tip").hidden = true; }

