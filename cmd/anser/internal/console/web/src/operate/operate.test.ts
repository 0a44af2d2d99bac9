import { expect, test } from "vitest";
import { diff } from "./diff";
import { at, fieldsOf, withField } from "./form";

test("a difference names what was removed and added", () => {
	expect(diff("a\nb\nc\n", "a\nx\nc\nd\n").map((l) => l.sign + l.text)).toEqual([" a", "-b", "+x", " c", "+d"]);
	expect(diff("a\n", "a\n").every((l) => l.sign === " ")).toBe(true);
});

test("a form has the fields of an example", () => {
	const example = { A: 1, Name: "x", In: { Deep: true }, List: [1] };
	expect(fieldsOf(example).map((f) => [f.path.join("."), f.kind])).toEqual([["A", "number"], ["Name", "text"], ["In.Deep", "boolean"], ["List", "json"]]);
	const next = withField(example, ["In", "Deep"], false);
	expect(at(next, ["In", "Deep"])).toBe(false);
	expect(at(next, ["A"])).toBe(1);
});
