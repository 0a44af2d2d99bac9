// The filters, the theme and the links inside the page.
function makeControls() {
	const form = byId("filters");
	const named = (kind, name, control) => el("label", { class: kind }, el("span", { class: "name" }, name), control);
	const workloads = Array.from(new Set(data.shapes.map((shape) => shape.workload)));
	form.append(
		named("workload", "Workload", el("select", { id: "workload", change: (event) => change({ workload: event.target.value }) }, workloads.map((name) => el("option", { value: name }, name)))),
		named("shape", "Callers, connections and more", el("select", { id: "shape", change: (event) => change({ shape: event.target.value }) })),
		el("div", { class: "group", role: "group", "aria-labelledby": "language-name" }, el("span", { class: "name", id: "language-name" }, "Language"), el("div", { class: "chips", id: "languages" }, data.languages.map(languageChip))),
		named("search", "Search", el("input", { type: "search", id: "search", placeholder: "peer, codec, settings", autocomplete: "off", spellcheck: "false", input: (event) => change({ query: event.target.value }) })),
		el("button", { type: "button", id: "reset", click: () => change(initial()) }, "Reset"));
	form.addEventListener("submit", (event) => event.preventDefault());
	form.hidden = false;
	makeTheme();
	makeCopy();
	for (const link of document.querySelectorAll(".top nav a, .skip")) link.addEventListener("click", (event) => goTo(event, document.querySelector(link.getAttribute("href"))));
}

function languageChip(language) {
	const peers = new Set(data.peers.filter((peer) => peer.lang === language.key).map((peer) => peer.name)).size;
	const pick = (event) => {
		const others = state.languages.filter((key) => key !== language.key);
		change({ languages: event.target.checked ? [...others, language.key] : others });
	};
	return el("label", { class: language.class }, el("input", { type: "checkbox", value: language.key, change: pick }),
		draw("svg", { width: 11, height: 11, "aria-hidden": "true" }, draw("rect", { class: "bar", width: 11, height: 11, rx: 2 })), `${language.name} (${peers})`);
}

// showControls makes the controls say what the state is, wherever it came from.
function showControls(tableRows) {
	byId("workload").value = state.workload;
	const shapes = data.shapes.filter((shape) => shape.workload === state.workload);
	byId("shape").replaceChildren(...data.kinds.map((name, kind) => [name, shapes.filter((shape) => shape.kind === kind)]).filter(([, list]) => list.length)
		.map(([name, list]) => el("optgroup", { label: name }, list.map((shape) => el("option", { value: shape.key }, shape.label)))));
	byId("shape").value = state.shape;
	for (const box of byId("languages").querySelectorAll("input")) box.checked = state.languages.includes(box.value);
	if (byId("search").value !== state.query) byId("search").value = state.query;
	const scope = byId("figures-switch");
	const had = scope.contains(document.activeElement);
	scope.replaceChildren(...[["shape", "This shape"], ["all", "Every shape"]].map(([key, text]) =>
		el("button", { type: "button", "data-rows": key, "aria-pressed": String(state.rows === key), click: () => change({ rows: key }) }, text)));
	if (had) scope.querySelector("[aria-pressed='true']").focus();
	const all = data.rows.filter((row) => row.shape === currentShape()).length;
	const here = chartRows().length;
	byId("shown").textContent = `${plural(here, "row")} of ${all} in the charts, ${decimals(tableRows.length, 0)} in the table.`;
}

// The theme is remembered where the browser lets a page do so.
function makeTheme() {
	const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } }, set: (value) => { try { localStorage.setItem("theme", value); } catch { /* a page from a file may have no storage */ } } };
	const box = byId("theme");
	const pick = (theme) => {
		if (theme === "auto") delete root.dataset.theme;
		else root.dataset.theme = theme;
		for (const button of box.children) button.setAttribute("aria-pressed", String(button.dataset.pick === theme));
	};
	box.append(...["auto", "light", "dark"].map((theme) => el("button", { type: "button", "data-pick": theme, click: () => { store.set(theme); pick(theme); } }, theme[0].toUpperCase() + theme.slice(1))));
	box.hidden = false;
	pick(["light", "dark"].includes(store.get()) ? store.get() : "auto");
}

function makeCopy() {
	const button = byId("copy");
	if (!button || !navigator.clipboard) return; // the command can be selected
	button.hidden = false;
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(byId("command").textContent);
			button.textContent = "Copied";
		} catch {
			getSelection().selectAllChildren(byId("command"));
			button.textContent = "Selected";
		}
	});
}

// goTo follows a link inside the page without losing the state in the address.
function goTo(event, target) {
	if (!target) return;
	event.preventDefault();
	target.scrollIntoView({ block: "start" });
	document.querySelectorAll(".notes .hit").forEach((node) => node.classList.remove("hit"));
	if (target.matches(".notes li")) target.classList.add("hit");
	if (!target.hasAttribute("tabindex")) target.setAttribute("tabindex", "-1");
	target.focus({ preventScroll: true });
}

