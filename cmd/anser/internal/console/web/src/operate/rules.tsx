// The rules of a service: as text with a form beside it, checked while it is written, tried before it is applied.
import { useEffect, useMemo, useRef, useState } from "react";
import { ApiError, type ServiceDetail, ask } from "../api";
import { clock } from "../format";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Icon, Section, Wait } from "../ui";
import { Outcome, Reason, Why, useDoing, useMay } from "./common";
import { diff } from "./diff";
import { type DryRun, DryRunResult, type RuleEffect, Effects } from "./dryrun";
import { Editor, goTo } from "./editor";
import { Effect } from "./effect";
import { namesOf } from "./names";
import { type Mistake, RuleForm } from "./ruleform";
import "./rules.css";
import type { Schema } from "./schema";

export interface Rules {
	version: number;
	text: string;
	author?: string;
	time?: string;
	comment?: string;
}

interface Checked {
	ok: boolean;
	errors: Mistake[];
	effects: RuleEffect[];
	summary: string;
}

export default function RulesTab({ detail }: { detail: ServiceDetail }) {
	const service = detail.service.name, path = "rules/" + encodeURIComponent(service);
	const rules = useApi<Rules>(path, false), history = useApi<Rules[]>(path + "/history", false);
	if (!rules.data) return <Wait error={rules.error} again={rules.again} />;
	return <RulesOf key={service} detail={detail} path={path} now={rules.data} history={history.data ?? []} again={() => { rules.again(); history.again(); }} />;
}

function RulesOf({ detail, path, now, history, again }: { detail: ServiceDetail; path: string; now: Rules; history: Rules[]; again: () => void }) {
	const t = useText();
	const why = useMay();
	const schema = useApi<Schema>("ruleschema", false), area = useRef<HTMLTextAreaElement>(null);
	const doing = useDoing();
	const [base, setBase] = useState(now), [text, setText] = useState(now.text), [reason, setReason] = useState(""), [own, setOwn] = useState(0);
	const [checked, setChecked] = useState<Checked | null>(null), [dry, setDry] = useState<DryRun | null>(null), [other, setOther] = useState<Rules | null>(null);
	const edited = text !== base.text, mistakes = checked?.errors ?? [];
	const names = useMemo(() => namesOf(detail, [text, ...history.slice(0, 5).map((h) => h.text)]), [detail, text, history]);
	useEffect(() => {
		if (text === base.text && now.version > base.version) { // nothing is lost
			setBase(now);
			setText(now.text);
		}
	}, [now]);
	useEffect(() => {
		if (detail.service.rules > now.version) again(); // another user has changed them
	}, [detail.service.rules]);
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
		setOwn(v.version);
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
				<div className={why ? "" : "sides rulesides"}>
					<div>
						<Editor area={area} value={text} set={setText} readOnly={Boolean(why)} schema={schema.data} names={names} wrong={mistakes.flatMap((m) => m.line ?? [])} />
						<Check of={checked} go={(line) => area.current && goTo(area.current, line)} />
						{why ? null : (
							<div className="row">
								<Reason value={reason} set={setReason} />
								<button type="button" disabled={!edited || doing.busy} onClick={test}>{t.dryRun}</button>
								<button type="button" disabled={!edited || doing.busy} onClick={() => setText(base.text)}>{t.discard}</button>
								<button type="button" className="main" disabled={!edited || doing.busy || checked?.ok === false} onClick={() => apply(base.version)}>{t.apply}</button>
							</div>
						)}
						<Outcome of={doing} />
						{edited && !other ? <><h3>{t.difference}</h3><Diff before={base.text} after={text} /></> : null}
					</div>
					{why ? null : schema.data ? <RuleForm text={text} set={setText} schema={schema.data} names={names} mistakes={mistakes} /> : <Wait error={schema.error} again={schema.again} />}
				</div>
			</Section>
			<Effect detail={detail} seek={own} />
			{other ? (
				<Section title={t.conflict(other.version)}>
					<p className="note">{t.conflictHint}</p>
					<div className="sides">
						<div><h3>{t.theirs}</h3><Diff before={base.text} after={other.text} /></div>
						<div><h3>{t.yours}</h3><Diff before={base.text} after={text} /></div>
					</div>
					<div className="row">
						<button type="button" onClick={() => { setBase(other); setText(other.text); setOther(null); }}>{t.takeTheirs}</button>
						<button type="button" onClick={() => { setBase(other); setOther(null); doing.clear(); }}>{t.editOnTop}</button>
					</div>
				</Section>
			) : null}
			{dry ? <DryRunResult of={dry} /> : null}
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

function Check({ of, go }: { of: Checked | null; go: (line: number) => void }) {
	const t = useText();
	return (
		<div className="check" role="status">
			{of ? of.ok ? <p className="good"><Icon name="good" />{of.summary}</p> : (
				<ul className="plain bad">{of.errors.map((e, i) => <li key={i}><Icon name="bad" />{e.line ? <button type="button" className="small" onClick={() => go(e.line ?? 1)}>{t.line} {e.line}</button> : null} {e.path ? `${e.path}: ` : ""}{e.message}</li>)}</ul>
			) : null}
			{of?.ok ? <Effects list={of.effects} /> : null}
		</div>
	);
}

export function Diff({ before, after }: { before: string; after: string }) {
	const t = useText();
	const list = diff(before, after);
	if (list.every((l) => l.sign === " ")) return <p className="dim">{t.noDifference}</p>;
	return <pre className="diff" tabIndex={0} aria-label={t.difference}>{list.map((l, i) => <span key={i} className={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : ""}>{l.sign} {l.text}{"\n"}</span>)}</pre>;
}
