// Faults of a service: a share of the calls is delayed or fails, until a time.
import { useState } from "react";
import { type ServiceDetail, query } from "../api";
import { clock, span } from "../format";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Mark, Section } from "../ui";
import { Field, Outcome, Reason, Why, until, useDoing, useMay } from "./common";

interface Fault {
	service: string;
	method?: string;
	share: number;
	delay?: number;
	code?: string;
	until: string;
}

const codes = ["", "unavailable", "internal", "deadline exceeded", "resource exhausted", "not found", "permission denied"];

export function Faults({ detail }: { detail: ServiceDetail }) {
	const t = useText();
	const why = useMay();
	const doing = useDoing();
	const service = detail.service.name;
	const { data, error, again } = useApi<Fault[]>("faultinjection" + query({ service }));
	const [method, setMethod] = useState(""), [share, setShare] = useState("10"), [delay, setDelay] = useState("100"), [code, setCode] = useState(""), [minutes, setMinutes] = useState("5"), [reason, setReason] = useState("");
	const send = () => doing.run(async () => {
		await change("POST", "faultinjection", {
			service, share: Number(share), reason, until: until(minutes, 5),
			...(method ? { method } : {}), ...(Number(delay) ? { delay: Math.round(Number(delay) * 1e6) } : {}), ...(code ? { code } : {}),
		});
		again();
		return t.changed;
	});
	const remove = (f: Fault) => doing.run(async () => {
		await change("DELETE", "faultinjection" + query({ service, method: f.method, reason }));
		again();
		return t.changed;
	});
	return (
		<Section title={t.faults}>
			{data?.length ? (
				<ul className="versions">
					{data.map((f) => (
						<li key={f.method ?? ""}><Mark tone="bad">{f.method || t.allMethods}: {f.share} %{f.delay ? `, +${span(f.delay)}` : ""}{f.code ? `, ${f.code}` : ""}, {t.until} {clock(f.until)}</Mark>
							{why ? null : <button type="button" disabled={doing.busy} onClick={() => remove(f)}>{t.remove}</button>}</li>
					))}
				</ul>
			) : <p className="dim">{error && !data ? error.message : t.noFaults}</p>}
			{why ? <Why text={why} /> : (
				<form className="card" onSubmit={(e) => { e.preventDefault(); send(); }}>
					<p className="note">{t.faultHint}</p>
					<div className="row">
						<Field label={t.method}><select value={method} onChange={(e) => setMethod(e.target.value)}><option value="">{t.allMethods}</option>{detail.methods.map((m) => <option key={m.name}>{m.name}</option>)}</select></Field>
						<Field label={t.sharePercent}><input type="number" min={0.01} max={100} step="any" value={share} onChange={(e) => setShare(e.target.value)} /></Field>
						<Field label={t.delayMs}><input type="number" min={0} max={60000} value={delay} onChange={(e) => setDelay(e.target.value)} /></Field>
						<Field label={t.code}><select value={code} onChange={(e) => setCode(e.target.value)}>{codes.map((c) => <option key={c} value={c}>{c || "–"}</option>)}</select></Field>
						<Field label={t.forMinutes}><input type="number" min={1} max={1440} value={minutes} onChange={(e) => setMinutes(e.target.value)} /></Field>
						<Reason value={reason} set={setReason} />
						<button type="submit" disabled={doing.busy || !(Number(delay) || code)}>{t.inject}</button>
					</div>
					<Outcome of={doing} />
				</form>
			)}
		</Section>
	);
}
