// The document, and its methods by name. Each has the operations by which it is called.
let api = null;
let methods = new Map();
let token = "";

async function load() {
	const headers = token ? { Authorization: "Bearer " + token } : {};
	const answer = await fetch("openapi.json", { headers, cache: "no-cache" });
	if (answer.status === 401) throw new Error(token ? "The server does not accept this token." : "This server tells its methods to those whom it knows: enter a token above.");
	if (!answer.ok) throw new Error("The description cannot be read: the server answers with " + answer.status + ".");
	api = await answer.json();
	methods = new Map();
	for (const [path, item] of Object.entries(api.paths)) {
		for (const [verb, operation] of Object.entries(item)) {
			const name = operation["x-anser-method"];
			if (!methods.has(name)) methods.set(name, { name, service: operation.tags[0], operations: [] });
			methods.get(name).operations.push({ verb: verb.toUpperCase(), path, operation });
		}
	}
	for (const method of methods.values()) {
		method.operations.sort((a, b) => (a.path !== "/" + method.name) - (b.path !== "/" + method.name) || (a.path < b.path ? -1 : 1));
		method.about = method.operations[0].operation;
	}
}

// resolve follows a reference inside the document.
function resolve(thing) {
	if (!thing || !thing.$ref) return thing;
	let at = api;
	for (const part of thing.$ref.slice(2).split("/")) at = at && at[part.replace(/~1/g, "/").replace(/~0/g, "~")];
	return at || {};
}

const kindOf = (operation) => operation["x-anser-oneway"] ? "oneway" : { server: "stream ↓", client: "stream ↑", both: "stream ↕" }[operation["x-anser-stream"]] || "";
