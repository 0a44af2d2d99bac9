// What the map says about the service that is chosen.
import type { Edge } from "../api";
import { isProcess, party, rate, span } from "../format";
import { href, setQuery } from "../route";
import { useText } from "../settings";
import { useStore } from "../store";
import { Failed, Icon, ServiceState, Spark } from "../ui";

function Calls({ list, of, none }: { list: Edge[]; of: (e: Edge) => string; none: string }) {
	const t = useText();
	if (!list.length) return <p className="dim">{none}</p>;
	return (
		<table className="small">
			<thead><tr><th scope="col">{t.service}</th><th scope="col" className="n">{t.callsPerSecond}</th><th scope="col" className="n">{t.failedPerSecond}</th><th scope="col" className="n">p99</th></tr></thead>
			<tbody>
				{list.map((e) => (
					<tr key={of(e)}>
						<td><a href={href([], { focus: of(e) })} title={of(e)}>{party(of(e))}</a></td>
						<td className="n">{rate(e.rate)}</td><td className="n"><Failed of={e} /></td><td className="n">{span(e.p99)}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

export function Panel({ name }: { name: string }) {
	const t = useText();
	const service = useStore((s) => s.services.get(name)), edges = useStore((s) => s.edges);
	const callers = [...edges.values()].filter((e) => e.to === name).sort((a, b) => b.rate - a.rate);
	const callees = [...edges.values()].filter((e) => e.from === name).sort((a, b) => b.rate - a.rate);
	return (
		<aside className="panel" aria-label={party(name)}>
			<div className="head">
				<h3>{party(name)}</h3>
				<button type="button" className="quiet" aria-label={t.close} title={t.close} onClick={() => setQuery({ focus: undefined })}><Icon name="bad" /></button>
			</div>
			{service ? (
				<>
					<ServiceState s={service} />
					<p className="big">{rate(service.rate)}<small>/s</small> <Spark name={name} /></p>
					<p className="dim">{t.failedPerSecond} <Failed of={service} /> · p50 {span(service.p50)} · p99 {span(service.p99)}</p>
					<p><a className="button" href={href(["services", name])}>{t.openService}</a></p>
				</>
			) : null}
			{isProcess(name) ? null : <><h4>{t.calledBy}</h4><Calls list={callers} of={(e) => e.from} none={t.nobodyCalls} /></>}
			<h4>{t.callsTo}</h4>
			<Calls list={callees} of={(e) => e.to} none={t.callsNone} />
		</aside>
	);
}
