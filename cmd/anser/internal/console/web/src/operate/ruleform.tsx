// The form next to the text of rules: it shows the rules that the text has, and changes them in the text.
import { type ReactNode, useId, useMemo, useRef, useState } from "react";
import { useText } from "../settings";
import { Icon } from "../ui";
import { until } from "./common";
import type { Names } from "./complete";
import { type Read, type Rule, addRule, moveRule, readRules, removeRule, setField } from "./document";
import { type Field, type Schema, fieldsOf, listsOf } from "./schema";

// The lists of rules in the order of the form, with the fields that it shows at first. Those that a rule has are shown, too.
const first: Record<string, string[]> = {
	split: ["name", "when.methods", "percent", "by", "to.version", "to.tags"],
	conditions: ["name", "when.methods", "to.version", "to.zone", "to.tags", "strict"],
	methods: ["name", "when.methods", "timeout", "attempts", "concurrency"],
	instances: ["name", "match.id", "state", "weight"],
	groups: ["name", "caller.service", "group", "version", "strict"],
	tags: ["name", "tag", "metadata", "strict"],
	mocks: ["name", "when.methods", "failing", "error.code", "error.message"],
	faults: ["name", "when.methods", "percent", "delay", "error.code", "until"],
};

const examples: Record<string, string> = { duration: "250ms", time: "2026-01-02T15:04:05Z" };

export interface Mistake {
	line?: number;
	column?: number;
	path?: string;
	message: string;
}

interface Props {
	text: string;
	set: (text: string) => void;
	schema: Schema;
	names: Names;
	mistakes: Mistake[];
}

export function RuleForm({ text, set, schema, names, mistakes }: Props) {
	const t = useText();
	const now = useMemo(() => readRules(schema, text), [schema, text]), last = useRef<Read>(now);
	const [list, setList] = useState("split"), [opened, setOpened] = useState("");
	if (!now.error) last.current = now;
	const { rules, beyond } = last.current;
	const all = listsOf(schema), lists = [...Object.keys(first).filter((l) => all.includes(l)), ...all.filter((l) => !first[l])];
	const title = (l: string) => t.ruleKinds[l] ?? l;
	const add = () => {
		const values: Record<string, string> = list === "split" ? { percent: "10" } : list === "faults" ? { percent: "10", until: until("10", 10) } : {};
		setOpened(`${list}[${rules.filter((r) => r.list === list).length}]`);
		set(addRule(schema, text, list, values));
	};
	return (
		<form className="card ruleform" aria-label={t.ruleForm} onSubmit={(e) => e.preventDefault()}>
			<h3>{t.ruleForm}</h3>
			{now.error ? <p className="warn" role="status"><Icon name="warn" /> {t.formWaits} {now.line ? `${t.line} ${now.line}: ` : ""}{now.error}</p> : null}
			<fieldset className="whole" disabled={now.error !== ""}>
				{lists.map((l) => {
					const of = rules.filter((r) => r.list === l);
					if (!of.length) return null;
					return (
						<section key={l}>
							<h4>{title(l)}</h4>
							{of.map((r) => {
								const path = `rules.${r.list}[${r.index}]`, key = `${r.list}[${r.index}]`;
								return (
									<RuleDetails key={key} rule={r} count={of.length} fields={fieldsOf(schema, r.list)} names={names} open={opened === key} toggle={(on) => setOpened((old) => (on ? key : old === key ? "" : old))}
										mistakes={mistakes.filter((m) => m.path === path || m.path?.startsWith(path + "."))}
										change={(f, value) => set(setField(text, r, f, value))} remove={() => { setOpened(""); set(removeRule(text, r)); }}
										move={(by) => { setOpened(`${r.list}[${r.index + by}]`); set(moveRule(text, r, by)); }} />
								);
							})}
						</section>
					);
				})}
				{rules.length ? null : <p className="dim">{t.noRulesYet}</p>}
				{beyond.length ? <p className="note">{t.onlyInText}: {beyond.map((b) => <code key={b} className="tag">{b}</code>)}</p> : null}
				<div className="row">
					<label className="field"><span>{t.kind}</span><select value={list} onChange={(e) => setList(e.target.value)}>{lists.map((l) => <option key={l} value={l}>{title(l)}</option>)}</select></label>
					<button type="button" onClick={add}>{t.addRule}</button>
				</div>
			</fieldset>
		</form>
	);
}

interface DetailsProps {
	rule: Rule;
	count: number;
	fields: Field[];
	names: Names;
	mistakes: Mistake[];
	open: boolean;
	toggle: (on: boolean) => void;
	change: (f: Field, value: string) => void;
	remove: () => void;
	move: (by: -1 | 1) => void;
}

