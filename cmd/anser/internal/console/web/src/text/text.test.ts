import { expect, test } from "vitest";
import { en } from "./en";
import { zh } from "./zh";

// leaves returns the texts of a catalogue by their keys, and of a function what it makes of examples.
function leaves(v: unknown, key = ""): [string, string][] {
	if (typeof v === "string") return [[key, v]];
	if (typeof v === "function") return [[key, String(v(7, 8, 9, 10, 11))]];
	return Object.entries(v as object).flatMap(([k, x]) => leaves(x, key + "." + k));
}

test("both languages have the same texts, with the same values in them", () => {
	const a = new Map(leaves(en)), b = new Map(leaves(zh));
	expect([...b.keys()].sort()).toEqual([...a.keys()].sort());
	for (const [key, text] of a) {
		expect(b.get(key), key).not.toBe("");
		const numbers = (s = "") => (s.match(/\d+/g) ?? []).sort().join();
		if (!/p99|minutes5|hour/.test(key)) expect(numbers(b.get(key)), key).toBe(numbers(text));
	}
});

// Names of things that are the same in both languages.
const same = /^[^a-zA-Z\u4e00-\u9fff]*$|^(p99|p50|CPU|TLS|YAML|JSON|Go|curl|grpcurl|anser call|OpenID Connect)$/;

test("the Chinese texts are Chinese", () => {
	for (const [key, text] of leaves(zh)) expect(/[\u4e00-\u9fff]/.test(text) || same.test(text) || key === ".language", `${key}: ${text}`).toBe(true);
	for (const [key, text] of leaves(en)) expect(/[\u4e00-\u9fff]/.test(text) && key !== ".language", `${key}: ${text}`).toBe(false);
});

// Texts in the components would be in one language only.
test("no text is outside of the catalogue", () => {
	const files = Object.entries(import.meta.glob<string>("../**/*.tsx", { query: "?raw", import: "default", eager: true }));
	expect(files.length).toBeGreaterThan(10);
	for (const [file, text] of files) {
		const source = text.replace(/\/\/.*$/gm, "").replace(/className=("[^"]*"|\{`[^`]*`\})/g, "");
		const texts = [...source.matchAll(/(?<!\w)<[a-z][^<>{}]*>([^<>{}]*[a-zA-Z]{2}[^<>{}]*)</g)].map((m) => m[1].trim());
		const attributes = [...source.matchAll(/\b(?:aria-label|title|placeholder|alt|label|none|note)="([^"]*[a-zA-Z]{2}[^"]*)"/g)].map((m) => m[1]);
		expect([...texts, ...attributes].filter((s) => !/^(p\d+(\.9)?|Ctrl K|TLS|curl|grpcurl|anser call|Go)$/.test(s)), file).toEqual([]);
	}
});
