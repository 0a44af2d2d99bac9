// The table of all figures. A row is made once and moved when the order changes.
const made = new Map();
const opened = new Set(); // rows whose details are open
const textColumns = [["peer", "peer"], ["language", "language"], ["codec", "codec"], ["conns", "connections"], ["shape", "workload and shape"]];

function table() {
	const rows = tableOrder(data.rows.filter((row) => (state.rows === "all" || row.shape === currentShape()) && fits(row)));
	const box = byId("table");
	const head = tableHead();
	if (!rows.length) {
		box.replaceChildren(el("p", { class: "empty" }, noneFits, el("button", { type: "button", click: () => change({ languages: [], query: "" }) }, "Show all")));
		return rows;
	}
	const body = el("tbody", {});
	for (const row of rows) {
		body.append(tableRow(row));
		if (opened.has(row)) body.append(detailsRow(row));
	}
	// The same button keeps the focus though the head is made again.
	const focus = document.activeElement && box.contains(document.activeElement) ? document.activeElement.dataset.sort : undefined;
	const [left, top] = [box.scrollLeft, box.scrollTop];
	box.replaceChildren(el("table", { class: state.rows === "all" ? "" : "one-shape" }, el("caption", { hidden: true }, "All figures"), head, body));
	box.scrollTo({ left, top, behavior: "instant" });
	box.style.setProperty("--box", box.clientWidth + "px");
	if (focus) box.querySelector(`[data-sort="${focus}"]`).focus({ preventScroll: true });
	markSorted(body);
	return rows;
}

function tableHead() {
	const groups = [];
	for (const figure of data.figures) {
		if (groups.length && groups.at(-1).name === figure.group) groups.at(-1).span++;
		else groups.push({ name: figure.group, span: 1 });
	}
	return el("thead", {},
		el("tr", { class: "groups" }, el("td", { class: "first" }), el("td", { colspan: textColumns.length - 2 }), el("td", { class: "shape-col" }),
			groups.map((group) => el("th", { scope: "colgroup", colspan: group.span, class: "group-start" }, group.name))),
		el("tr", {},
			textColumns.map(([key, title], index) => headCell(key, title, "", index === 0 ? "first" : key === "shape" ? "shape-col" : "")),
			data.figures.map((figure, index) => headCell(figure.key, figure.title, figure.about, "num" + (startsGroup(index) ? " group-start" : "")))));
}

const startsGroup = (index) => index === 0 || data.figures[index].group !== data.figures[index - 1].group;

