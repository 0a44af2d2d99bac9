// What a change of rules has changed: the calls of groups of instances before it and since, in place, with the way back.
import { useEffect, useRef, useState } from "react";
import { type EffectFigures, type EffectGroup, type Effects, type RulesChange, type ServiceDetail, query } from "../api";
import { Charts } from "../charts/charts";
import { clock, percent, rate, span } from "../format";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import type { Text } from "../text/en";
import { Icon, Section } from "../ui";
import { Field, Outcome, useDoing, useMay } from "./common";

interface Props {
	detail: ServiceDetail;
	by?: string; // how instances are grouped at first
	always?: boolean; // the calls of the last minute are shown if no change is known
	seek?: number; // version that is brought into sight when it is shown
}

export function Effect({ detail, by = "", always = false, seek = 0 }: Props) {
	const t = useText();
	const why = useMay(), doing = useDoing(), box = useRef<HTMLDivElement>(null), sought = useRef(0);
	const service = detail.service.name;
	const [version, setVersion] = useState(0), [group, setGroup] = useState(""); // 0: the last one
	const { data, again } = useApi<Effects>(`services/${encodeURIComponent(service)}/effect` + query({ version: version || undefined, by: group || by }), true, "effect" + service);
	const shown = data?.shown, known = shown !== undefined && shown !== null && Boolean(shown.time);
	useEffect(() => {
		if (!seek || sought.current === seek || shown?.version !== seek) return;
		sought.current = seek;
		box.current?.scrollIntoView({ block: "nearest" });
	}, [seek, shown?.version]);
	if (!shown || !(known || always)) return null;
	const present = shown.version === detail.service.rules, all = shown.groups[0];
	const back = () => doing.run(async () => {
		const next = await change<{ version: number }>("POST", `rules/${encodeURIComponent(service)}/restore`, { version: shown.former, on: shown.version });
		setVersion(0);
		again();
		return t.applied(next.version);
	});
	const seconds = (f: EffectFigures) => Math.round(f.span / 1e9);
	return (
		<div ref={box} className="effect">
			<Section title={known ? t.effectOf(shown.version) : t.lastMinuteBy} aside={known ? <Author of={shown} /> : null}>
				<div className="row">
					{known && !why && present ? <button type="button" className="back" disabled={doing.busy} onClick={back}><Icon name="changes" /> {t.returnTo(shown.former)}</button> : null}
					{known && !present ? <p className="note">{t.returnedOver}</p> : null}
					<Field label={t.groupedBy}><select value={group || shown.by} onChange={(e) => setGroup(e.target.value)}>{groupings(detail, by, t).map(([id, name]) => <option key={id} value={id}>{name}</option>)}</select></Field>
					{data.changes.length > 1 ? <Field label={t.effectOfWhich}><select value={shown.version} onChange={(e) => setVersion(e.target.value === String(data.changes[0].version) ? 0 : Number(e.target.value))}>{data.changes.map((c) => <option key={c.version} value={c.version}>{t.rulesVersion(c.version)}, {clock(c.time)}</option>)}</select></Field> : null}
				</div>
				<Outcome of={doing} />
				<Compared groups={shown.groups} callers={shown.callers} alone={!known} by={shown.by} />
				{shown.more ? <p className="more">{t.andMore(shown.more)}</p> : null}
				{known ? <p className="note">{!all.since.known ? t.effectWaits : all.before.known ? t.effectSpans(seconds(all.before), seconds(all.since)) : t.effectNoBefore(seconds(all.since))} {shown.ended ? t.effectEnded(clock(shown.ended)) : ""}</p> : null}
				{known ? <Charts of={{ service }} changes={detail.changes} mark={{ time: shown.time, text: t.rulesVersion(shown.version), before: all.before.span / 1e6 }} /> : null}
			</Section>
		</div>
	);
}

const Author = ({ of }: { of: RulesChange }) => <span className="dim">{of.author ? `${of.author}, ` : ""}{clock(of.time)}{of.comment ? `: ${of.comment}` : ""}</span>;

