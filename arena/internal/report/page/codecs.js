// The codecs: a chart of encoding and decoding, and a table.
let codecSort = { key: "round", descending: false };

const codecColumns = [
	["name", "codec"], ["library", "library"], ["language", "language"], ["encode", "encode ns"], ["decode", "decode ns"], ["round", "both ns"], ["bytes", "bytes"],
	["encodeAllocs", "encode allocs"], ["decodeAllocs", "decode allocs"], ["encodeBytes", "encode alloc bytes"], ["decodeBytes", "decode alloc bytes"],
];

function codecs() {
	if (!byId("codecs")) return;
	for (const codec of data.codecs) codec.round = codec.encode + codec.decode;
	const items = data.codecs.map((codec, index) => ({
		id: "codec-" + index, codec, name: codec.name, tag: codec.language, anser: codec.anser, class: codec.class, rank: String(index + 1),
		value: decimals(codec.encode, 0) + " + " + decimals(codec.decode, 0),
		about: `${ordinal(index + 1)}, ${codec.name}, ${codec.library}, ${codec.language}${codec.anser ? ", comes with Anser" : ""}: encodes in ${decimals(codec.encode, 0)} ns, decodes in ${decimals(codec.decode, 0)} ns, ${decimals(codec.bytes, 0)} bytes`,
	}));
	rowChart({
		figure: byId("chart-codecs"), title: "A round trip through the codec", about: "ns, encode + decode, less is better", items, none: "No codec was measured.", tick: count,
		legend: [swatch("bar", "encode"), swatch("soft", "decode")],
		axis: (from, to) => linear(from, to, Math.max(...data.codecs.map((codec) => codec.round))),
		mark: ({ codec }, axis, y) => stack(axis, codec.encode, codec.round, y, "bar"),
	});
	codecTable();
}

function codecTable() {
	const { key, descending } = codecSort;
	const order = data.codecs.slice().sort((a, b) => (descending ? -1 : 1) * (typeof a[key] === "string" ? a[key].localeCompare(b[key]) : a[key] - b[key]));
	const box = byId("codec-table");
	const focus = box.contains(document.activeElement) ? document.activeElement.dataset.sort : undefined;
	const sort = (column) => { codecSort = { key: column, descending: column === key && !descending }; codecTable(); };
	box.replaceChildren(el("table", {},
		el("thead", {}, el("tr", {}, codecColumns.map(([column, title], index) => el("th", { scope: "col", class: index === 0 ? "first" : index > 2 ? "num" : "", "aria-sort": column === key ? (descending ? "descending" : "ascending") : undefined },
			el("button", { type: "button", class: "sort", "data-sort": column, click: () => sort(column) }, title, el("span", { class: "arrow", "aria-hidden": "true" }, column === key ? (descending ? "↓" : "↑") : "")))))),
		el("tbody", {}, order.map((codec) => el("tr", { class: codec.anser ? "anser-row" : "", "data-codec": codec.name },
			codecColumns.map(([column], index) => index === 0 ? el("th", { scope: "row" }, (codec.anser ? "◆ " : "") + codec.name)
				: el("td", { class: index > 2 ? "num" : "" }, index > 2 ? decimals(codec[column], 0) : codec[column])))))));
	if (focus) box.querySelector(`[data-sort="${focus}"]`).focus({ preventScroll: true });
}

