// The rules that the form writes.
import { quoted } from "./diff";

export type Kind = "split" | "conditions" | "instances" | "methods" | "mocks";

// Values are what the form has, by the name of the field.
export type Values = Record<string, string>;

export const selects = (v: Values): string[] => {
	const [name, value = ""] = (v.tag ?? "").split("=");
	return [v.version ? `version: ${quoted(v.version)}` : "", v.zone ? `zone: ${quoted(v.zone)}` : "", v.tag ? `tags: {${quoted(name)}: ${quoted(value)}}` : ""].filter(Boolean);
};

// ruleOf returns the lines of a rule.
export function ruleOf(kind: Kind, v: Values): string[] {
	const name = v.name ? [`name: ${quoted(v.name)}`] : [];
	const when = v.method ? [`when: {methods: ${quoted(v.method)}}`] : [];
	switch (kind) {
		case "split": return [...name, ...when, `percent: ${Number(v.percent || 10)}`, `to: {${selects(v).join(", ")}}`];
		case "conditions": return [...name, ...when, `to: {${selects(v).join(", ")}}`];
		case "instances": return [...name, `match: {id: ${quoted(v.id ?? "")}}`, ...(v.state ? [`state: ${v.state}`] : []), ...(v.weight ? [`weight: ${Number(v.weight)}`] : [])];
		case "methods": return [...name, ...when, ...(v.timeout ? [`timeout: ${v.timeout}`] : []), ...(v.attempts ? [`attempts: ${Number(v.attempts)}`] : []), ...(v.concurrency ? [`concurrency: ${Number(v.concurrency)}`] : [])];
		case "mocks": return [...name, ...when, `error: {code: ${v.code || "unavailable"}, message: ${quoted(v.message ?? "")}}`];
	}
}
