// The bar charts: throughput, CPU and memory.
function bar(axis, from, to, y, kind) {
	return draw("rect", { class: kind, x: axis.at(from), y: y - barHeight / 2, width: Math.max(axis.at(to) - axis.at(from), 0), height: barHeight, rx: 2 });
}

function whisker(axis, span, y, half = 4) {
	if (!span) return null;
	const [x1, x2] = [axis.at(span[0]), axis.at(span[1])];
	return draw("path", { class: "whisker", d: `M${x1} ${y}H${x2}M${x1} ${y - half}v${2 * half}M${x2} ${y - half}v${2 * half}` });
}

// outlined rows were not measured here, or are not frameworks.
const barKind = (row) => (ranked(row) ? "bar" : "open");

// stack draws a first part filled and the rest with an outline, so that no colour is needed to tell.
function stack(axis, first, whole, y, kind) {
	if (!known(first) || first > whole) return [bar(axis, 0, whole, y, kind)];
	const x = axis.at(first) + 1;
	return [
		bar(axis, 0, first, y, kind),
		draw("rect", { class: "soft", x, y: y - barHeight / 2 + 0.5, width: Math.max(axis.at(whole) - x - 0.5, 0), height: barHeight - 1, rx: 2 }),
	];
}

// itemsOf are the lines of a chart by a figure, best first. Those that are not valid follow as text.
function itemsOf(rows, key, value, prefix) {
	let rank = 0;
	return bestOrder(rows, key).filter((row) => row.status === "invalid" || known(valueOf(row, key))).map((row) => {
		const peer = peerOf(row);
		const bad = row.status === "invalid" ? "invalid: " + row.reason : "";
		const id = prefix + "-" + data.rows.indexOf(row);
		const notes = remarks(row);
		tipOf.set(id, () => rowTip(row));
		return {
			id, row, bad, name: peer.name, tag: languageNames.get(peer.lang) + (shapeOf(row).best ? `, ${row.conns}` : ""), anser: peer.anser, class: peer.class,
			rank: ranked(row) ? String(++rank) : "", sup: supOf(row), value: bad ? "" : value(row),
			about: [ranked(row) ? ordinal(rank) : "", peer.name, languageNames.get(peer.lang), bad || value(row), ...notes].filter(Boolean).join(", "),
		};
	});
}

// supOf are the signs behind a name; the legend says what they mean.
function supOf(row) {
	const peer = peerOf(row);
	return (row.status === "published" ? "§" : "") + (row.disturbed ? "≈" : "") + (peer.notes && peer.notes.length ? "†" : "");
}

function rowTip(row) {
	const peer = peerOf(row);
	const line = (name, key) => [el("dt", {}, name), el("dd", {}, withSpan(row, key))];
	const figure = (key) => (known(valueOf(row, key)) ? decimals(valueOf(row, key), 1) : missing);
	return [
		el("b", {}, peer.name), [languageNames.get(peer.lang), peer.version, peer.codec].filter(Boolean).join(", "),
		row.status === "invalid" ? null : el("dl", {},
			line("calls/s", "throughput"), line("CPU µs a call", "cpu"),
			el("dt", {}, "client + server"), el("dd", {}, `${figure("client-cpu")} + ${figure("server-cpu")}`),
			line("p50 µs", "p50"), line("p99 µs", "p99"), line("memory MiB", "memory")),
		...remarks(row).map((text) => el("p", {}, text)),
	].filter(Boolean);
}

// withSpan prints a figure and the least and the most of the rounds.
function withSpan(row, key) {
	const value = valueOf(row, key);
	if (!known(value)) return missing;
	const digits = data.figures[figureIndex.get(key)].digits;
	const text = decimals(value, digits);
	const [least, most] = (spanOf(row, key) || [value, value]).map((end) => decimals(end, digits));
	return text + (least === most ? "" : ` (${least} – ${most})`);
}

const mostOf = (items, key) => Math.max(0, ...items.filter((item) => !item.bad).map((item) => Math.max(valueOf(item.row, key) || 0, (spanOf(item.row, key) || [0, 0])[1])));
const swatch = (kind, text) => el("span", {}, draw("svg", { width: 14, height: 12, class: "l-other", "aria-hidden": "true" }, draw("rect", { class: kind, x: 1, y: 1, width: 12, height: 10, rx: 2 })), text);
const noneFits = "No peer fits these filters.";

function throughputChart(rows) {
	const items = itemsOf(rows, "throughput", (row) => decimals(valueOf(row, "throughput"), 0), "throughput");
	rowChart({
		figure: byId("chart-throughput"), title: "Throughput", about: "calls/s, more is better", items, none: noneFits, tick: count,
		axis: (from, to) => linear(from, to, mostOf(items, "throughput")),
		mark: ({ row }, axis, y) => [bar(axis, 0, valueOf(row, "throughput"), y, barKind(row)), whisker(axis, spanOf(row, "throughput"), y)],
	});
}

function stackedChart(rows, key, first, title, about, digits) {
	const items = itemsOf(rows, key, (row) => decimals(valueOf(row, key), digits), key);
	rowChart({
		figure: byId("chart-" + key), title, about, items, none: noneFits, tick: count,
		legend: [swatch("bar", "client"), swatch("soft", "server")],
		axis: (from, to) => linear(from, to, mostOf(items, key)),
		mark: ({ row }, axis, y) => [...stack(axis, valueOf(row, first), valueOf(row, key), y, barKind(row)), whisker(axis, spanOf(row, key), y)],
	});
}

