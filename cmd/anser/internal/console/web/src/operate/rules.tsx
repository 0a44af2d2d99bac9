// The rules of a service: as text with a form beside it, checked while it is written, tried before it is applied.
import { useEffect, useState } from "react";
import { ApiError, ask } from "../api";
import { clock } from "../format";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Icon, Section, Wait } from "../ui";
import { Outcome, Reason, Why, useDoing, useMay } from "./common";
import { diff } from "./diff";
import { RuleForm } from "./ruleform";

export interface Rules {
	version: number;
	text: string;
	author?: string;
	time?: string;
	comment?: string;
}

interface Mistake {
	line?: number;
	column?: number;
	path?: string;
	message: string;
}

interface Effect {
	rule: string;
	instances: string[] | null;
}

interface Checked {
	ok: boolean;
	errors: Mistake[];
	effects: Effect[];
	summary: string;
}

interface DryRun {
	calls: number;
	moved: number;
	failed: number;
	mocked: number;
	faulted: number;
	moves?: { method: string; from: string; to: string[]; calls: number }[];
	effects: Effect[];
	from: number;
	advice?: string;
}

export default function RulesTab({ service }: { service: string }) {
	const path = "rules/" + encodeURIComponent(service);
	const rules = useApi<Rules>(path, false), history = useApi<Rules[]>(path + "/history", false);
	if (!rules.data) return <Wait error={rules.error} again={rules.again} />;
	return <Editor key={service} service={service} path={path} now={rules.data} history={history.data ?? []} again={() => { rules.again(); history.again(); }} />;
}

function Editor({ service, path, now, history, again }: { service: string; path: string; now: Rules; history: Rules[]; again: () => void }) {
	const t = useText();
	const why = useMay();
	const doing = useDoing();
	const [base, setBase] = useState(now), [text, setText] = useState(now.text), [reason, setReason] = useState("");
	const [checked, setChecked] = useState<Checked | null>(null), [dry, setDry] = useState<DryRun | null>(null), [other, setOther] = useState<Rules | null>(null);
	const edited = text !== base.text;
	useEffect(() => {
		if (text === base.text && now.version > base.version) { // nothing is lost
			setBase(now);
			setText(now.text);
		}
	}, [now]);
	useEffect(() => {
		setDry(null);
		setChecked(null);
		if (!edited || why) return;
		let here = true;
		const wait = setTimeout(() => change<Checked>("POST", path + "/check", { text, version: base.version }).then((v) => here && setChecked(v), () => {}), 250);
		return () => {
			here = false;
			clearTimeout(wait);
		};
	}, [text, base, path, why]);

	const took = (v: Rules) => {
		setBase(v);
		setText(v.text);
		setOther(null);
		setReason("");
		again();
		return t.applied(v.version);
	};
	const apply = (version: number) => doing.run(async () => {
		try {
			return took(await change<Rules>("PUT", path, { text, version, reason }));
		} catch (error) {
			if (error instanceof ApiError && error.status === 409) {
				const current = (error.current as Rules | undefined) ?? (await ask<Rules>(path));
				setOther(current);
			}
			throw error;
		}
	});
	const restore = (version: number) => doing.run(async () => took(await change<Rules>("POST", path + "/restore", { version, reason })));
	const test = () => doing.run(async () => setDry(await change<DryRun>("POST", path + "/dryrun", { text, version: base.version })));
	return (
		<>
			<Section title={base.version ? `${t.rules}, ${t.rulesVersion(base.version)}` : t.noRulesYet} aside={base.author ? <span className="dim">{base.author}, {clock(base.time)}{base.comment ? `: ${base.comment}` : ""}</span> : null}>
				<Why text={why} />
				{now.version > base.version && edited ? <p className="warn"><Icon name="warn" />{t.newerRules(now.version)}</p> : null}
				<div className={why ? "" : "sides"}>
					<div>
						<textarea className="code" aria-label={t.rulesText} spellCheck={false} rows={Math.min(Math.max(text.split("\n").length + 2, 14), 34)} value={text} readOnly={Boolean(why)} onChange={(e) => setText(e.target.value)} />
						<Check of={checked} />
					</div>
					{why ? null : <RuleForm service={service} add={(next) => setText(next(text))} />}
				</div>
				{why ? null : (
					<div className="row">
						<Reason value={reason} set={setReason} />
						<button type="button" disabled={!edited || doing.busy} onClick={test}>{t.dryRun}</button>
						<button type="button" disabled={!edited || doing.busy} onClick={() => setText(base.text)}>{t.discard}</button>
						<button type="button" className="main" disabled={!edited || doing.busy || checked?.ok === false} onClick={() => apply(base.version)}>{t.apply}</button>
					</div>
				)}
				<Outcome of={doing} />
			</Section>
			{other ? (
				<Section title={t.conflict(other.version)}>
					<p className="note">{t.conflictHint}</p>
					<div className="sides">
						<div><h4>{t.theirs}</h4><Diff before={base.text} after={other.text} /></div>
						<div><h4>{t.yours}</h4><Diff before={base.text} after={text} /></div>
					</div>
					<div className="row">
						<button type="button" onClick={() => { setBase(other); setText(other.text); setOther(null); }}>{t.takeTheirs}</button>
						<button type="button" onClick={() => { setBase(other); setOther(null); doing.clear(); }}>{t.editOnTop}</button>
					</div>
				</Section>
			) : edited ? <Section title={t.difference}><Diff before={base.text} after={text} /></Section> : null}
			{dry ? <Dry of={dry} /> : null}
			<Section title={t.history}>
				{history.length ? (
					<ul className="versions">
						{history.map((h) => (
							<li key={h.version}>
								<details>
									<summary><strong>{t.rulesVersion(h.version)}</strong> <time>{clock(h.time)}</time> {h.author} <span className="dim">{h.comment}</span></summary>
									<Diff before={h.text} after={base.text} />
									{why || h.version === base.version ? null : <button type="button" disabled={doing.busy} onClick={() => restore(h.version)}>{t.restore}</button>}
								</details>
							</li>
						))}
					</ul>
				) : <p className="empty">{t.none}</p>}
			</Section>
		</>
	);
}

