// Elements are made by name and filled with text only: no part of the document is ever taken for markup.
const byId = (id) => document.getElementById(id);

function put(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === undefined || value === null || value === false) continue;
		if (typeof value === "function") node.addEventListener(name, value);
		else node.setAttribute(name, value === true ? "" : value);
	}
	node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
	return node;
}

const el = (name, attributes, ...children) => put(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => put(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// Text is measured as it will be drawn, once for each string.
const widths = new Map();
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, bold) {
	const key = (bold ? "b" : "n") + text;
	if (!widths.has(key)) {
		ruler.font = `${bold ? 680 : 400} 13px ${getComputedStyle(document.body).fontFamily}`;
		widths.set(key, ruler.measureText(text).width);
	}
	return widths.get(key);
}

// shorten cuts text to a width, with an ellipsis.
function shorten(text, width, bold) {
	if (textWidth(text, bold) <= width) return text;
	const letters = Array.from(text);
	while (letters.length && textWidth(letters.join("") + "…", bold) > width) letters.pop();
	return letters.join("") + "…";
}

