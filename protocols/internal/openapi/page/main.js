// The choice of colours is kept for the session if the browser allows it.
function paint(choice) {
	const dark = choice === "dark" || choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	for (const button of byId("theme").children) button.setAttribute("aria-pressed", button.dataset.pick === choice);
}
let colours = "auto";
try {
	colours = sessionStorage.getItem("anser-colours") || "auto";
} catch {} // there is no storage
byId("theme").addEventListener("click", (event) => {
	if (!event.target.dataset.pick) return;
	paint(colours = event.target.dataset.pick);
	try {
		sessionStorage.setItem("anser-colours", colours);
	} catch {} // as above
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(colours));
paint(colours);

// overview is what is shown without a method.
function overview() {
	const info = api.info;
	return el("article", {}, el("h2", {}, info.title), el("p", { class: "doc" }, info.description || info.summary || ""),
		el("p", { class: "doc muted" }, methods.size ? methods.size + " methods. Choose one from the list." : "There are no methods that you may call."),
		api.tags && el("div", { class: "stack" }, api.tags.filter((tag) => tag.description).map((tag) => el("section", { class: "card" }, el("h3", {}, tag.name), el("p", { class: "muted" }, tag.description)))));
}

function show() {
	if (!api) return;
	if (running) running.abort();
	const method = methods.get(current());
	document.title = (method ? method.name + " · " : "") + api.info.title;
	byId("main").replaceChildren(method ? methodView(method) : overview());
	showList();
	scrollTo(0, 0);
	if (method && matchMedia("(max-width: 760px)").matches) byId("main").scrollIntoView();
}

async function start() {
	try {
		await load();
		byId("title").textContent = api.info.title;
		byId("version").textContent = api.info.version === "0" ? "" : api.info.version;
		byId("login").hidden = !api.components.securitySchemes;
		show();
	} catch (error) {
		api = null;
		methods = new Map();
		byId("services").replaceChildren();
		byId("main").replaceChildren(el("p", { class: "note", role: "alert", id: "state" }, error.message));
	}
}

byId("login").addEventListener("submit", (event) => {
	event.preventDefault();
	token = byId("token").value.trim();
	start();
});
byId("find").addEventListener("input", showList);
addEventListener("hashchange", () => { if (location.hash !== "#main") show(); });
addEventListener("keydown", (event) => {
	const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
	if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) byId("find").focus();
	else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && byId("send")) byId("send").click();
	else if (event.key === "Escape" && running) running.abort();
	else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && moveInList(event.key === "ArrowDown" ? 1 : -1)) { /* moved */ }
	else return;
	event.preventDefault();
});
start();