function Check({ of }: { of: Checked | null }) {
	const t = useText();
	return (
		<div className="check" role="status">
			{of ? of.ok ? <p className="good"><Icon name="good" />{of.summary}</p> : (
				<ul className="plain bad">{of.errors.map((e, i) => <li key={i}><Icon name="bad" />{e.line ? `${t.line} ${e.line}: ` : ""}{e.path ? `${e.path}: ` : ""}{e.message}</li>)}</ul>
			) : null}
			{of?.ok ? <Effects list={of.effects} /> : null}
		</div>
	);
}

function Effects({ list }: { list: Effect[] }) {
	const t = useText();
	return <ul className="plain effects">{list.map((e) => <li key={e.rule}><code>{e.rule}</code> {e.instances?.length ? e.instances.join(", ") : <span className="warn">{t.noInstance}</span>}</li>)}</ul>;
}

export function Diff({ before, after }: { before: string; after: string }) {
	const t = useText();
	const list = diff(before, after);
	if (list.every((l) => l.sign === " ")) return <p className="dim">{t.noDifference}</p>;
	return <pre className="diff" tabIndex={0} aria-label={t.difference}>{list.map((l, i) => <span key={i} className={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : ""}>{l.sign} {l.text}{"\n"}</span>)}</pre>;
}

function Dry({ of }: { of: DryRun }) {
	const t = useText();
	return (
		<Section title={t.dryRun}>
			<p>{of.from ? t.dryRunText(of.calls, of.moved, of.failed, of.from) : t.dryRunNone}</p>
			{of.moves?.length ? (
				<div className="scroll" tabIndex={0} role="region" aria-label={t.dryRun}>
					<table><thead><tr><th>{t.method}</th><th>{t.from}</th><th>{t.to}</th><th className="n">{t.calls}</th></tr></thead>
						<tbody>{of.moves.map((m, i) => <tr key={i}><td>{m.method}</td><td>{m.from}</td><td>{m.to.join(", ")}</td><td className="n">{m.calls}</td></tr>)}</tbody></table>
				</div>
			) : null}
			<Effects list={of.effects} />
		</Section>
	);
}
