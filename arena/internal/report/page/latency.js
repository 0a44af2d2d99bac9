// The chart of percentiles on a logarithmic axis. Each has a form of its own.
const percentiles = [["p50", "dot"], ["p90", "ring"], ["p99", "diamond"], ["p99.9", "hollow"]];

function percentileMark(form, x, y) {
	const diamond = (r, kind) => draw("path", { class: kind, d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` });
	if (form === "dot") return draw("circle", { class: "bar", cx: x, cy: y, r: 4.2 });
	if (form === "ring") return draw("circle", { class: "hole", cx: x, cy: y, r: 3.3 });
	if (form === "diamond") return diamond(5.4, "bar");
	return diamond(4.4, "hole");
}

function latencyChart(rows) {
	const items = itemsOf(rows, "p99", (row) => duration(valueOf(row, "p50")) + " / " + duration(valueOf(row, "p99")), "latency");
	const shown = items.filter((item) => !item.bad);
	const all = shown.flatMap(({ row }) => percentiles.flatMap(([key]) => [valueOf(row, key), ...(spanOf(row, key) || [])])).filter(known);
	const open = shapeOf(rows[0] || { shape: currentShape() });
	rowChart({
		figure: byId("chart-latency"), title: "Latency", items, none: noneFits, tick: durationTick,
		about: `p50 / p99, sorted by p99, logarithmic, less is better${open && open.open ? "; counted from when a call was due" : ""}`,
		legend: percentiles.map(([key, form]) => el("span", {}, draw("svg", { width: 14, height: 12, class: "l-other", "aria-hidden": "true" }, percentileMark(form, 7, 6)), key)),
		axis: (from, to) => logarithmic(from + 6, to - 4, Math.min(...all), Math.max(...all)),
		mark: ({ row }, axis, y) => latencyMarks(row, axis, y),
	});
}

function latencyMarks(row, axis, y) {
	const points = percentiles.filter(([key]) => known(valueOf(row, key))).map(([key, form]) => ({ x: axis.at(valueOf(row, key)), form }));
	const xs = points.map((point) => point.x);
	return [
		draw("path", { class: ranked(row) ? "line" : "line dashed", d: `M${Math.min(...xs)} ${y}H${Math.max(...xs)}` }),
		whisker(axis, spanOf(row, "p50"), y, 6), whisker(axis, spanOf(row, "p99"), y, 6),
		...points.map(({ x, form }) => percentileMark(form, x, y)),
	];
}

