// render shows the state where the fields that changed are seen: a table that is sorted needs no chart.
function render(changed = Object.keys(state)) {
	hideTip();
	if (changed.every((field) => field === "curve")) {
		curves();
		return;
	}
	if (!changed.every((field) => ["sort", "descending", "rows"].includes(field))) renderCharts();
	showControls(table());
}

function renderCharts() {
	const rows = chartRows();
	tipOf.clear();
	const shape = data.shapes[currentShape()];
	byId("charts-about").textContent = shape ? `${shape.workload}: ${shape.label}.${shape.best ? " Behind the language: how many all callers share, or “each” for one for each caller." : ""}` : "The run has no rows.";
	standing(rows);
	legend(rows);
	throughputChart(rows);
	stackedChart(rows, "cpu", "client-cpu", "CPU time for a call", "µs, client and server, less is better", 1);
	latencyChart(rows);
	stackedChart(rows, "memory", "client-memory", "Resident memory", "MiB, client and server, less is better", 0);
	absent(rows);
	curves();
	codecs();
}

function legend(rows) {
	const chip = (kind, mark, text) => el("span", {}, draw("svg", { width: 14, height: 12, class: kind, "aria-hidden": "true" }, mark), text);
	const rect = (kind) => draw("rect", { class: kind, x: 1, y: 1, width: 12, height: 10, rx: 2 });
	const has = (test) => rows.some(test);
	byId("legend").replaceChildren(...[
		has((row) => peerOf(row).anser) && chip("anser", rect("bar"), "◆ Anser"),
		...data.languages.filter((language) => has((row) => peerOf(row).lang === language.key && !peerOf(row).anser)).map((language) => chip(language.class, rect("bar"), language.name)),
		has((row) => row.spans) && chip("l-other", draw("path", { class: "whisker", d: "M1 6H13M1 2v8M13 2v8" }), "least to most of the rounds"),
		has((row) => row.status === "reference" || row.status === "published") && chip("l-other", rect("open"), "without a rank: no framework, or published"),
		has((row) => (peerOf(row).notes || []).length) && el("span", {}, "† has a note"),
		has((row) => row.disturbed) && el("span", {}, "≈ a round was disturbed"),
		has((row) => row.status === "published") && el("span", {}, "§ published, not measured here"),
	].filter(Boolean));
}

// absent names the peers that have no row in this shape: a gap is never silent.
function absent(rows) {
	const here = new Set(data.rows.filter((row) => row.shape === currentShape()).map((row) => peerOf(row).name));
	const elsewhere = data.rows.filter((row) => row.status !== "published" && !here.has(peerOf(row).name) && (!state.languages.length || state.languages.includes(peerOf(row).lang)));
	const names = Array.from(new Set(elsewhere.map((row) => peerOf(row).name)));
	byId("absent").textContent = names.length ? `Without a row in this shape, which they do not support or in which they were not run: ${names.join(", ")}.` : "";
}

makeControls();
if (!readAddress()) {
	// The address is a place in the page: what is shown at first stays.
	repair(state);
}
explain();
render();
addEventListener("hashchange", () => { if (readAddress()) render(); });
let width = innerWidth;
let pending = 0;
addEventListener("resize", () => {
	if (innerWidth === width) return; // the bars of a phone's browser come and go
	width = innerWidth;
	cancelAnimationFrame(pending);
	pending = requestAnimationFrame(() => { hideTip(); renderCharts(); table(); });
});
root.dataset.ready = "true";
