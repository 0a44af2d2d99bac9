// Recorded calls, and calls as they happen.
import { useEffect, useState } from "react";
import { type ApiError, type Call, query } from "../api";
import { clock, span } from "../format";
import { href, setQuery, useRoute } from "../route";
import { useText } from "../settings";
import { type Answer, useApi, useStore } from "../store";
import { Choice, type Column, Filter, Icon, Mark, ServiceLink, Table, Wait } from "../ui";

export const useCalls = (of: { service?: string; method?: string; kind?: string }): Answer<Call[]> => useApi<Call[]>("calls" + query(of));

interface Cost {
	duration: number;
	queue?: number;
	decode?: number;
	handle?: number;
	encode?: number;
}

export const steps = ["queue", "decode", "handle", "encode"] as const;
const tones = { queue: "b", decode: "c", handle: "a", encode: "d" };

// Costs is a bar of where the time of a call went.
export function Costs({ c }: { c: Cost }) {
	const t = useText();
	const names = { queue: t.queue, decode: t.decode, handle: t.handler, encode: t.encode };
	const total = Math.max(c.duration, steps.reduce((n, s) => n + (c[s] ?? 0), 0), 1);
	let x = 0;
	const text = steps.map((s) => `${names[s]} ${span(c[s])}`).join(", ");
	return (
		<svg className="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={text}>
			<title>{text}</title>
			<rect className="f-rest" width="100" height="10" />
			{steps.map((s) => {
				const w = (100 * (c[s] ?? 0)) / total, at = x;
				x += w;
				return w > 0 ? <rect key={s} className={"f-" + tones[s]} x={at} width={w} height="10" /> : null;
			})}
		</svg>
	);
}

export function CostKey({ times }: { times?: Record<(typeof steps)[number], number> }) {
	const t = useText();
	const names = { queue: t.queue, decode: t.decode, handle: t.handler, encode: t.encode };
	return <p className="keys">{steps.map((s) => <span key={s} className="key"><i className={"dot c-" + tones[s]} />{names[s]}{times ? <strong> {span(times[s])}</strong> : null}</span>)}{times ? null : <span className="key"><i className="dot c-rest" />{t.rest}</span>}</p>;
}

export function useCallColumns(): Column<Call>[] {
	const t = useText();
	return [
		{ id: "time", title: t.ended, cell: (c) => clock(c.time), sort: (c) => c.time },
		{ id: "service", title: t.service, cell: (c) => (c.service ? <ServiceLink name={c.service} /> : ""), sort: (c) => c.service ?? "" },
		{ id: "method", title: t.method, cell: (c) => (c.service ? <a href={href(["services", c.service, c.method])}>{c.method}</a> : c.method), sort: (c) => c.method },
		{ id: "result", title: t.result, cell: (c) => <span title={c.message}><Mark tone={c.code === "ok" ? "good" : "bad"}>{c.code}</Mark></span>, sort: (c) => c.code },
		{ id: "duration", title: t.duration, kind: "n", cell: (c) => span(c.duration), sort: (c) => c.duration },
		{ id: "where", title: t.whereTime, cell: (c) => (c.side === "server" ? <Costs c={c} /> : "") },
		{ id: "side", title: t.side, cell: (c) => t.sides[c.side], sort: (c) => c.side },
		{ id: "process", title: t.process, cell: (c) => c.process, sort: (c) => c.process },
		{ id: "attempts", title: t.attempts, kind: "n", cell: (c) => c.attempts?.length ?? "", sort: (c) => c.attempts?.length ?? 0 },
		{ id: "peer", title: t.peer, cell: (c) => c.peer ?? "", sort: (c) => c.peer ?? "" },
		{ id: "trace", title: t.trace, cell: (c) => (c.trace_id ? <a href={href(["trace", c.trace_id])} title={t.openTrace}><code>{c.trace_id.slice(0, 8)}</code></a> : "") },
		{ id: "message", title: t.message, kind: "text", cell: (c) => c.message ?? "" },
	];
}

export function CallTable({ list, error, name, label, most = 50 }: { list?: Call[]; error?: ApiError; name: string; label?: string; most?: number }) {
	const t = useText();
	const columns = useCallColumns();
	if (!list) return <Wait error={error} />;
	return <Table name={name} label={label ?? t.calls} columns={columns} rows={list} rowKey={(c, i) => c.time + c.process + (c.span_id ?? i)} none={t.noCalls} most={most} />;
}

export function Calls() {
	const t = useText();
	const { query: q } = useRoute();
	const service = q.get("service") ?? "", kind = q.get("kind") ?? "", method = (q.get("q") ?? "").toLowerCase(), live = q.get("live") === "1";
	const { data, error } = useCalls({ service, kind });
	const names = useStore((s) => s.services);
	return (
		<>
			<div className="head">
				<h1>{t.calls}</h1>
				<Choice name="kind" label={t.callKind} list={[["", t.all], ["failed", t.failedCalls], ["slow", t.slowCalls]]} />
				<select aria-label={t.chooseService} value={service} onChange={(e) => setQuery({ service: e.target.value, live: e.target.value ? q.get("live") ?? undefined : undefined })}>
					<option value="">{t.anyService}</option>
					{[...names.keys()].sort().map((n) => <option key={n} value={n}>{n}</option>)}
				</select>
				<Filter label={t.method} />
				{service ? <button type="button" onClick={() => setQuery({ live: live ? undefined : "1" })}><Icon name={live ? "stop" : "play"} />{live ? t.stopFollowing : t.followCalls}</button> : null}
				<TraceForm />
			</div>
			{live && service ? <Live service={service} method={method} /> : (
				<><CostKey /><div className="live"><CallTable list={data?.filter((c) => c.method.toLowerCase().includes(method))} error={error} name="sort" most={100} /></div></>
			)}
		</>
	);
}

function TraceForm() {
	const t = useText();
	const [id, setID] = useState("");
	return (
		<form className="inline" onSubmit={(e) => {
			e.preventDefault();
			if (id.trim()) location.hash = href(["trace", id.trim()]);
		}}>
			<input aria-label={t.traceID} placeholder={t.traceID} value={id} onChange={(e) => setID(e.target.value)} size={20} />
			<button type="submit">{t.find}</button>
		</form>
	);
}

const kept = 200;

// Live shows calls as they happen, from a stream that is open while it is shown.
function Live({ service, method }: { service: string; method: string }) {
	const t = useText();
	const [list, setList] = useState<Call[]>([]);
	useEffect(() => {
		setList([]);
		let waiting: Call[] = [];
		const source = new EventSource("api/calls/live" + query({ service }));
		source.addEventListener("call", (e) => waiting.unshift(JSON.parse(e.data)));
		const show = setInterval(() => {
			if (!waiting.length) return;
			const next = waiting;
			waiting = [];
			setList((old) => [...next, ...old].slice(0, kept));
		}, 300);
		return () => {
			clearInterval(show);
			source.close();
		};
	}, [service]);
	return (
		<>
			<p className="dim" role="status"><span className="pulse" />{t.following(service)}</p>
			<CallTable list={list.filter((c) => c.method.toLowerCase().includes(method))} name="sort" most={kept} />
		</>
	);
}
