// A small chart for each peer: a figure over the number of callers, on axes that all share. Anser's
// curve is in each of them, dashed.
const curveFigures = {
	throughput: { name: "calls/s", about: "calls/s, more is better", text: (value) => count(value), better: 1 },
	cpu: { name: "CPU", about: "CPU µs a call, less is better", text: (value) => decimals(value, 1) + " µs", better: -1 },
	p99: { name: "p99", about: "p99, less is better", text: (value) => duration(value), better: -1 },
};

// curveSeries chooses the shapes that differ in their callers only: those of the chosen shape, or the
// longest series of its workload.
function curveSeries() {
	const bySeries = new Map();
	for (const shape of data.shapes.filter((candidate) => candidate.workload === state.workload)) {
		bySeries.set(shape.series, [...(bySeries.get(shape.series) || []), shape]);
	}
	const chosen = data.shapes[currentShape()];
	const own = chosen && bySeries.get(chosen.series);
	if (own && own.length > 1) return own;
	const longest = Array.from(bySeries.values()).sort((a, b) => b.length - a.length)[0];
	return longest && longest.length > 1 ? longest : [];
}

function curves() {
	const series = curveSeries();
	byId("curves").hidden = !series.length;
	if (!series.length) return;
	const figure = curveFigures[state.curve];
	byId("curves-about").textContent = `${series[0].workload}: ${series[0].common}. Up: ${figure.about}; to the right: callers, logarithmic. All share one scale; the dashed line is Anser.`;
	byId("curves-switch").replaceChildren(...Object.entries(curveFigures).map(([key, { name }]) =>
		el("button", { type: "button", "data-curve": key, "aria-pressed": String(state.curve === key), click: () => { change({ curve: key }); byId("curves-switch").querySelector("[aria-pressed='true']").focus(); } }, name)));
	const lines = curveLines(series);
	const cells = byId("curves-cells");
	if (!lines.length) {
		cells.replaceChildren(el("p", { class: "empty" }, noneFits));
		return;
	}
	const ghost = allCurves(series).filter((line) => peerOf(line.rows[0]).anser).sort((a, b) => b.points.length - a.points.length)[0];
	const callers = series.map((shape) => shape.callers).sort((a, b) => a - b);
	const all = [...lines, ...(ghost ? [ghost] : [])].flatMap((line) => line.points.flatMap((point) => [point.value, ...(point.span || [])]));
	const scale = { callers, least: Math.min(...all), most: Math.max(...all) };
	cells.replaceChildren(...lines.map((line) => curveCell(line, ghost, scale, figure)));
	for (const cell of cells.children) drawCurve(cell);
}

// allCurves has a line for each peer with a figure in the series.
function allCurves(series) {
	const byPeer = new Map();
	for (const row of data.rows) {
		if (!series.includes(shapeOf(row)) || row.status === "published") continue;
		byPeer.set(peerOf(row).name, [...(byPeer.get(peerOf(row).name) || []), row]);
	}
	return Array.from(byPeer.values(), (rows) => {
		rows.sort((a, b) => shapeOf(a).callers - shapeOf(b).callers);
		const points = rows.filter((row) => known(valueOf(row, state.curve)))
			.map((row) => ({ callers: shapeOf(row).callers, value: valueOf(row, state.curve), span: spanOf(row, state.curve) }));
		return { rows, points, bad: rows.filter((row) => row.status === "invalid").map((row) => shapeOf(row).callers) };
	}).filter((line) => line.points.length);
}

// curveLines are those that the filters let through, best first.
function curveLines(series) {
	const better = curveFigures[state.curve].better;
	// At the same load: the largest that is not beyond most peers, which is that of the charts.
	const chosen = data.shapes[currentShape()];
	const at = series.includes(chosen) ? chosen.callers : Math.max(...series.map((shape) => shape.callers));
	const score = (line) => {
		const point = line.points.find((candidate) => candidate.callers === at);
		return point ? better * point.value : -Infinity;
	};
	return allCurves(series).filter((line) => line.rows.some(fits)).sort((a, b) => score(b) - score(a) || peerOf(a.rows[0]).name.localeCompare(peerOf(b.rows[0]).name));
}

