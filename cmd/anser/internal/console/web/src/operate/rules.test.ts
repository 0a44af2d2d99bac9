import { expect, test } from "vitest";
import type { ServiceDetail } from "../api";
import { candidatesAt, placeOf } from "./complete";
import { type Rule, addRule, moveRule, readRules, removeRule, setField } from "./document";
import { namesOf } from "./names";
import { type Schema, fieldsOf, kindOf, listsOf, schemaAt } from "./schema";

// scripts/suites/console sets it to docs/governance/rules.schema.json, which a test of package route compares with the types.
const schema = JSON.parse(import.meta.env.VITE_RULES_SCHEMA ?? "null") as Schema;

const names = namesOf({
	methods: [{ name: "Arith.Mul" }, { name: "Arith.Add" }], callers: [{ from: "front" }, { from: "process:demo" }],
	service: { versions: ["1.0", "1.10"], zones: ["zone-a", "zone-b"] }, tags: ["lane=blue", "lane=green"],
	instances: [{ id: "arith-1", address: "10.0.0.1:1" }, { id: "arith-2", address: "10.0.0.2:1" }],
} as unknown as ServiceDetail, ["rules:\n  split:\n  - name: half\n    by: user\n"]);

// at returns the candidates at the place of "|" in a text.
function at(marked: string) {
	const position = marked.indexOf("|"), text = marked.replace("|", ""), place = placeOf(schema, text, position);
	return place ? candidatesAt(schema, text, place, names).map((c) => ({ ...c, result: text.slice(0, place.from) + c.insert + text.slice(place.to) })) : [];
}

const labels = (marked: string) => at(marked).map((c) => c.label);

test("the suite gives the schema", () => {
	expect(schema, "run scripts/suites/console").not.toBeNull();
	expect(listsOf(schema)).toContain("split");
});

test("keys are those that may be at a place, without those that are there", () => {
	expect(labels("|")).toEqual(["rules"]);
	expect(labels("rules:\n  |")).toEqual(listsOf(schema));
	expect(labels("rules:\n  s|")).toEqual(["split", "conditions", "groups", "instances", "methods", "mocks", "faults", "tags"].filter((l) => l.includes("s")).sort((a, b) => Number(a !== "split") - Number(b !== "split") || a.localeCompare(b)));
	expect(labels("rules:\n  split:\n  - percent: 5\n    |\n    to: {version: x}\n")).toEqual(["by", "name", "strict", "until", "when"]);
	expect(labels("rules:\n  split:\n  - |\n")).toContain("percent");
	expect(labels("rules:\n  split:\n  - when: {methods: a, |}\n")).toEqual(["caller", "metadata"]);
	expect(labels("rules:\n  split:\n  - percent: 1\n    pe|\n  mocks: []\n")).toEqual([]);
	expect(labels("rules:\n  split:\n  - percent: 1\n    # wh|\n")).toEqual([]);
	expect(labels("rules:\n  unknown:\n    |\n")).toEqual([]);
	expect(labels('{"rules": {"split": [{"perc|')).toEqual(["percent"]);
	expect(labels("rules:\n  split: [\n  instances:\n  - sta|")).toEqual(["state"]); // what is before it is not complete
});

test("keys come with what is after them", () => {
	const first = (marked: string) => at(marked)[0]?.result;
	expect(first("rules:\n  sp|")).toBe("rules:\n  split:\n  - ");
	expect(first("rules:\n  split:\n  - whe|")).toBe("rules:\n  split:\n  - when:\n      ");
	expect(first("rules:\n  split:\n  - perc|")).toBe("rules:\n  split:\n  - percent: ");
	expect(first("rules:\n  split:\n  - per|x: 5\n")).toBe("rules:\n  split:\n  - percent: 5\n");
	expect(first("rules:\n  split:\n  - per|cent: 5\n    to: {version: a}\n")).toBe("rules:\n  split:\n  - percent: 5\n    to: {version: a}\n");
	expect(first("rules:\n  split:\n  - to: {ver|}\n")).toBe("rules:\n  split:\n  - to: {version: }\n");
	expect(first('{"rules": {"split": [{"perc|')).toBe('{"rules": {"split": [{"percent": ');
});

