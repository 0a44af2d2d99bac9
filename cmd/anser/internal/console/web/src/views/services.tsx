// All services in one table.
import type { Service } from "../api";
import { useRoute } from "../route";
import { useText } from "../settings";
import { useStore } from "../store";
import { LiveTable } from "../table";
import { type Column, Filter, ServiceLink, ServiceState, Spark, useRates } from "../ui";

export function Services() {
	const t = useText();
	const { query } = useRoute();
	const services = useStore((s) => s.services);
	const wanted = (query.get("q") ?? "").toLowerCase();
	const list = [...services.values()].filter((s) => s.name.toLowerCase().includes(wanted));
	const rates = useRates<Service>();
	const columns: Column<Service>[] = [
		{ id: "name", title: t.service, cell: (s) => <ServiceLink name={s.name} />, sort: (s) => s.name },
		{ id: "state", title: t.state, kind: "state", cell: (s) => <ServiceState s={s} />, sort: (s) => (s.stale ? 0 : s.ejected + s.down ? 1 : s.drained ? 2 : 3) },
		{ id: "trail", title: t.lastMinute, cell: (s) => <Spark name={s.name} /> },
		...rates,
		{ id: "flight", title: t.inFlight, kind: "n", cell: (s) => s.in_flight, sort: (s) => s.in_flight },
		{ id: "instances", title: t.instances, kind: "n", cell: (s) => s.instances, sort: (s) => s.instances },
		{ id: "zones", title: t.zones, cell: (s) => s.zones.join(", "), sort: (s) => s.zones.join() },
		{ id: "versions", title: t.versions, cell: (s) => s.versions.join(", "), sort: (s) => s.versions.join() },
		{ id: "rules", title: t.rules, kind: "n", cell: (s) => s.rules || "–", sort: (s) => s.rules },
	];
	return (
		<>
			<div className="head"><h1>{t.services}</h1><Filter label={t.filter} /><span className="dim">{t.of(list.length, services.size)}</span></div>
			<div className="live"><LiveTable name="sort" label={t.services} first="name" columns={columns} rows={list} rowKey={(s) => s.name} rowClass={(s) => (s.stale ? "stale" : undefined)} stateOf={(s) => [s.stale, s.ejected, s.down, s.drained, s.external, s.failed > 0, s.rules].join()} none={services.size ? t.none : t.noServices} /></div>
		</>
	);
}
