// What may be written at a place in the text of rules: names of fields from the schema, and values that the service has.
import { type Node, isMap, isPair, isScalar, isSeq, visit } from "yaml";
import { type Path, type Schema, kindOf, schemaAt } from "./schema";
import { isPlain, parse } from "./yaml";

// Place is a place in a text. What is between from and to is replaced.
export interface Place {
	path: Path; // of the value, or of the object that a key is for
	key: boolean; // it is the place of a value that may be an object, whose key is written instead
	typed: string;
	from: number;
	to: number;
	has: string[]; // the other keys of the object
	flow: boolean; // within {} or []
	quote: boolean;
	colon: boolean; // one comes after it
}

export interface Candidate {
	label: string;
	insert: string;
	doc: string;
}

// Names are those of a service by what they are names of, such as methods, and "tags=lane" for the values of a tag.
export type Names = Record<string, string[]>;

const mark = "zZcursorZz";

// wordAt returns the range of the word at a position.
function wordAt(text: string, at: number): { from: number; to: number; quote: boolean } {
	const start = text.lastIndexOf("\n", at - 1) + 1, end = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at);
	let open = -1;
	for (let i = start; i < at; i++) {
		if (open >= 0 && text[i] === "\\" && text[open] === '"') i++;
		else if (open >= 0 && text[i] === text[open]) open = -1;
		else if (open < 0 && (text[i] === '"' || text[i] === "'") && (i === start || /[\s[{,:]/.test(text[i - 1]))) open = i;
	}
	if (open >= 0) {
		const close = text.slice(at, end).search(new RegExp(`[${text[open]},\\]}]`)), found = close >= 0 ? at + close : end;
		return { from: open, to: text[found] === text[open] ? found + 1 : found, quote: true };
	}
	let from = at, to = at;
	while (from > start && !/[\s,[\]{}"']/.test(text[from - 1])) from--;
	while (to < end && !/[\s,[\]{}"':]/.test(text[to])) to++;
	return { from, to, quote: false };
}

interface Found {
	path: Path;
	role: "key" | "value";
	value: string;
	start: number;
	has: string[];
	flow: boolean;
}

function find(text: string): Found | null {
	let found: Found | null = null;
	visit(parse(text), {
		Scalar(role, node, ancestors) {
			if (!String(node.value).includes(mark)) return undefined;
			const chain: unknown[] = [...ancestors, node], path: Path = [];
			let within: Node | null = null;
			chain.forEach((a, i) => {
				if (isSeq(a)) path.push(a.items.indexOf(chain[i + 1]));
				if (isPair(a) && a.value === chain[i + 1]) path.push(isScalar(a.key) ? String(a.key.value) : "");
				if (isMap(a) || isSeq(a)) within = a;
			});
			const map: unknown = within;
			found = {
				path, role: role === "key" ? "key" : "value", value: String(node.value), start: node.range?.[0] ?? 0,
				has: isMap(map) ? map.items.flatMap((p) => (isScalar(p.key) && p.key !== node ? [String(p.key.value)] : [])) : [],
				flow: (isMap(map) || isSeq(map)) && Boolean(map.flow),
			};
			return visit.BREAK;
		},
	});
	return found;
}

// placeOf returns the place at a position of a text, or null if nothing can be said about it, such as in a comment.
export function placeOf(root: Schema, text: string, at: number): Place | null {
	const word = wordAt(text, at), before = text.slice(0, word.from), after = text.slice(word.to);
	let found = find(before + mark + after);
	if (found && !found.value.endsWith(mark)) found = find(before + mark + ":" + after); // the next line is no part of it
	if (!found?.value.endsWith(mark)) return null;
	const from = word.quote ? word.from : Math.min(word.from, found.start), schema = schemaAt(root, found.path);
	if (!schema) return null;
	const kind = kindOf(schema), key = kind === "object" || kind === "map";
	if (found.role === "key" && !key) return null;
	return {
		path: found.path, key, typed: text.slice(from + (word.quote ? 1 : 0), at), from, to: word.to, has: found.role === "key" ? found.has : [],
		flow: found.flow, quote: word.quote, colon: /^\s*:/.test(after),
	};
}

const soon = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString().replace(/\.\d+/, "");

function valuesOf(schema: Schema, names: Names): string[] {
	const own = [...(schema.enum ?? []), ...(names[schema["x-values"] ?? ""] ?? []), ...(schema.examples ?? [])];
	if (own.length) return own;
	switch (kindOf(schema)) {
		case "boolean": return ["true", "false"];
		case "duration": return ["100ms", "500ms", "1s", "5s"];
		case "time": return [soon(10), soon(60), soon(24 * 60)];
	}
	return [];
}

// keyText returns what a key is completed to: with what comes after it.
function keyText(place: Place, name: string, schema: Schema | undefined, column: number): string {
	const text = place.quote ? JSON.stringify(name) : isPlain(name) ? name : JSON.stringify(name);
	if (place.colon) return text;
	const kind = schema ? kindOf(schema) : "any", indent = "\n" + " ".repeat(column);
	if (place.flow || place.quote) return text + ": ";
	if (kind === "object" || kind === "map") return `${text}:${indent}  `;
	return kind === "list" ? `${text}:${indent}- ` : text + ": ";
}

function valueText(place: Place, schema: Schema, value: string): string {
	const kind = kindOf(schema);
	if (kind === "boolean" || kind === "number") return value;
	return place.quote || !(isPlain(value) || kind === "duration") ? JSON.stringify(value) : value;
}

// candidatesAt returns what may be written at a place: what begins with what is typed comes first.
export function candidatesAt(root: Schema, text: string, place: Place, names: Names): Candidate[] {
	const schema = schemaAt(root, place.path), column = place.from - (text.lastIndexOf("\n", place.from - 1) + 1);
	if (!schema) return [];
	let list: Candidate[];
	if (place.key) {
		const keys = schema.properties ? Object.keys(schema.properties) : names[schema["x-values"] ?? ""] ?? [];
		// The console writes the other fields of the document.
		list = (place.path.length ? keys : ["rules"]).filter((k) => !place.has.includes(k)).map((k) => {
			const child = schemaAt(root, [...place.path, k]);
			return { label: k, insert: keyText(place, k, child, column), doc: child?.description ?? "" };
		});
	} else list = valuesOf(schema, names).map((v) => ({ label: v, insert: valueText(place, schema, v), doc: "" }));
	const typed = place.typed.toLowerCase();
	const rank = (c: Candidate) => c.label.toLowerCase().indexOf(typed);
	list = list.filter((c, i) => rank(c) >= 0 && list.findIndex((x) => x.label === c.label) === i);
	list = list.map((c, i) => ({ c, i })).sort((a, b) => Number(rank(a.c) > 0) - Number(rank(b.c) > 0) || a.i - b.i).map((x) => x.c);
	return list.length === 1 && list[0].label === place.typed && (place.colon || !place.key) ? [] : list.slice(0, 50);
}
