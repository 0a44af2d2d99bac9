// The open connections of a service, and the limits of its methods.
import { type Conn, type Method, type ServiceDetail, query } from "../api";
import { bytes, rate, span } from "../format";
import { href, setQuery, useRoute } from "../route";
import { useText } from "../settings";
import { useApi, useStore } from "../store";
import { type Column, Mark, Section, Table, Wait } from "../ui";

export function Connections() {
	const t = useText();
	const { query: q } = useRoute();
	const services = useStore((s) => s.services);
	const names = [...services.values()].filter((s) => !s.external).map((s) => s.name).sort();
	const service = q.get("service") ?? names[0] ?? "";
	const conns = useApi<Conn[]>(service ? "connections" + query({ service }) : null);
	const detail = useApi<ServiceDetail>(service ? "services/" + encodeURIComponent(service) : null);
	const columns: Column<Conn>[] = [
		{ id: "process", title: t.process, cell: (c) => c.process, sort: (c) => c.process },
		{ id: "side", title: t.side, cell: (c) => t.sides[c.side], sort: (c) => c.side },
		{ id: "peer", title: t.peer, cell: (c) => c.peer, sort: (c) => c.peer },
		{ id: "protocol", title: t.protocol, cell: (c) => c.protocol ?? "", sort: (c) => c.protocol ?? "" },
		{ id: "tls", title: "TLS", cell: (c) => c.tls || "–", sort: (c) => c.tls ?? "" },
		{ id: "identity", title: t.identity, cell: (c) => c.identity ?? "", sort: (c) => c.identity ?? "" },
		{ id: "flight", title: t.inFlight, kind: "n", cell: (c) => c.in_flight, sort: (c) => c.in_flight },
		{ id: "streams", title: t.streams, kind: "n", cell: (c) => c.streams ?? 0, sort: (c) => c.streams ?? 0 },
		{ id: "sent", title: t.sent, kind: "n", cell: (c) => bytes(c.sent), sort: (c) => c.sent },
		{ id: "received", title: t.received, kind: "n", cell: (c) => bytes(c.received), sort: (c) => c.received },
		{ id: "quiet", title: t.quietFor, kind: "n", cell: (c) => span(c.quiet), sort: (c) => c.quiet },
		{ id: "state", title: t.state, cell: (c) => (c.draining ? <Mark tone="warn">{t.draining}</Mark> : "") },
	];
	if (!service) return <><h1>{t.connections}</h1><p className="empty">{t.noServices}</p></>;
	return (
		<>
			<div className="head">
				<h1>{t.connections}</h1>
				<select aria-label={t.chooseService} value={service} onChange={(e) => setQuery({ service: e.target.value })}>
					{names.map((n) => <option key={n} value={n}>{n}</option>)}
				</select>
			</div>
			<div className="live">
				<Section title={t.limits}>{detail.data ? <Limits service={service} list={detail.data.methods} /> : <Wait error={detail.error} />}</Section>
				<Section title={t.connections}>
					{conns.data ? <Table name="sort" label={t.connections} columns={columns} rows={conns.data} rowKey={(c, i) => c.process + c.side + c.peer + (c.local ?? "") + i} none={t.noConnections} most={300} /> : <Wait error={conns.error} again={conns.again} />}
				</Section>
			</div>
		</>
	);
}

function Limits({ service, list }: { service: string; list: Method[] }) {
	const t = useText();
	const limited = list.filter((m) => m.limit || m.max_in_flight || m.waiting || m.refused > 0);
	return (
		<>
			<p className="note">{t.limitsHint}</p>
			<Table name="limits" label={t.limits} first="name" rows={limited} rowKey={(m) => m.name} none={t.noLimits} columns={[
				{ id: "name", title: t.method, cell: (m) => <a href={href(["services", service, m.name])}>{m.name}</a>, sort: (m) => m.name },
				{ id: "limit", title: t.limit, kind: "n", cell: (m) => m.limit || (m.max_in_flight ? `${m.max_in_flight} ${t.perInstance}` : "–"), sort: (m) => m.limit ?? m.max_in_flight ?? 0 },
				{ id: "running", title: t.running, kind: "n", cell: (m) => m.running, sort: (m) => m.running },
				{ id: "waiting", title: t.waiting, kind: "n", cell: (m) => m.waiting, sort: (m) => m.waiting },
				{ id: "refused", title: t.refusedPerSecond, kind: "n", cell: (m) => rate(m.refused), sort: (m) => m.refused },
			]} />
		</>
	);
}
