// Four tiles: where Anser stands in the chosen shape, or who is best where it is not shown.
const tiles = [
	{ key: "throughput", what: "Throughput", unit: "calls/s", text: (value) => decimals(value, 0) },
	{ key: "cpu", what: "CPU for a call", unit: "µs", text: (value) => decimals(value, 1) },
	{ key: "p99", what: "Latency, p99", unit: "", text: (value) => duration(value) },
	{ key: "memory", what: "Memory", unit: "MiB", text: (value) => decimals(value, 0) },
];

function standing(rows) {
	byId("standing").replaceChildren(...tiles.map((tile) => {
		const these = bestOrder(rows.filter((row) => known(valueOf(row, tile.key))), tile.key);
		return tileOf(tile, these.filter(ranked), these.find((row) => row.status === "reference"));
	}).filter(Boolean));
}

function tileOf(tile, rows, reference) {
	if (!rows.length) return null;
	const anser = rows.find((row) => peerOf(row).anser);
	const row = anser || rows[0];
	const rank = rows.indexOf(row) + 1;
	return el("div", { class: "card tile", "data-tile": tile.key, "data-peer": peerOf(row).name },
		el("p", { class: "what" }, tile.what),
		el("p", { class: "figure" }, el("b", {}, tile.text(valueOf(row, tile.key))), el("span", {}, tile.unit)),
		el("p", { class: "against" }, el("span", { class: anser ? "who" : "" }, (anser ? "◆ " : "") + peerOf(row).name), `, ${ordinal(rank)} of ${rows.length}`),
		el("p", { class: "against note" }, against(tile, row, rows)),
		reference && el("p", { class: "against note" }, compared(tile, row, reference)));
}

// against compares with the best of the other frameworks, and says when the rounds of both overlap.
function against(tile, row, rows) {
	const other = rows.find((candidate) => peerOf(candidate).framework !== peerOf(row).framework);
	if (!other) return "nothing else to compare with";
	return compared(tile, row, other, rows.indexOf(row) < rows.indexOf(other) ? "the next, " : "the best, ");
}

function compared(tile, row, other, what = "") {
	const [a, b] = [spanOf(row, tile.key), spanOf(other, tile.key)];
	const noise = a && b && a[0] <= b[1] && b[0] <= a[1];
	const ratio = decimals(valueOf(row, tile.key) / valueOf(other, tile.key), 2);
	return `${ratio} × ${what}${peerOf(other).name} (${tile.text(valueOf(other, tile.key))})${noise ? "; their rounds overlap" : ""}`;
}