// groupings are how instances can be grouped, with their names.
function groupings(detail: ServiceDetail, by: string, t: Text): [string, string][] {
	const tags = [...new Set(detail.tags.map((tag) => "tag:" + tag.slice(0, tag.indexOf("="))))];
	if (by.startsWith("tag:") && !tags.includes(by)) tags.push(by);
	return [["version", t.version], ["zone", t.zone], ["instance", t.instance], ...tags.map((tag): [string, string] => [tag, tag.slice(4)])];
}

// Compared is the table of the groups.
function Compared({ groups, callers, alone, by }: { groups: EffectGroup[]; callers: EffectGroup; alone: boolean; by: string }) {
	const t = useText();
	const [all, ...rest] = groups;
	const share = (g: EffectGroup, of: "before" | "since") => (all[of].rate ? g[of].rate / all[of].rate : 0);
	const failed = (f: EffectFigures) => (f.rate ? f.failed / f.rate : 0);
	const row = (g: EffectGroup, name: string, total = "") => (
		<tr key={total + g.name} className={total && "total"}>
			<th scope="row">{name}</th><td className="n">{total === "callers" ? "" : g.instances}</td>
			<Cell g={g} alone={alone} value={(f) => f.rate} text={rate} />
			{total === "callers" ? <td /> : <Cell g={g} alone={alone} value={(_, of) => share(g, of)} text={percent} />}
			<Cell g={g} alone={alone} value={failed} text={percent} judge={(a, b) => (Math.abs(b - a) < 0.005 ? 0 : b - a)} />
			<Cell g={g} alone={alone} value={(f) => f.p50} text={span} judge={(a, b) => distance(a, b)} />
			<Cell g={g} alone={alone} value={(f) => f.p99} text={span} judge={(a, b) => distance(a, b)} />
		</tr>
	);
	return (
		<div className="scroll live" tabIndex={0} role="region" aria-label={t.effectTable}>
			<table className="compared">
				<thead><tr><th scope="col">{t.group}</th><th scope="col" className="n">{t.instances}</th><th scope="col" className="n">{t.callsPerSecond}</th><th scope="col" className="n">{t.share}</th><th scope="col" className="n">{t.failedCalls}</th><th scope="col" className="n">p50</th><th scope="col" className="n">p99</th></tr></thead>
				<tbody>
					{callers.before.known || callers.since.known ? row(callers, t.asCallersSee, "callers") : null}
					{row(all, t.allTogether, "all")}
					{rest.map((g) => row(g, (by === "version" || by === "zone") && g.name ? `${t[by]} ${g.name}` : g.name || t.withoutName))}
				</tbody>
			</table>
		</div>
	);
}

// distance is above 0 if a duration is larger than before by more than the buckets of histograms, and below 0 if smaller.
const distance = (before: number, since: number): number => (!before || !since || Math.abs(Math.log2(since / before)) < 0.3 ? 0 : since - before);

interface CellProps {
	g: EffectGroup;
	alone: boolean; // there is nothing before
	value: (f: EffectFigures, of: "before" | "since") => number;
	text: (x: number) => string;
	judge?: (before: number, since: number) => number; // above 0: worse
}

function Cell({ g, alone, value, text, judge }: CellProps) {
	const t = useText();
	const show = (of: "before" | "since") => (g[of].known ? text(value(g[of], of)) : "–"), now = show("since");
	if (alone) return <td className="n">{now}</td>;
	const before = show("before"), verdict = judge && g.before.known && g.since.known && g.since.rate > 0 && g.before.rate > 0 ? judge(value(g.before, "before"), value(g.since, "since")) : 0;
	return (
		<td className="n" title={t.wasThen(before, now)}>
			<span className="dim">{before}</span> <span aria-hidden="true">→</span> <strong className={verdict > 0 ? "bad" : verdict < 0 ? "good" : undefined}>{now}{verdict ? <><span aria-hidden="true"> {verdict > 0 ? "▲" : "▼"}</span><span className="unseen"> {verdict > 0 ? t.worse : t.better}</span></> : null}</strong>
		</td>
	);
}
