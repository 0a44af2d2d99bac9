// What is shown is in the address, behind the #, so that a link shows the same: #language=go&sort=cpu.
const data = JSON.parse(byId("data").textContent);
const headline = data.shapes[data.headline];
const figureIndex = new Map(data.figures.map((figure, index) => [figure.key, index]));

const initial = () => ({
	workload: headline ? headline.workload : "",
	shape: headline ? headline.key : "",
	rows: "shape", // or all: every workload and shape
	languages: [], // none: all
	query: "",
	sort: "cpu",
	descending: false,
	curve: "throughput",
});
let state = initial();

const words = { workload: "workload", shape: "shape", rows: "rows", query: "q", sort: "sort", curve: "curve" };
const sortable = new Set(["peer", "language", "codec", "conns", "shape", ...data.figures.map((figure) => figure.key)]);

// bestFirst is the direction in which a reader wants a column first.
function bestFirst(key) {
	const figure = data.figures[figureIndex.get(key)];
	return figure ? figure.better === 1 : false;
}

// readAddress takes the state from the address. Only names with a value are the state; a lone #figures
// is a place in the page. What is not known falls back to what is shown at first.
function readAddress() {
	const text = location.hash.slice(1);
	if (text !== "" && !text.includes("=")) return false;
	const next = initial();
	let direction = "";
	for (const part of text.split("&")) {
		const at = part.indexOf("=");
		if (at < 0) continue;
		let value;
		try {
			value = decodeURIComponent(part.slice(at + 1));
		} catch {
			continue; // half an escape
		}
		const name = part.slice(0, at);
		if (name === "language") next.languages = value.split(",").filter((key) => data.languages.some((language) => language.key === key));
		else if (name === "dir") direction = value;
		else for (const [field, word] of Object.entries(words)) if (word === name) next[field] = value;
	}
	repair(next);
	next.descending = direction === "desc" ? true : direction === "asc" ? false : bestFirst(next.sort);
	state = next;
	return true;
}

// repair replaces what does not exist in this document.
function repair(next) {
	if (!sortable.has(next.sort)) next.sort = "cpu";
	if (next.rows !== "all") next.rows = "shape";
	if (!data.shapes.some((shape) => shape.workload === next.workload)) next.workload = initial().workload;
	const shapes = data.shapes.filter((shape) => shape.workload === next.workload);
	if (!shapes.some((shape) => shape.key === next.shape)) {
		const usual = shapes.find((shape) => shape.key === initial().shape) || mostPeers(shapes);
		next.shape = usual ? usual.key : "";
	}
	if (!["throughput", "cpu", "p99"].includes(next.curve)) next.curve = "throughput";
}

function mostPeers(shapes) {
	const rows = (shape) => data.rows.filter((row) => data.shapes[row.shape] === shape && row.status === "measured").length;
	return shapes.reduce((best, shape) => (!best || rows(shape) > rows(best) ? shape : best), undefined);
}

// address writes the state: only what differs from what is shown at first.
function address() {
	const usual = initial();
	const parts = [];
	for (const [field, word] of Object.entries(words)) if (state[field] !== usual[field]) parts.push(word + "=" + encodeURIComponent(state[field]));
	if (state.languages.length) parts.push("language=" + state.languages.map(encodeURIComponent).join(","));
	if (state.descending !== bestFirst(state.sort)) parts.push("dir=" + (state.descending ? "desc" : "asc"));
	return "#" + parts.join("&");
}

// change alters the state, and shows and remembers it.
function change(part) {
	state = { ...state, ...part };
	repair(state);
	history.replaceState(null, "", address());
	render(Object.keys(part));
}

