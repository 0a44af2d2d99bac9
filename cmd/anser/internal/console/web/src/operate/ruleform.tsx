// The form beside the text of rules: it writes a rule into the text, where it can be changed further.
import { useState } from "react";
import { useText } from "../settings";
import { Field } from "./common";
import { insert } from "./diff";
import { type Kind, type Values, ruleOf, selects } from "./rule";

const kinds: Kind[] = ["split", "conditions", "methods", "instances", "mocks"];

const fields: Record<Kind, string[]> = {
	split: ["name", "method", "percent", "version", "zone", "tag"], conditions: ["name", "method", "version", "zone", "tag"],
	methods: ["name", "method", "timeout", "attempts", "concurrency"], instances: ["name", "id", "state", "weight"], mocks: ["name", "method", "code", "message"],
};
const examples: Values = { method: "Arith.*", percent: "10", version: "1.1", zone: "zone-a", tag: "lane=blue", timeout: "500ms", attempts: "2", concurrency: "100", id: "arith-1", weight: "50", code: "unavailable" };

export function RuleForm({ service, add }: { service: string; add: (f: (text: string) => string) => void }) {
	const t = useText();
	const [kind, setKind] = useState<Kind>("split"), [values, setValues] = useState<Values>({});
	const rule = ruleOf(kind, values);
	const complete = kind === "methods" ? rule.length > 1 : kind === "instances" ? Boolean(values.id) && rule.length > 1 : kind === "mocks" ? Boolean(values.method) : selects(values).length > 0;
	return (
		<form className="card" aria-label={t.addRule} onSubmit={(e) => { e.preventDefault(); add((text) => insert(text, kind, rule)); setValues({}); }}>
			<h3>{t.addRule} <span className="dim">{service}</span></h3>
			<Field label={t.kind}>
				<select value={kind} onChange={(e) => setKind(e.target.value as Kind)}>{kinds.map((k) => <option key={k} value={k}>{t.ruleKinds[k]}</option>)}</select>
			</Field>
			{fields[kind].map((f) => (
				<Field key={f} label={t.ruleFields[f]}>
					{f === "state" ? (
						<select value={values.state ?? ""} onChange={(e) => setValues({ ...values, state: e.target.value })}><option value="">–</option>{Object.entries(t.states).map(([k, text]) => <option key={k} value={k}>{text}</option>)}</select>
					) : <input value={values[f] ?? ""} placeholder={examples[f]} inputMode={/percent|attempts|concurrency|weight/.test(f) ? "numeric" : undefined} onChange={(e) => setValues({ ...values, [f]: e.target.value })} />}
				</Field>
			))}
			<button type="submit" disabled={!complete}>{t.addToText}</button>
		</form>
	);
}
