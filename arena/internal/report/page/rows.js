// The rows that the filters let through, and their order.
const ranked = (row) => row.status === "measured";
const peerOf = (row) => data.peers[row.peer];
const shapeOf = (row) => data.shapes[row.shape];
const valueOf = (row, key) => row.values[figureIndex.get(key)];
const spanOf = (row, key) => (row.spans || {})[key];
const currentShape = () => data.shapes.findIndex((shape) => shape.workload === state.workload && shape.key === state.shape);
const languageNames = new Map(data.languages.map((language) => [language.key, language.name]));

// text is what the search looks into.
function searchable(row) {
	if (!row.text) {
		const peer = peerOf(row);
		const shape = shapeOf(row);
		row.text = [peer.name, peer.framework, peer.version, languageNames.get(peer.lang), peer.codec, peer.settings, shape.workload, shape.label, row.status]
			.join(" ").toLowerCase();
	}
	return row.text;
}

function fits(row) {
	if (state.languages.length && !state.languages.includes(peerOf(row).lang)) return false;
	return state.query.toLowerCase().split(/\s+/).every((word) => searchable(row).includes(word));
}

// chartRows are the rows of the chosen shape.
function chartRows() {
	const shape = currentShape();
	return data.rows.filter((row) => row.shape === shape && fits(row));
}

// place puts what has no rank behind what has: references stay among the measured, published rows
// follow, then rows without the figure, then invalid ones.
function place(row, key) {
	if (row.status === "invalid") return 3;
	if (figureIndex.has(key) && !known(valueOf(row, key))) return 2;
	return row.status === "published" ? 1 : 0;
}

// bestOrder sorts by a figure, best first.
function bestOrder(rows, key) {
	const better = data.figures[figureIndex.get(key)].better;
	return rows.slice().sort((a, b) =>
		place(a, key) - place(b, key) || better * ((valueOf(b, key) || 0) - (valueOf(a, key) || 0)) || peerOf(a).name.localeCompare(peerOf(b).name));
}

const texts = {
	peer: (row) => peerOf(row).name,
	language: (row) => languageNames.get(peerOf(row).lang),
	codec: (row) => peerOf(row).codec || "",
	conns: (row) => row.conns,
};

// tableOrder sorts by the chosen column, in its direction.
function tableOrder(rows) {
	const sign = state.descending ? -1 : 1;
	const by = (a, b) => {
		if (state.sort === "shape") return a.shape - b.shape;
		if (texts[state.sort]) return texts[state.sort](a).localeCompare(texts[state.sort](b));
		return (valueOf(a, state.sort) ?? 0) - (valueOf(b, state.sort) ?? 0);
	};
	return rows.slice().sort((a, b) =>
		place(a, state.sort) - place(b, state.sort) || sign * by(a, b) || a.shape - b.shape || peerOf(a).name.localeCompare(peerOf(b).name));
}

// remarks are what a reader must know of a row, in words.
function remarks(row) {
	const out = [];
	if (row.status === "invalid") out.push("Invalid: " + row.reason);
	if (row.status === "published") out.push("Published by its authors, not measured here");
	if (row.status === "reference") out.push("Not a framework: without a rank");
	if (row.disturbed) out.push(`Disturbed in ${row.disturbed} of ${plural(valueOf(row, "rounds"), "round")}`);
	const errors = valueOf(row, "errors");
	if (row.status !== "invalid" && errors > 0) out.push(plural(errors, "error"));
	for (const note of peerOf(row).notes || []) out.push(data.notes[note - 1]);
	return out;
}

