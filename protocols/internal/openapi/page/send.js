const maxShown = 500; // messages of a stream that are kept on the page
const maxText = 1 << 20;

// send sends a request and shows the answer as it arrives. It ends when the signal does.
async function send(request, place, signal) {
	const began = performance.now();
	const since = () => Math.round(performance.now() - began) + " ms";
	const status = el("p", { class: "status", role: "status" }, "Waiting for the answer.");
	const messages = el("div", { class: "messages" });
	place.replaceChildren(status, messages);
	let shown = 0;
	const show = (text, kind) => {
		if (shown++ >= maxShown) messages.firstChild.remove();
		messages.append(el("div", { class: "message" }, el("span", { class: "at" }, kind || since()), el("pre", { tabindex: 0 }, pretty(text.slice(0, maxText)))));
	};
	try {
		const answer = await fetch(request.url, { method: request.method, headers: request.headers, body: request.body, signal, cache: "no-store" });
		const say = (end) => {
			status.textContent = answer.status + " " + answer.statusText + " · " + since() + (end ? "" : " · messages arrive") + (shown > 1 ? " · " + shown + " messages" : "");
			status.className = "status " + (answer.ok ? "good" : "bad");
		};
		say(false);
		const type = (answer.headers.get("Content-Type") || "").split(";")[0];
		if (type === "application/x-ndjson") await lines(answer, (line) => { if (line.trim()) show(line); say(false); });
		else if (type === "text/event-stream") await events(answer, (kind, data) => { show(data, kind); say(false); });
		else await whole(answer, type, show);
		say(true);
		place.append(headersOf(answer));
	} catch (error) {
		status.className = signal.aborted ? "status" : "status bad";
		status.textContent = signal.aborted ? "Cancelled after " + since() + "." : "There is no answer: " + error.message;
	}
}

function headersOf(answer) {
	return el("details", {}, el("summary", {}, "Headers"), el("pre", { tabindex: 0 }, Array.from(answer.headers, ([name, value]) => name + ": " + value).join("\n")));
}

async function whole(answer, type, show) {
	const data = await answer.arrayBuffer();
	if (!data.byteLength) return;
	if (/json|text|xml/.test(type)) show(new TextDecoder().decode(data));
	else show(data.byteLength + " bytes of " + (type || "an unknown type"));
}

async function lines(answer, each) {
	const reader = answer.body.getReader();
	const decoder = new TextDecoder();
	let rest = "";
	for (;;) {
		const { done, value } = await reader.read();
		rest += decoder.decode(value || new Uint8Array(), { stream: !done });
		const all = rest.split("\n");
		rest = all.pop();
		for (const line of all) each(line);
		if (done) break;
	}
	if (rest) each(rest);
}

async function events(answer, each) {
	let kind = "", data = [];
	await lines(answer, (line) => {
		if (line.startsWith("event:")) kind = line.slice(6).trim();
		else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
		else if (line === "" && data.length) {
			each(kind, data.join("\n"));
			kind = "";
			data = [];
		}
	});
}