function curveCell(line, ghost, scale, figure) {
	const peer = peerOf(line.rows[0]);
	const best = line.points.reduce((a, b) => (figure.better * b.value > figure.better * a.value ? b : a));
	const about = line.points.map((point) => `${plural(point.callers, "caller")}: ${figure.text(point.value)}`).concat(line.bad.map((callers) => `${plural(callers, "caller")}: invalid`)).join("; ");
	const cell = el("figure", { class: `card curve ${peer.anser ? "anser-cell" : ""}`, "data-peer": peer.name },
		el("figcaption", {}, el("b", { title: peer.name }, (peer.anser ? "◆ " : "") + peer.name), el("span", {}, languageNames.get(peer.lang)),
			el("span", { class: "peak" }, (figure.better === 1 ? "max " : "min ") + figure.text(best.value))));
	cell.about = `${peer.name}, ${figure.about}. ${about}`;
	cell.plot = { line, ghost, scale, figure, class: peer.anser ? "anser" : peer.class };
	return cell;
}

// drawCurve draws when the cell is in the page and has a width.
function drawCurve(cell) {
	const { line, ghost, scale, figure } = cell.plot;
	const width = Math.max(160, cell.clientWidth - 28);
	const [top, bottom, left, right] = [8, 96, 36, width - 10];
	const xs = logarithmic(left + 4, right, scale.callers[0], scale.callers.at(-1));
	const ys = state.curve === "throughput" ? linear(bottom, top, scale.most, 30) : logarithmic(bottom, top, scale.least, scale.most, 22);
	const path = (points) => points.map((point, index) => `${index ? "L" : "M"}${xs.at(point.callers)} ${ys.at(point.value)}`).join("");
	const svg = draw("svg", { viewBox: `0 0 ${width} 118`, height: 118, role: "img", "aria-label": cell.about, class: cell.plot.class });
	for (const tick of ys.ticks) {
		const label = state.curve === "p99" ? durationTick(tick).replace(" ", "\u2009") : count(tick);
		svg.append(draw("path", { class: "grid", d: `M${left} ${ys.at(tick)}H${width}` }), draw("text", { class: "axis-text end", x: left - 5, y: ys.at(tick) + 4 }, label));
	}
	svg.append(...callerTicks(scale.callers, xs, bottom));
	if (ghost && ghost !== line) svg.append(draw("g", { class: "anser" }, draw("path", { class: "line dashed", d: path(ghost.points) })));
	svg.append(draw("path", { class: "line", d: path(line.points) }));
	for (const point of line.points) {
		const [x, y] = [xs.at(point.callers), ys.at(point.value)];
		if (point.span) svg.append(draw("path", { class: "whisker", d: `M${x} ${ys.at(point.span[0])}V${ys.at(point.span[1])}` }));
		svg.append(draw("circle", { class: "bar", cx: x, cy: y, r: 2.8 }, draw("title", {}, `${plural(point.callers, "caller")}: ${figure.text(point.value)}`)));
	}
	for (const callers of line.bad) svg.append(draw("text", { class: "bad mid", x: xs.at(callers), y: bottom - 2 }, "×"));
	cell.querySelector("svg")?.remove();
	cell.append(svg);
}

// callerTicks labels as many numbers of callers as fit, the largest and the least first.
function callerTicks(callers, xs, bottom) {
	const taken = [];
	const out = [];
	for (const n of [callers.at(-1), ...callers.slice(0, -1)]) {
		const x = xs.at(n);
		if (taken.some((other) => Math.abs(other - x) < 30)) continue;
		taken.push(x);
		out.push(draw("text", { class: "axis-text mid", x, y: bottom + 18 }, count(n)));
	}
	return out;
}

