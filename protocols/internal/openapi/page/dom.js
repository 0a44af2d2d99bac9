// Elements are made by name and filled with text only: nothing of the document is taken for markup.
const byId = (id) => document.getElementById(id);

function el(name, attributes, ...children) {
	const node = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === undefined || value === null || value === false) continue;
		if (typeof value === "function") node.addEventListener(key, value);
		else node.setAttribute(key, value === true ? "" : value);
	}
	node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
	return node;
}

// copyButton copies what a function returns.
function copyButton(text, what) {
	const button = el("button", { type: "button", "aria-label": "Copy " + what }, "Copy");
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(text());
			button.textContent = "Copied";
		} catch {
			button.textContent = "Select it by hand";
		}
		setTimeout(() => { button.textContent = "Copy"; }, 1500);
	});
	return button;
}

function pretty(text) {
	try {
		JSON.parse(text);
	} catch {
		return text;
	}
	return indent(text);
}

// indent lays out JSON without reading its numbers, of which some are too large for JavaScript.
function indent(text) {
	let out = "", depth = 0, inString = false;
	const line = () => "\n" + "  ".repeat(depth);
	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		if (inString) {
			out += c;
			if (c === "\\") out += text[++i];
			else if (c === '"') inString = false;
			continue;
		}
		if (/\s/.test(c)) continue;
		if (c === '"') {
			inString = true;
			out += c;
		} else if (c === "{" || c === "[") {
			const end = c === "{" ? "}" : "]";
			const rest = text.slice(i + 1).match(/^\s*/)[0].length;
			if (text[i + 1 + rest] === end) {
				out += c + end;
				i += 1 + rest;
			} else {
				depth++;
				out += c + line();
			}
		} else if (c === "}" || c === "]") {
			depth--;
			out += line() + c;
		} else if (c === ",") out += c + line();
		else if (c === ":") out += ": ";
		else out += c;
	}
	return out;
}