function RuleDetails({ rule, count, fields, names, mistakes, open, toggle, change, remove, move }: DetailsProps) {
	const t = useText();
	const [more, setMore] = useState<string[]>([]);
	const path = `rules.${rule.list}[${rule.index}].`;
	const order = [...(first[rule.list] ?? []), ...fields.map((f) => f.id)].filter((id, i, l) => l.indexOf(id) === i);
	const editable = order.flatMap((id) => fields.filter((f) => f.id === id && f.kind !== "any" && !rule.beyond.some((b) => b === id || id.startsWith(b + "."))));
	const shown = editable.filter((f) => (first[rule.list] ?? []).includes(f.id) || f.id in rule.values || more.includes(f.id)), hidden = editable.filter((f) => !shown.includes(f));
	const named = rule.values.name || Object.entries(rule.values).slice(0, 2).map(([, v]) => v).join(", ");
	const other = mistakes.filter((m) => !shown.some((f) => m.path === path + f.id));
	return (
		<details open={open} onToggle={(e) => toggle(e.currentTarget.open)}>
			<summary><strong>{rule.index + 1}</strong> {named || <span className="dim">{t.emptyRule}</span>}{mistakes.length ? <span className="bad"> <Icon name="bad" /></span> : null}</summary>
			{open ? (
				<>
					{shown.map((f) => <Input key={f.id} f={f} value={rule.values[f.id] ?? ""} names={names} wrong={mistakes.find((m) => m.path === path + f.id)?.message} set={(v) => change(f, v)} />)}
					{other.length ? <ul className="plain bad">{other.map((m) => <li key={(m.path ?? "") + m.message}>{m.path?.slice(path.length)} {m.message}</li>)}</ul> : null}
					{rule.beyond.length ? <p className="note">{t.onlyInText}: {rule.beyond.map((b) => <code key={b} className="tag">{b}</code>)}</p> : null}
					<div className="row">
						{hidden.length ? <select aria-label={t.moreFields} value="" onChange={(e) => setMore([...more, e.target.value])}><option value="">{t.moreFields}</option>{hidden.map((f) => <option key={f.id} value={f.id}>{label(t, f.id)}</option>)}</select> : null}
						{count > 1 ? <><button type="button" className="small" disabled={rule.index === 0} aria-label={t.moveUp} title={t.moveUp} onClick={() => move(-1)}>↑</button><button type="button" className="small" disabled={rule.index === count - 1} aria-label={t.moveDown} title={t.moveDown} onClick={() => move(1)}>↓</button></> : null}
						<button type="button" className="small" onClick={remove}>{t.removeRule}</button>
					</div>
				</>
			) : null}
		</details>
	);
}

// label returns the name of a field: of what it is a part, and its own.
function label(t: ReturnType<typeof useText>, id: string): string {
	const at = id.lastIndexOf("."), part = id.slice(0, Math.max(at, 0)), name = id.slice(at + 1);
	return (part ? (t.ruleParts[part] ?? part) + ": " : "") + (t.ruleFields[name] ?? name);
}

// Input is a field. What is typed is kept while it has the focus, also where the text has it in another form.
function Input({ f, value, names, wrong, set }: { f: Field; value: string; names: Names; wrong?: string; set: (value: string) => void }) {
	const t = useText();
	const id = useId();
	const [draft, setDraft] = useState<string | null>(null);
	const trouble = wrong ? <small id={id + "-wrong"} className="bad">{wrong}</small> : null;
	const about = { "aria-invalid": wrong ? true : undefined, "aria-describedby": wrong ? id + "-wrong" : undefined, title: f.schema.description };
	if (f.kind === "boolean") return <div className="input"><label className="tick"><input type="checkbox" {...about} checked={value === "true"} onChange={(e) => set(e.target.checked ? "true" : "")} /> {label(t, f.id)}</label>{trouble}</div>;
	let input: ReactNode;
	if (f.schema.enum) {
		const known = f.schema.enum.includes(value) || value === "";
		input = <select {...about} value={value} onChange={(e) => set(e.target.value)}><option value="">–</option>{known ? null : <option>{value}</option>}{f.schema.enum.map((x) => <option key={x} value={x}>{f.id === "state" ? (t.states[x] ?? x) : x}</option>)}</select>;
	} else {
		const values = f.kind === "map" ? (names[f.schema["x-values"] ?? ""] ?? []).flatMap((k) => (names[`${f.schema["x-values"]}=${k}`] ?? []).map((v) => `${k}=${v}`)) : [...(names[f.schema["x-values"] ?? ""] ?? []), ...(f.schema.examples ?? [])];
		input = (
			<>
				<input {...about} value={draft ?? value} placeholder={t.ruleHints[f.kind] ?? examples[f.kind]} inputMode={f.kind === "number" ? "decimal" : undefined} list={values.length ? id : undefined} autoComplete="off" spellCheck={false}
					onFocus={() => setDraft(value)} onBlur={() => setDraft(null)} onChange={(e) => { setDraft(e.target.value); set(e.target.value); }} />
				{values.length ? <datalist id={id}>{values.map((v) => <option key={v} value={v} />)}</datalist> : null}
			</>
		);
	}
	return <div className="input"><label className="field"><span>{label(t, f.id)}</span>{input}</label>{trouble}</div>;
}
