// base is where the paths of the document begin, also behind a proxy with a path of its own.
const base = new URL(".", location.href);

// requestOf returns the request that the form of an operation asks for, or throws what is wrong in it.
function requestOf(form) {
	let path = form.path;
	const query = [];
	const headers = {};
	for (const { parameter, input } of form.inputs) {
		const value = input.value;
		if (parameter.in === "path") {
			if (!value) throw new Error(parameter.name + " is empty: the path needs it.");
			const text = form.template && form.template.includes("**") ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
			path = path.replace("{" + parameter.name + "}", () => text);
		} else if (value !== "" && parameter.in === "query") {
			const many = parameter.schema && [].concat(parameter.schema.type || []).includes("array");
			for (const one of many ? value.split("\n").filter(Boolean) : [value]) query.push(encodeURIComponent(parameter.name) + "=" + encodeURIComponent(one));
		} else if (value !== "") headers[parameter.name] = value;
	}
	for (const line of form.headers.value.split("\n").filter((line) => line.trim())) {
		const colon = line.indexOf(":");
		if (colon < 1) throw new Error("A header is a line such as “Name: value”, not “" + line + "”.");
		headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
	}
	if (form.accept) headers.Accept = form.accept.value;
	if (token) headers.Authorization = "Bearer " + token;
	let body;
	if (form.body && (form.body.value.trim() || form.bodyRequired)) {
		headers["Content-Type"] = form.kind === "*/*" ? "application/octet-stream" : form.kind;
		body = form.kind === "*/*" ? form.body.value : compact(form);
	}
	return { method: form.verb, url: new URL(path.slice(1) + (query.length ? "?" + query.join("&") : ""), base).href, headers, body };
}

// compact checks the messages of the body, and returns them on one line each.
function compact(form) {
	const texts = form.kind === "application/x-ndjson" ? form.body.value.split("\n").filter((line) => line.trim()) : [form.body.value];
	for (const [i, text] of texts.entries()) {
		try {
			JSON.parse(text);
		} catch (error) {
			throw new Error((texts.length > 1 ? "Line " + (i + 1) + " is no JSON: " : "The message is no JSON: ") + error.message);
		}
	}
	return form.kind === "application/x-ndjson" ? texts.map((text) => text + "\n").join("") : texts[0];
}

const shell = (text) => /^[\w@%+=:,.\/-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";

// curlOf returns the request as a line for a shell. The token is a variable there.
function curlOf(request) {
	const parts = ["curl"];
	if (request.headers.Accept && request.headers.Accept !== "application/json") parts.push("-N");
	if (request.method !== "GET" && !(request.method === "POST" && request.body !== undefined)) parts.push("-X", request.method);
	for (const [name, value] of Object.entries(request.headers)) {
		parts.push("-H", name === "Authorization" && token ? '"Authorization: Bearer $TOKEN"' : shell(name + ": " + value));
	}
	if (request.body !== undefined) parts.push(request.headers["Content-Type"] === "application/x-ndjson" ? "--data-binary" : "-d", shell(request.headers["Content-Type"] === "application/json" ? oneLine(request.body) : request.body));
	parts.push(shell(request.url));
	return parts.join(" ");
}

// oneLine removes the line breaks that are not in strings, where JSON has none.
const oneLine = (text) => text.replace(/\s*\n\s*/g, " ").trim();
