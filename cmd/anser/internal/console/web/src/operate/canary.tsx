// A canary of a service: a share of the calls for a version or a tag, which returns by itself when a bound is passed.
import { useEffect, useState } from "react";
import { type ServiceDetail, query } from "../api";
import { clock } from "../format";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Mark, Section, Wait } from "../ui";
import { Field, Outcome, Reason, Why, until, useDoing, useMay } from "./common";
import { Effect } from "./effect";
import { Faults } from "./faults";

export interface Canary {
	service: string;
	version?: string;
	tag?: string;
	share: number;
	bounds: { errors?: number; p99?: number };
	step?: { share: number; every: number; to: number };
	until?: string;
	reason?: string;
	state: "running" | "returned" | "ended";
	why?: string;
	by?: string;
	started?: string;
	changed?: string;
}

export default function CanaryTab({ detail }: { detail: ServiceDetail }) {
	const t = useText();
	const service = detail.service.name;
	const { data: all, error, again } = useApi<Canary[]>("canary");
	if (!all) return <Wait error={error} again={again} />;
	const data = all.find((c) => c.service === service);
	const running = data?.state === "running" ? data : null;
	return (
		<>
			<Section title={t.canary} aside={data ? <CanaryState c={data} /> : <span className="dim">{t.noCanary}</span>}>
				<CanaryForm key={service + (running?.started ?? "")} detail={detail} running={running} again={again} />
			</Section>
			<Effect detail={detail} by={running?.tag ? "tag:" + running.tag.split("=")[0] : running ? "version" : ""} always={running !== null} />
			<Faults detail={detail} />
		</>
	);
}

export function CanaryState({ c }: { c: Canary }) {
	const t = useText();
	return <Mark tone={c.state === "running" ? "good" : c.state === "returned" ? "bad" : "dim"}><span>{t.canaryStates[c.state]}{c.state === "running" ? `: ${c.share} % → ${c.version || c.tag}, ${t.until} ${clock(c.until)}` : c.why ? `: ${c.why}` : ""} {c.by ? <span className="dim">{c.by}, {clock(c.changed)}</span> : null}</span></Mark>;
}

function CanaryForm({ detail, running, again }: { detail: ServiceDetail; running: Canary | null; again: () => void }) {
	const t = useText();
	const why = useMay();
	const doing = useDoing();
	const targets = [...detail.service.versions.map((v) => "version " + v), ...detail.tags.map((v) => "tag " + v)];
	const at = running ? (running.version ? "version " + running.version : "tag " + running.tag) : targets.at(-1) ?? "";
	const [to, setTo] = useState(at), [share, setShare] = useState(running?.share ?? 5), [reason, setReason] = useState("");
	const [errors, setErrors] = useState(String(100 * (running ? running.bounds.errors ?? 0 : 0.01))), [p99, setP99] = useState(running?.bounds.p99 ? String(running.bounds.p99 / 1e6) : ""), [minutes, setMinutes] = useState("60");
	const [step, setStep] = useState(Boolean(running?.step)), [add, setAdd] = useState(String(running?.step?.share ?? 5)), [every, setEvery] = useState(String((running?.step?.every ?? 60e9) / 1e9)), [top, setTop] = useState(String(running?.step?.to ?? 50));
	useEffect(() => { if (running) setShare(running.share); }, [running?.share]); // by steps
	const send = () => doing.run(async () => {
		const [kind, name] = [to.slice(0, to.indexOf(" ")), to.slice(to.indexOf(" ") + 1)];
		await change("POST", "canary", {
			service: detail.service.name, [kind]: name, share, reason,
			bounds: { ...(Number(errors) ? { errors: Number(errors) / 100 } : {}), ...(Number(p99) ? { p99: Math.round(Number(p99) * 1e6) } : {}) },
			...(step ? { step: { share: Number(add), every: Math.round(Number(every) * 1e9), to: Number(top) } } : {}),
			until: until(minutes, 60),
		});
		again();
		return t.changed;
	});
	const end = () => doing.run(async () => {
		await change("DELETE", "canary/" + encodeURIComponent(detail.service.name) + query({ reason }));
		again();
		return t.changed;
	});
	if (why) return <Why text={why} />;
	if (!targets.length) return <p className="empty">{t.canaryNeeds}</p>;
	return (
		<form className="card" onSubmit={(e) => { e.preventDefault(); send(); }}>
			<p className="note">{t.canaryHint}</p>
			<div className="row">
				<Field label={t.canaryTo}><select value={to} disabled={running !== null} onChange={(e) => setTo(e.target.value)}>{targets.map((x) => <option key={x}>{x}</option>)}</select></Field>
				<label className="field slide"><span>{t.share}: <strong>{share} %</strong></span><input type="range" min={0} max={100} step={1} value={share} onChange={(e) => setShare(Number(e.target.value))} /></label>
			</div>
			<div className="row">
				<Field label={t.boundErrors}><input type="number" min={0} max={100} step="any" value={errors} onChange={(e) => setErrors(e.target.value)} /></Field>
				<Field label={t.boundP99}><input type="number" min={0} step="any" value={p99} placeholder="–" onChange={(e) => setP99(e.target.value)} /></Field>
				<Field label={t.forMinutes}><input type="number" min={1} max={1440} value={minutes} onChange={(e) => setMinutes(e.target.value)} /></Field>
				<label className="tick"><input type="checkbox" checked={step} onChange={(e) => setStep(e.target.checked)} /> {t.stepwise}</label>
				{step ? (
					<>
						<Field label={t.stepAdd}><input type="number" min={0.01} step="any" value={add} onChange={(e) => setAdd(e.target.value)} /></Field>
						<Field label={t.stepEvery}><input type="number" min={10} value={every} onChange={(e) => setEvery(e.target.value)} /></Field>
						<Field label={t.stepTo}><input type="number" min={1} max={100} value={top} onChange={(e) => setTop(e.target.value)} /></Field>
					</>
				) : null}
			</div>
			<div className="row">
				<Reason value={reason} set={setReason} />
				<button type="submit" className="main" disabled={doing.busy || !(Number(errors) || Number(p99))}>{running ? t.setShare : t.startCanary}</button>
				{running ? <button type="button" disabled={doing.busy} onClick={end}>{t.endCanary}</button> : null}
			</div>
			<Outcome of={doing} />
		</form>
	);
}

export function Canaries() {
	const t = useText();
	const { data, error, again } = useApi<Canary[]>("canary");
	return (
		<>
			<h1>{t.canaries}</h1>
			{!data ? <Wait error={error} again={again} /> : data.length === 0 ? <p className="empty">{t.noCanary} {t.canaryWhere}</p> : (
				<ul className="versions">{data.map((c) => <li key={c.service}><a href={`#/services/${encodeURIComponent(c.service)}?tab=canary`}>{c.service}</a> <CanaryState c={c} /></li>)}</ul>
			)}
		</>
	);
}
