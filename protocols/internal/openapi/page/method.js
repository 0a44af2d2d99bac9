let running = null; // ends the request that runs

// methodView shows a method, and a form that calls it.
function methodView(method) {
	const about = method.about;
	const kind = kindOf(about);
	const view = el("article", {},
		el("div", { class: "head" }, el("h2", {}, method.name.split(".").flatMap((part, i) => i ? [".", el("wbr"), part] : [part])),
			kind && el("span", { class: "badge" }, { oneway: "oneway", "stream ↓": "stream of the server", "stream ↑": "stream of the client", "stream ↕": "stream in both directions" }[kind]),
			about["x-anser-idempotent"] && el("span", { class: "badge" }, "idempotent"),
			about.deprecated && el("span", { class: "badge bad" }, "deprecated")),
		(about.description || about.summary !== method.name) && el("p", { class: "doc" }, about.description || about.summary));
	const docs = el("div", { class: "stack" }), tryIt = el("section", { class: "card" });
	view.append(el("div", { class: "cols" }, docs, tryIt));
	const choose = (at) => {
		docs.replaceChildren(...cardsOf(method.operations[at].operation));
		tryIt.replaceChildren(...formOf(method, at, choose));
	};
	choose(0);
	return view;
}

// cardsOf describes the messages of an operation.
function cardsOf(operation) {
	const cards = [];
	for (const [kind, media] of Object.entries((operation.requestBody || {}).content || {})) {
		cards.push(media.schema ? messageCard("Request", media.schema, media.example, "required", operation.requestBody.description)
			: el("section", { class: "card" }, el("h3", {}, "Request"), el("p", { class: "muted" }, operation.requestBody.description || kind)));
	}
	const [status, answer] = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
	const content = answer.content || {};
	const kinds = Object.keys(content);
	const media = content[operation["x-anser-stream"] ? "application/x-ndjson" : kinds[0]];
	if (media && media.schema) {
		const schema = operation["x-anser-stream"] && media.schema.anyOf ? media.schema.anyOf[0] : media.schema;
		cards.push(messageCard(operation["x-anser-stream"] ? "Replies" : "Reply", schema, media.example, "always there"));
	} else cards.push(el("section", { class: "card" }, el("h3", {}, "Reply"), el("p", { class: "muted" }, status + ": " + answer.description)));
	cards.push(el("section", { class: "card" }, el("details", {}, el("summary", {}, "Errors are problems of RFC 9457"), properties(resolve({ $ref: "#/components/schemas/Problem" }), "always there"))));
	return cards;
}

// inputOf returns the input of a parameter.
function inputOf(parameter) {
	const schema = resolve(parameter.schema) || {};
	const many = [].concat(schema.type || []).includes("array");
	const choice = schema.enum || ([].concat(schema.type || [])[0] === "boolean" && ["true", "false"]);
	if (choice && !many) return el("select", {}, el("option", { value: "" }, ""), choice.map((value) => el("option", { value }, value)));
	return many ? el("textarea", { rows: 2, placeholder: "one on each line", spellcheck: "false" }) : el("input", { type: "text", spellcheck: "false", autocomplete: "off" });
}

const field = (parameter, input) => el("label", {},
	el("span", { class: "what" }, el("code", {}, parameter.name), el("span", { class: "muted" }, parameter.in), parameter.required && el("span", { class: "must" }, "required")), input,
	parameter.description && el("span", { class: "small muted" }, parameter.description));

// formOf returns the form of an operation. Its request is also shown as a line of curl.
function formOf(method, at, choose) {
	const { verb, path, operation } = method.operations[at];
	const form = { verb, path, template: operation["x-anser-path"], inputs: [], headers: el("textarea", { rows: 1, placeholder: "Name: value", spellcheck: "false" }) };
	const own = el("div", { class: "fields" }), headers = el("div", { class: "fields two" });
	for (const parameter of (operation.parameters || []).map(resolve)) {
		const input = inputOf(parameter);
		form.inputs.push({ parameter, input });
		(parameter.in === "header" ? headers : own).append(field(parameter, input));
	}
	const [kind, media] = Object.entries((operation.requestBody || {}).content || {})[0] || [];
	if (kind) {
		form.kind = kind;
		form.bodyRequired = operation.requestBody.required;
		const many = kind === "application/x-ndjson";
		const example = media.example === undefined ? "" : many ? JSON.stringify(media.example) : JSON.stringify(media.example, null, 2);
		form.body = el("textarea", { id: "body", rows: Math.min(18, Math.max(4, example.split("\n").length)), spellcheck: "false" });
		form.body.value = example;
		own.append(el("label", {}, el("span", { class: "what" }, many ? "Messages, each on a line" : kind === "*/*" ? "Body" : "Message"), form.body));
	}
	const [, answer] = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
	const kinds = Object.keys(answer.content || {});
	if (kinds.length > 1) {
		form.accept = el("select", {}, kinds.sort((a, b) => b.includes("ndjson") - a.includes("ndjson")).map((value) => el("option", { value }, value)));
		own.append(el("label", {}, el("span", { class: "what" }, "Form of the answer"), form.accept));
	}
	headers.append(el("label", {}, el("span", { class: "what" }, "Other headers"), form.headers));
	return [
		el("div", { class: "head" }, el("h3", {}, "Try it")),
		el("div", { class: "fields" }, el("label", {}, el("span", { class: "what" }, "Call"), pathChoice(method, at, choose))),
		own, el("details", {}, el("summary", {}, "Headers"), headers), ...actionsOf(form),
	];
}

function pathChoice(method, at, choose) {
	const select = el("select", {}, method.operations.map(({ verb, path }, i) => el("option", { value: i, selected: i === at }, verb + " " + path)));
	select.addEventListener("change", () => {
		choose(Number(select.value));
		byId("main").querySelector(".fields select").focus();
	});
	return select;
}

// actionsOf returns the buttons of a form, the line of curl, and the place of the answer.
function actionsOf(form) {
	const wrong = el("p", { class: "wrong", role: "alert" });
	const curl = el("pre", { id: "curl", tabindex: 0 });
	const answer = el("div", { id: "answer" });
	const go = el("button", { type: "button", class: "main", id: "send", title: "Ctrl+Enter" }, "Send");
	const stop = el("button", { type: "button", id: "cancel", disabled: true, title: "Esc" }, "Cancel");
	const renew = () => {
		try {
			curl.textContent = curlOf(requestOf(form));
			wrong.textContent = "";
		} catch (error) {
			wrong.textContent = error.message;
		}
	};
	const run = async () => {
		renew();
		if (wrong.textContent || running) return;
		running = new AbortController();
		go.disabled = true;
		stop.disabled = false;
		try {
			await send(requestOf(form), answer, running.signal);
		} finally {
			running = null;
			go.disabled = false;
			stop.disabled = true;
		}
	};
	go.addEventListener("click", run);
	stop.addEventListener("click", () => running && running.abort());
	for (const input of [form.body, form.accept, form.headers, ...form.inputs.map(({ input }) => input)]) {
		if (input) input.addEventListener("input", renew);
	}
	renew();
	if (form.inputs.some(({ parameter }) => parameter.in === "path")) wrong.textContent = ""; // nothing is entered yet
	const format = form.kind === "application/json" && el("button", { type: "button", click: () => { form.body.value = pretty(form.body.value); renew(); } }, "Format");
	return [
		wrong, el("div", { class: "actions" }, go, stop, format),
		el("div", { class: "head next" }, el("h3", {}, "With curl"), copyButton(() => curl.textContent, "the line")), curl, answer,
	];
}