function headCell(key, title, about, kind) {
	const sorted = state.sort === key;
	const sort = () => change({ sort: key, descending: sorted ? !state.descending : bestFirst(key) });
	return el("th", { scope: "col", class: kind, "aria-sort": sorted ? (state.descending ? "descending" : "ascending") : undefined },
		el("button", { type: "button", class: "sort", "data-sort": key, title: about || undefined, click: sort },
			title, el("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (state.descending ? "↓" : "↑") : "")));
}

function markSorted(body) {
	for (const cell of body.querySelectorAll("td.sorted")) cell.classList.remove("sorted");
	const column = textColumns.findIndex(([key]) => key === state.sort);
	const at = column >= 0 ? column : textColumns.length + figureIndex.get(state.sort);
	if (at > 0) for (const row of body.querySelectorAll("tr:not(.details)")) row.children[at].classList.add("sorted");
}

function tableRow(row) {
	if (!made.has(row)) made.set(row, makeRow(row));
	const node = made.get(row);
	node.querySelector(".open-row").setAttribute("aria-expanded", String(opened.has(row)));
	return node;
}

function makeRow(row) {
	const peer = peerOf(row);
	const shape = shapeOf(row);
	return el("tr", { class: `${row.status} ${peer.anser ? "anser-row" : ""}`, "data-peer": peer.name, "data-status": row.status, "data-shape": shape.workload + " " + shape.key },
		el("th", { scope: "row" },
			el("button", { type: "button", class: "open-row", "aria-label": `Settings and remarks of ${peer.name}`, click: () => toggle(row) }, "›"),
			(peer.anser ? "◆ " : "") + peer.name, badges(row)),
		el("td", {}, languageNames.get(peer.lang)), el("td", {}, peer.codec || missing), el("td", { class: "num" }, row.conns), el("td", { class: "shape-col" }, `${shape.workload}: ${shape.label}`),
		data.figures.map((figure, index) => el("td", { class: "num" + (startsGroup(index) ? " group-start" : "") }, known(row.values[index]) ? decimals(row.values[index], figure.digits) : missing)));
}

// badges say in a word what the list under the table explains.
const badgeTexts = {
	invalid: "A reply was wrong, or every call failed. The row has no speed and no rank; its details say why.",
	published: "Figures of its authors, not measured here. They come from another machine and have no rank.",
	reference: "Not a framework: what the machine and the codec allow. It has no rank.",
	disturbed: "Other processes took more than 5 % of the machine in a round, and in its repetition.",
	errors: "Some calls failed. The details show the first error.",
	"†": "The number leads to the note: what a reader must know to compare fairly.",
};

function badges(row) {
	const out = [];
	if (row.status !== "measured") out.push([row.status, row.status]);
	if (row.disturbed) out.push(["disturbed", "disturbed"]);
	if (row.status !== "invalid" && valueOf(row, "errors") > 0) out.push(["errors", "errors"]);
	const notes = (peerOf(row).notes || []).map((note) => el("a", { class: "badge", href: "#notes", title: data.notes[note - 1], "aria-label": `Note ${note}`, click: (event) => goTo(event, byId("notes").nextElementSibling.children[note - 1]) }, "†" + note));
	return [...out.map(([kind, text]) => el("span", { class: "badge " + kind, title: badgeTexts[kind] }, text)), ...notes];
}

// explain lists the badges that the document has.
function explain() {
	const used = new Set(data.rows.flatMap((row) => [
		row.status, row.disturbed && "disturbed", row.status !== "invalid" && valueOf(row, "errors") > 0 && "errors", (peerOf(row).notes || []).length && "†",
	]));
	byId("badges").replaceChildren(...Object.entries(badgeTexts).filter(([kind]) => used.has(kind)).flatMap(([kind, text]) => [el("dt", { class: "badge " + kind }, kind), el("dd", {}, text)]));
}

function toggle(row) {
	const open = !opened.has(row);
	if (open) opened.add(row);
	else opened.delete(row);
	const node = tableRow(row);
	if (open) node.after(detailsRow(row));
	else node.nextElementSibling.remove();
}

function detailsRow(row) {
	const peer = peerOf(row);
	const line = (name, value) => (value ? [el("dt", {}, name), el("dd", {}, value)] : []);
	const spans = data.figures.filter((figure) => spanOf(row, figure.key)).map((figure) => line(figure.name, withSpan(row, figure.key)));
	const source = row.link ? el("a", { href: row.link, rel: "noopener noreferrer" }, row.source) : row.source;
	return el("tr", { class: "details" }, el("td", { colspan: textColumns.length + data.figures.length }, el("div", { class: "details-box" },
		el("dl", {}, line("framework", peer.framework), line("version", peer.version), line("settings", peer.settings),
			line("chosen by trials", (row.trials || []).join("; ")),
			line("why invalid", row.reason), line("first error", row.error), line("source", source), ...remarks(row).map((text) => line("remark", text))),
		spans.length ? el("dl", {}, el("dt", {}, "median"), el("dd", {}, "(least – most)"), ...spans) : null)));
}

// openInTable goes from a chart to the row's line.
function openInTable(id) {
	const row = data.rows[Number(id.split("-").at(-1))];
	if (id.startsWith("codec") || !row) return;
	hideTip();
	opened.add(row);
	table();
	const node = tableRow(row);
	node.scrollIntoView({ block: "center", inline: "nearest" });
	node.querySelector(".open-row").focus({ preventScroll: true });
}

