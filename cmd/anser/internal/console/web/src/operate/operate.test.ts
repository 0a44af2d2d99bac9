import { expect, test } from "vitest";
import { diff, insert } from "./diff";
import { at, fieldsOf, withField } from "./form";
import { ruleOf } from "./rule";

test("a difference names what was removed and added", () => {
	expect(diff("a\nb\nc\n", "a\nx\nc\nd\n").map((l) => l.sign + l.text)).toEqual([" a", "-b", "+x", " c", "+d"]);
	expect(diff("a\n", "a\n").every((l) => l.sign === " ")).toBe(true);
});

test("a rule is added to its list, wherever that is", () => {
	const rule = ["percent: 10", 'to: {version: "2"}'];
	expect(insert("rules: {}\n", "split", rule)).toBe('rules:\n  split:\n  - percent: 10\n    to: {version: "2"}\n');
	const text = "rules:\n  faults:\n  - percent: 1\n    until: x\n  split:\n  - percent: 5\n    to:\n      version: \"1\"\n";
	expect(insert(text, "split", rule)).toBe(text + '  - percent: 10\n    to: {version: "2"}\n');
	expect(insert(text, "faults", ["percent: 2"]).split("\n").slice(1, 5)).toEqual(["  faults:", "  - percent: 1", "    until: x", "  - percent: 2"]);
});

test("names in a rule are quoted", () => {
	expect(ruleOf("split", { percent: "20", version: '1"}\nx: y', method: "Arith.*" })).toEqual(['when: {methods: "Arith.*"}', "percent: 20", 'to: {version: "1\\"}\\nx: y"}']);
	expect(ruleOf("conditions", { tag: "lane=blue" })).toEqual(['to: {tags: {"lane": "blue"}}']);
});

test("a form has the fields of an example", () => {
	const example = { A: 1, Name: "x", In: { Deep: true }, List: [1] };
	expect(fieldsOf(example).map((f) => [f.path.join("."), f.kind])).toEqual([["A", "number"], ["Name", "text"], ["In.Deep", "boolean"], ["List", "json"]]);
	const next = withField(example, ["In", "Deep"], false);
	expect(at(next, ["In", "Deep"])).toBe(false);
	expect(at(next, ["A"])).toBe(1);
});
