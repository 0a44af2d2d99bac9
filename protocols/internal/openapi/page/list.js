// showList shows the methods whose names have all words of the search, by service.
function showList() {
	const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
	const services = new Map();
	for (const method of Array.from(methods.values()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const text = [method.name, method.about.summary, ...method.operations.map(({ path }) => path)].join(" ").toLowerCase();
		if (!words.every((word) => text.includes(word))) continue;
		if (!services.has(method.service)) services.set(method.service, []);
		services.get(method.service).push(method);
	}
	byId("services").replaceChildren(...Array.from(services, ([service, list]) => el("section", { class: "service" },
		el("h2", { title: (api.tags.find((tag) => tag.name === service) || {}).description }, service),
		el("ul", {}, list.map((method) => el("li", {}, el("a", { href: "#" + encodeURIComponent(method.name), class: method.about.deprecated && "old", "aria-current": method.name === current() && "page" },
			el("span", {}, method.name.slice(method.name.lastIndexOf(".") + 1)), el("span", { class: "kind" }, kindOf(method.about)))))))));
	if (!services.size) byId("services").append(el("p", { class: "muted small" }, methods.size ? "No method fits." : "There are no methods that you may call."));
}

function current() {
	try {
		return decodeURIComponent(location.hash.slice(1));
	} catch {
		return "";
	}
}

// moveInList moves the focus along the list, and reports whether it was there.
function moveInList(by) {
	const links = Array.from(byId("services").querySelectorAll("a"));
	const at = links.indexOf(document.activeElement);
	if (at < 0 && document.activeElement !== byId("find")) return false;
	const next = links[at < 0 ? (by > 0 ? 0 : -1) : at + by];
	(next || byId("find")).focus();
	return true;
}