test("values are those of the service, with quotes where YAML needs them", () => {
	const start = "rules:\n  split:\n  - when:\n      methods: ";
	expect(labels(start + "|\n")).toEqual(["Arith.*", "Arith.Add", "Arith.Mul"]);
	expect(at(start + "Mu|\n")[0].result).toBe(start + "Arith.Mul\n");
	expect(at(start + '"Mu|\n')[0].result).toBe(start + '"Arith.Mul"\n');
	expect(labels(start + "[Arith.Mul, Ar|]\n")).toContain("Arith.Add");
	expect(at("rules:\n  split:\n  - to: {version: 1|}\n")[1].result).toBe('rules:\n  split:\n  - to: {version: "1.10"}\n');
	expect(labels("rules:\n  split:\n  - to: {zone: |}\n")).toEqual(["zone-a", "zone-b", "$zone"]);
	expect(labels("rules:\n  split:\n  - to: {tags: {|}}\n")).toEqual(["lane"]);
	expect(labels("rules:\n  split:\n  - to: {tags: {lane: |}}\n")).toEqual(["blue", "green"]);
	expect(labels("rules:\n  instances:\n  - match: {id: arith-|}\n    state: up\n")).toEqual(["arith-1", "arith-2"]);
	expect(labels("rules:\n  instances:\n  - match: {id: a}\n    state: |\n")).toEqual(["up", "draining", "disabled"]);
	expect(labels("rules:\n  methods:\n  - mode: |\n")).toEqual(["backup", "failfast", "failover", "failtry"]);
	expect(labels("rules:\n  mocks:\n  - error: {code: not f|}\n")).toEqual(["not found"]);
	expect(labels("rules:\n  groups:\n  - strict: |\n")).toEqual(["true", "false"]);
	expect(labels("rules:\n  groups:\n  - caller: {service: |}\n")).toEqual(["front"]);
	expect(labels("rules:\n  groups:\n  - name: |\n")).toEqual(["half"]);
	expect(labels("rules:\n  tags:\n  - metadata: |\n")).toEqual(["user"]);
	expect(labels("rules:\n  instances:\n  - match: {id: a}\n    state: up|\n")).toEqual([]); // it is complete
});

// A kind that the page does not know would be a field that the form does not show.
test("every field of the schema has a kind", () => {
	for (const list of listsOf(schema)) {
		const fields = fieldsOf(schema, list);
		expect(fields.length, list).toBeGreaterThan(2);
		for (const f of fields) {
			expect(schemaAt(schema, ["rules", list, 0, ...f.path]), f.id).toBeDefined();
			if (kindOf(f.schema) === "any") expect(f.id).toBe("reply");
		}
	}
});

const text = `# of the team
rules:
  split:
  # ten of a hundred
  - percent: 10 # for now
    to: {version: "2"}
    until: 2026-01-02T15:04:05Z
    when:
      methods:
      - Arith.*
      - "!Arith.Div"
  mocks:
  - reply: {"Product": 7.50, list: [1, null]}
    when: {methods: Arith.Mul, metadata: {user: ["a,b", c]}}
`;

const read = (s: string) => readRules(schema, s);
const field = (list: string, id: string) => fieldsOf(schema, list).find((f) => f.id === id)!;
const rule = (s: string, list: string, index = 0): Rule => read(s).rules.find((r) => r.list === list && r.index === index)!;

test("the form has the rules of a text, and names what only the text shows", () => {
	const split = rule(text, "split"), mock = rule(text, "mocks");
	expect(split.values).toEqual({ percent: "10", "to.version": "2", until: "2026-01-02T15:04:05Z", "when.methods": "Arith.*, !Arith.Div" });
	expect(split.beyond).toEqual([]);
	expect(mock.values).toEqual({ "when.methods": "Arith.Mul" });
	expect(mock.beyond).toEqual(["reply", "when.metadata"]);
	expect(read("version: 7\nrules: {}\n").beyond).toEqual(["version"]);
	expect(read("")).toEqual({ rules: [], beyond: [], error: "", line: 0 });
});

