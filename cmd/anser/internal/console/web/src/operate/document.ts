// The rules in a text as the form shows them, and changes of the text that keep everything else in it.
import { type Document, type Node, YAMLMap, YAMLSeq, isAlias, isMap, isPair, isScalar, isSeq } from "yaml";
import { type Field, type Path, type Schema, fieldsOf, kindOf, listsOf, schemaAt } from "./schema";
import { parse, scalar, written } from "./yaml";

export interface Rule {
	list: string;
	index: number;
	values: Record<string, string>; // by the ids of fields
	beyond: string[]; // what only the text shows
}

export interface Read {
	rules: Rule[];
	beyond: string[]; // what is in no rule, and only in the text
	error: string; // why the text cannot be read
	line: number; // from 1, or 0
}

const lineAt = (text: string, offset = 0): number => text.slice(0, offset).split("\n").length;

class Misfit extends Error {
	constructor(message: string, readonly offset?: number) {
		super(message);
	}
}

const dotted = (path: Path): string => path.reduce<string>((s, p) => (typeof p === "number" ? `${s}[${p}]` : s ? `${s}.${p}` : p), "");

const isEmpty = (node: unknown): boolean => node === null || node === undefined || (isScalar(node) && (node.value === null || node.value === ""));

// fit fails if the text has another shape than rules have, so that a change would be lost or end in the wrong place.
function fit(root: Schema, node: unknown, path: Path): void {
	if (isAlias(node) || isEmpty(node)) return;
	const schema = schemaAt(root, path), at = (node as Node).range?.[0];
	if (!schema) throw new Misfit(`${dotted(path)}: unknown key`, at);
	const kind = kindOf(schema);
	if (kind === "any") return;
	if (kind === "list" ? !isSeq(node) : kind === "object" || kind === "map" ? !isMap(node) : kind === "patterns" ? isMap(node) : !isScalar(node)) throw new Misfit(`${dotted(path) || "document"}: ${kind}`, at);
	if (isSeq(node)) node.items.forEach((x, i) => fit(root, x, [...path, i]));
	if (isMap(node)) for (const p of node.items) fit(root, p.value, [...path, isScalar(p.key) ? String(p.key.value) : "?"]);
}

const hard = /^\s|\s$|^$|,/; // a text that a list with commas cannot have

// shown returns a value as a field has it, or null if no field can.
function shown(node: unknown, f: Field): string | null {
	if (isAlias(node) || (isScalar(node) || isSeq(node) || isMap(node)) && (node.anchor || (node.tag && !node.tag.startsWith("tag:yaml.org,2002:")))) return null;
	switch (f.kind) {
		case "any": return null;
		case "patterns": {
			if (!isSeq(node)) return isScalar(node) && !hard.test(String(node.value)) ? String(node.value) : null;
			const list = node.items.map((x) => (isScalar(x) ? String(x.value) : ""));
			return list.length && !list.some((x) => hard.test(x)) ? list.join(", ") : null;
		}
		case "map": {
			if (!isMap(node)) return null;
			const list = node.items.map((p) => {
				const value = isSeq(p.value) && p.value.items.length === 1 ? p.value.items[0] : p.value;
				return isScalar(p.key) && isScalar(value) && !/[=,]|^\s|\s$/.test(`${p.key.value}${value.value}`) ? `${p.key.value}=${value.value}` : "";
			});
			return list.includes("") ? null : list.join(", ");
		}
	}
	return isScalar(node) && !String(node.value).includes("\n") ? String(node.value) : null;
}

function readRule(root: Schema, list: string, index: number, node: unknown): Rule {
	const rule: Rule = { list, index, values: {}, beyond: [] };
	if (!isMap(node)) return { ...rule, beyond: [`${list}[${index}]`] };
	for (const f of fieldsOf(root, list)) {
		let at: unknown = node, i = 0;
		for (; i < f.path.length && isMap(at); i++) at = at.get(f.path[i], true);
		if (isEmpty(at) && !(isScalar(at) && at.type?.startsWith("QUOTE"))) continue;
		const value = i === f.path.length ? shown(at, f) : null;
		if (value !== null) rule.values[f.id] = value;
		else rule.beyond.push(f.path.slice(0, i).join("."));
	}
	rule.beyond = [...new Set(rule.beyond)];
	return rule;
}

// readRules returns the rules of a text.
export function readRules(root: Schema, text: string): Read {
	const doc = parse(text), out: Read = { rules: [], beyond: [], error: "", line: 0 };
	if (doc.errors.length) return { ...out, error: doc.errors[0].message, line: lineAt(text, doc.errors[0].pos[0]) };
	try {
		fit(root, doc.contents, []);
	} catch (error) {
		if (!(error instanceof Misfit)) throw error;
		return { ...out, error: error.message, line: lineAt(text, error.offset) };
	}
	if (!isMap(doc.contents)) return out;
	for (const p of doc.contents.items) {
		if (!isScalar(p.key) || p.key.value !== "rules") out.beyond.push(String(isScalar(p.key) ? p.key.value : p.key));
		else if (isAlias(p.value)) out.beyond.push("rules");
	}
	const rules = doc.contents.get("rules", true);
	for (const list of listsOf(root)) {
		const items: unknown = isMap(rules) ? rules.get(list, true) : null;
		if (isAlias(items)) out.beyond.push("rules." + list);
		if (isSeq(items)) out.rules.push(...items.items.map((x, i) => readRule(root, list, i, x)));
	}
	return out;
}

