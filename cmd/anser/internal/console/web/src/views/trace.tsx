// A trace as a waterfall: what began when, and how long it took.
import { useRef, useState } from "react";
import { type Call, query } from "../api";
import { bytes, clock, span } from "../format";
import { useText } from "../settings";
import { useApi } from "../store";
import { Mark, Section, ServiceLink, Wait } from "../ui";
import { CallTable, CostKey, steps } from "./calls";
import { type Row, rows } from "./waterfall";

const tones = { queue: "b", decode: "c", handle: "a", encode: "d" };

export function TracePage({ id }: { id: string }) {
	const t = useText();
	const answer = useApi<Call[]>("trace" + query({ id })), { error, again } = answer;
	const longest = useRef<Call[]>(undefined);
	// Processes forget calls: what a viewer looks at stays.
	if (answer.data && answer.data.length >= (longest.current?.length ?? 0)) longest.current = answer.data;
	const data = longest.current;
	return (
		<>
			<h1>{t.trace} <code>{id}</code></h1>
			<p className="note">{t.traceText}</p>
			{!data ? <Wait error={error} again={again} /> : !data.length ? <p className="empty">{t.traceNone}</p> : (
				<>
					<Section title={t.traceWaterfall} aside={<CostKey />}><Waterfall list={rows(data)} /></Section>
					<Section title={t.calls}><CallTable list={data} name="sort" /></Section>
				</>
			)}
		</>
	);
}

function Waterfall({ list }: { list: Row[] }) {
	const t = useText();
	const [open, setOpen] = useState(-1);
	const start = Math.min(...list.map((r) => r.start)), end = Math.max(...list.map((r) => r.start + r.length)), total = Math.max(end - start, 1e-6);
	return (
		<div className="waterfall">
			<div className="scale" aria-hidden="true"><span /><span className="ticks">{[0, 0.25, 0.5, 0.75, 1].map((p) => <i key={p}>{p ? span(p * total * 1e6) : "0"}</i>)}</span></div>
			<ol>
				{list.map((r, i) => {
					const c = r.call, x = (100 * (r.start - start)) / total, w = Math.max((100 * r.length) / total, 0.25);
					let at = x;
					return (
						<li key={i}>
							<button type="button" className={"span " + c.side} aria-expanded={open === i} onClick={() => setOpen(open === i ? -1 : i)}>
								<span className={"who d" + Math.min(r.depth, 8)}>
									<span className={"side " + c.side}>{t.sides[c.side]}</span>
									<span className="method">{c.method}</span> <span className="dim">{c.process}</span>
									{c.code === "ok" ? null : <Mark tone="bad">{c.code}</Mark>}
								</span>
								<span className="when">
									<svg preserveAspectRatio="none" viewBox="0 0 100 14" aria-hidden="true">
										<rect className={c.side === "client" ? "f-client" : "f-rest"} x={x} y="3" width={w} height="8" />
										{c.side === "server" ? steps.map((s) => {
											const n = (100 * (c[s] ?? 0)) / 1e6 / total, from = at;
											at += n;
											return n > 0 ? <rect key={s} className={"f-" + tones[s]} x={from} y="3" width={n} height="8" /> : null;
										}) : null}
										{c.code === "ok" ? null : <rect className="f-bad" x={x} y="11" width={w} height="2" />}
									</svg>
									<strong>{span(c.duration)}</strong>
								</span>
							</button>
							{open === i ? <Detail row={r} /> : null}
						</li>
					);
				})}
			</ol>
		</div>
	);
}

function Detail({ row: { call: c, network } }: { row: Row }) {
	const t = useText();
	const list: [string, React.ReactNode][] = [
		[t.ended, clock(c.time)], [t.service, c.service ? <ServiceLink name={c.service} /> : null], [t.instance, c.instance], [t.process, c.process], [t.peer, c.peer],
		[t.picked, c.pick ? [c.pick.reason, c.pick.balancer, c.pick.route].filter(Boolean).join(", ") : null],
		[t.requestBytes, c.request_bytes ? bytes(c.request_bytes) : null], [t.replyBytes, c.reply_bytes ? bytes(c.reply_bytes) : null],
		...steps.map((s): [string, React.ReactNode] => [{ queue: t.queue, decode: t.decode, handle: t.handler, encode: t.encode }[s], c[s] ? span(c[s]) : null]),
		[t.network, network === undefined ? null : span(network)], [t.message, c.message],
	];
	return (
		<dl className="detail">
			{list.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}
			{c.attempts?.map((a, i) => <div key={i}><dt>{t.attempts} {i + 1}</dt><dd>{[a.Address, a.Code, a.Outcome, a.Duration ? span(a.Duration) : "", a.Message].filter(Boolean).map(String).join(" · ")}</dd></div>)}
		</dl>
	);
}