test("a change of a field changes nothing else", () => {
	expect(setField(text, rule(text, "split"), field("split", "percent"), "20")).toBe(text.replace("10 #", "20 #"));
	expect(setField(text, rule(text, "split"), field("split", "to.version"), "3")).toBe(text.replace('"2"', '"3"'));
	expect(setField(text, rule(text, "mocks"), field("mocks", "when.methods"), "Arith.Add, Arith.Mul")).toBe(text.replace("methods: Arith.Mul", "methods: [Arith.Add, Arith.Mul]"));
	expect(setField(text, rule(text, "mocks"), field("mocks", "failing"), "true")).toContain('Product": 7.50, list: [1, null]}\n    when: {methods: Arith.Mul, metadata: {user: ["a,b", c]}}\n    failing: true\n');
});

test("a field that is emptied goes, with what has nothing else", () => {
	const next = setField(text, rule(text, "split"), field("split", "when.methods"), "");
	expect(next).not.toContain("Div");
	expect(next.match(/when:/g)).toHaveLength(1);
	expect(rule(next, "split").values).toEqual({ percent: "10", "to.version": "2", until: "2026-01-02T15:04:05Z" });
});

test("rules are added, moved and removed", () => {
	let s = addRule(schema, "", "split", { percent: "10" });
	expect(s).toBe("rules:\n  split:\n  - percent: 10\n");
	expect(addRule(schema, "rules: {}\n", "split", { percent: "10" })).toBe(s);
	expect(addRule(schema, "rules:\n", "split", { percent: "10" })).toBe(s);
	s = addRule(schema, s, "split", {});
	s = setField(s, rule(s, "split", 1), field("split", "to.tags"), "lane=blue, size=1");
	expect(s).toBe('rules:\n  split:\n  - percent: 10\n  - to:\n      tags: {lane: blue, size: "1"}\n');
	s = moveRule(s, rule(s, "split", 1), -1);
	expect(rule(s, "split", 1).values).toEqual({ percent: "10" });
	s = removeRule(removeRule(s, rule(s, "split", 1)), rule(s, "split", 0));
	expect(s).toBe("rules: {}\n");
});

test("a value is the text that was typed", () => {
	for (const value of ["yes", "1.10", "a: b", "x # y", '"', "null", "$zone", "!1", "*"]) {
		const s = setField("rules:\n  split:\n  - percent: 1\n", rule("rules:\n  split:\n  - percent: 1\n", "split"), field("split", "name"), value);
		expect(rule(s, "split").values.name, s).toBe(value);
		if (/^[^A-Za-z$]|yes|null|[:#]/.test(value)) expect(s).toContain(JSON.stringify(value));
	}
});

test("what has another shape than rules is not shown", () => {
	for (const [s, line] of [["rules:\n  split:\n  - percent: [\n", 0], ["rules:\n  splitt: []\n", 2], ["rules:\n  split: 7\n", 2], ["- 1\n", 1], ["rules:\n  split:\n  - percent: 1\n    percent: 2\n", 4], ["rules: {}\n---\nrules: {}\n", 2]] as const) {
		const of = read(s);
		expect(of.error, s).not.toBe("");
		if (line) expect(of.line, s).toBe(line);
	}
	const anchors = "rules:\n  conditions:\n  - &a\n    to: {zone: x}\n  - *a\n  - to: &b {zone: y}\n  - to: *b\n";
	expect(read(anchors).error).toBe("");
	expect(rule(anchors, "conditions", 1).beyond).toEqual(["conditions[1]"]);
	expect(rule(anchors, "conditions", 3).beyond).toContain("to");
	expect(setField(anchors, rule(anchors, "conditions", 0), field("conditions", "name"), "n")).toContain("- *a\n");
});