// edited returns a text after a change of its document.
function edited(text: string, change: (doc: Document) => void): string {
	const doc = parse(text) as Document;
	if (doc.errors.length) return text;
	change(doc);
	return written(doc);
}

// open returns the collection at a path. It makes what is missing, with a list or a map at the end.
function open(doc: Document, path: Path, list = false): YAMLMap | YAMLSeq {
	const make = (isList: boolean) => (isList ? new YAMLSeq(doc.schema) : new YAMLMap(doc.schema));
	if (isEmpty(doc.contents)) doc.contents = make(false);
	let at = doc.contents as YAMLMap | YAMLSeq;
	path.forEach((step, i) => {
		if (at.flow && at.items.length === 0) at.flow = false;
		if (isEmpty(at.get(step, true))) at.set(isMap(at) ? scalar(String(step)) : step, make(i + 1 < path.length ? typeof path[i + 1] === "number" : list));
		at = at.get(step, true) as unknown as YAMLMap | YAMLSeq;
	});
	if (at.flow && at.items.length === 0) at.flow = false;
	return at;
}

const parts = (value: string): string[] => value.split(",").map((x) => x.trim()).filter(Boolean);

// nodeOf returns a value of the form as it is written. old is the one before, whose form it keeps.
function nodeOf(doc: Document, f: Field, value: string, old: unknown): Node {
	if (f.kind === "patterns") {
		const list = parts(value);
		if (list.length === 1) return scalar(list[0]);
		const seq = new YAMLSeq(doc.schema);
		seq.items = list.map((x) => scalar(x));
		seq.flow = isSeq(old) ? Boolean(old.flow) : true;
		return seq;
	}
	if (f.kind === "map") {
		const map = new YAMLMap(doc.schema);
		for (const p of parts(value)) map.set(scalar(p.split("=")[0].trim()), scalar(p.slice((p + "=").indexOf("=") + 1).trim()));
		map.flow = isMap(old) ? Boolean(old.flow) : true;
		return map;
	}
	const next = scalar(value, f.kind === "number" || f.kind === "boolean" || f.kind === "duration");
	if (isScalar(old)) next.comment = old.comment;
	return next;
}

// setField changes a field of a rule; an empty value removes it.
export function setField(text: string, rule: Rule, f: Field, value: string): string {
	return edited(text, (doc) => {
		const at: Path = ["rules", rule.list, rule.index];
		if (value.trim() === "" || (f.kind === "patterns" && !parts(value).length)) {
			doc.deleteIn([...at, ...f.path]);
			for (let n = f.path.length - 1; n > 0; n--) {
				const parent = doc.getIn([...at, ...f.path.slice(0, n)], true);
				if (!isMap(parent) || parent.items.length) break;
				doc.deleteIn([...at, ...f.path.slice(0, n)]);
			}
			return;
		}
		const map = open(doc, [...at, ...f.path.slice(0, -1)]) as YAMLMap, key = f.path[f.path.length - 1];
		const pair = map.items.find((p) => isPair(p) && isScalar(p.key) && p.key.value === key);
		if (pair) pair.value = nodeOf(doc, f, value, pair.value);
		else map.set(scalar(key), nodeOf(doc, f, value, null));
	});
}

// addRule adds a rule with values of its own fields, by their names.
export function addRule(root: Schema, text: string, list: string, values: Record<string, string>): string {
	return edited(text, (doc) => {
		const seq = open(doc, ["rules", list], true) as YAMLSeq, rule = new YAMLMap(doc.schema);
		for (const f of fieldsOf(root, list)) if (f.id in values) rule.set(scalar(f.id), nodeOf(doc, f, values[f.id], null));
		seq.items.push(rule);
	});
}

// removeRule removes a rule, and its list if it was the last one.
export function removeRule(text: string, rule: Rule): string {
	return edited(text, (doc) => {
		doc.deleteIn(["rules", rule.list, rule.index]);
		const seq = doc.getIn(["rules", rule.list], true), rules = doc.get("rules", true);
		if (isSeq(seq) && !seq.items.length) doc.deleteIn(["rules", rule.list]);
		if (isMap(rules) && !rules.items.length) rules.flow = true;
	});
}

// moveRule moves a rule up or down in its list.
export function moveRule(text: string, rule: Rule, by: -1 | 1): string {
	return edited(text, (doc) => {
		const seq = doc.getIn(["rules", rule.list], true), to = rule.index + by;
		if (!isSeq(seq) || to < 0 || to >= seq.items.length) return;
		[seq.items[rule.index], seq.items[to]] = [seq.items[to], seq.items[rule.index]];
	});
}
