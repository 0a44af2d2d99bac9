// One service: figures over time, and its parts.
import { Suspense, lazy, useState } from "react";
import type { Edge, Instance, Method, ServiceDetail } from "../api";
import { Charts } from "../charts/charts";
import { useMay } from "../operate/common";
import { clock, percent, rate, span } from "../format";
import { href, useRoute } from "../route";
import { useText } from "../settings";
import { useApi } from "../store";
import { LiveTable } from "../table";
import { Changes, type Column, Icon, Mark, Section, ServiceLink, ServiceState, Tabs, Tiles, Wait, useRates } from "../ui";
import { CallTable, useCalls } from "./calls";
import { InstanceTable } from "./instancetable";

const RulesTab = lazy(() => import("../operate/rules")), CanaryTab = lazy(() => import("../operate/canary")), TryTab = lazy(() => import("../operate/try")), InstanceDialog = lazy(() => import("../operate/instance"));

export function ServicePage({ name }: { name: string }) {
	const t = useText();
	const { query } = useRoute();
	const { data: d, error, again } = useApi<ServiceDetail>("services/" + encodeURIComponent(name));
	if (!d) return <><h1>{name}</h1><Wait error={error} again={again} /></>;
	const s = d.service, tab = query.get("tab") ?? "";
	return (
		<>
			<div className="head"><h1>{name}</h1><ServiceState s={s} />{d.folders.map((f) => <a key={f} className="button small" href={href(["files", name], { name: f })}><Icon name="files" />{t.filesIn(f)}</a>)}</div>
			{s.stale ? <p className="bad">{t.registryStale(clock(s.stale))}</p> : null}
			{d.rules.trouble ? <p className="bad">{d.rules.trouble}</p> : null}
			{d.contracts.length > 1 ? <p className="warn"><Mark tone="warn">{t.contractsDiffer}</Mark></p> : null}
			<div className="live">
				<Tiles list={[
					{ name: t.callsPerSecond, value: rate(s.rate) },
					{ name: t.failedPerSecond, value: rate(s.failed), tone: s.failed > 0 ? "bad" : "", note: s.failed > 0 ? percent(s.failed / s.rate) : undefined },
					{ name: "p50", value: span(s.p50) }, { name: "p99", value: span(s.p99) },
					{ name: t.inFlight, value: s.in_flight }, { name: t.instances, value: s.instances },
					{ name: t.rules, value: s.rules ? t.rulesVersion(s.rules) : t.noRules },
				]} />
			</div>
			<Tabs name="tab" label={t.parts} list={[["", t.overview], ["instances", t.instances], ["rules", t.rules], ["canary", t.canaryAndFaults], ["try", t.tryMethod], ["calls", t.calls], ["changes", t.changes]]} />
			<Suspense fallback={<Wait />}>{tabOf(tab, d)}</Suspense>
		</>
	);
}

function tabOf(tab: string, d: ServiceDetail) {
	switch (tab) {
		case "instances": return <Section title=""><Instances service={d.service.name} /></Section>;
		case "rules": return <RulesTab detail={d} />;
		case "canary": return <CanaryTab detail={d} />;
		case "try": return <TryTab detail={d} />;
		case "calls": return <ServiceCalls name={d.service.name} />;
		case "changes": return <Section title=""><Changes list={d.changes} /></Section>;
	}
	return <Parts d={d} />;
}

function Parts({ d }: { d: ServiceDetail }) {
	const t = useText();
	return (
		<>
			<Charts of={{ service: d.service.name }} changes={d.changes} />
			<div className="live">
				<Section title={t.methods}><Methods service={d.service.name} list={d.methods} /></Section>
				<Section title={t.instances}><Instances service={d.service.name} /></Section>
				<div className="halves">
					<Section title={t.calledBy}><Edges title={t.caller} name="in" list={d.callers} of={(e) => e.from} none={t.nobodyCalls} /></Section>
					<Section title={t.callsTo}><Edges title={t.service} name="out" list={d.callees} of={(e) => e.to} none={t.callsNone} /></Section>
				</div>
				<div className="halves">
					<Section title={t.latestChanges}><Changes list={d.changes} most={10} /></Section>
					{d.contracts.length ? (
						<Section title={t.contracts}>
							<ul className="plain">{d.contracts.map((c) => <li key={c.fingerprint}><code>{c.fingerprint}</code> {t.contractText(c.instances)}</li>)}</ul>
						</Section>
					) : null}
				</div>
			</div>
		</>
	);
}

function Methods({ service, list }: { service: string; list: Method[] }) {
	const t = useText();
	const rates = useRates<Method>();
	const columns: Column<Method>[] = [
		{ id: "name", title: t.method, cell: (m) => <a href={href(["services", service, m.name])}>{m.name}</a>, sort: (m) => m.name },
		...rates,
		{ id: "queue", title: t.queue, kind: "n", cell: (m) => span(m.queue), sort: (m) => m.queue },
		{ id: "handler", title: t.handler, kind: "n", cell: (m) => span(m.handle), sort: (m) => m.handle },
		{ id: "refused", title: t.refusedPerSecond, kind: "n", cell: (m) => rate(m.refused), sort: (m) => m.refused },
		{ id: "runs", title: t.runs, cell: (m) => t.runsAs[m.runs ?? ""] ?? "" },
		{ id: "kind", title: t.kind, cell: (m) => [m.stream ? t.stream : m.oneway ? t.oneway : t.unary, m.idempotent ? t.idempotent : ""].filter(Boolean).join(", ") },
	];
	return <LiveTable name="methods" label={t.methods} first="name" columns={columns} rows={list} rowKey={(m) => m.name} stateOf={(m) => String(m.failed > 0)} none={t.noMethods} />;
}

function Instances({ service }: { service: string }) {
	const t = useText();
	const { query } = useRoute();
	const why = useMay(), [changing, setChanging] = useState<Instance | null>(null);
	const operate = { title: t.operate, cell: (i: Instance) => <button type="button" className="small" onClick={() => setChanging(i)} aria-label={`${t.change} ${i.id}`}>{t.change}</button> };
	return (
		<>
			{changing ? <Suspense fallback={null}><InstanceDialog of={changing} close={() => setChanging(null)} /></Suspense> : null}
			<InstanceTable name="instances" label={t.instances} service={service} chosen={query.get("instance") ?? undefined} operate={why ? undefined : operate} first="id" />
		</>
	);
}

function Edges({ title, name, list, of, none }: { title: string; name: string; list: Edge[]; of: (e: Edge) => string; none: string }) {
	const t = useText();
	const rates = useRates<Edge>();
	const columns: Column<Edge>[] = [
		{ id: "name", title, cell: (e) => <ServiceLink name={of(e)} />, sort: of },
		...rates,
		{ id: "retried", title: t.retriedPerSecond, kind: "n", cell: (e) => rate(e.retried), sort: (e) => e.retried },
	];
	return <LiveTable name={name} label={title} first="name" columns={columns} rows={list} rowKey={of} stateOf={(e) => String(e.failed > 0)} none={none} />;
}

function ServiceCalls({ name }: { name: string }) {
	const t = useText();
	const failed = useCalls({ service: name, kind: "failed" }), slow = useCalls({ service: name, kind: "slow" });
	return (
		<>
			<Section title={t.latestFailures}><CallTable list={failed.data} error={failed.error} name="failed" label={t.latestFailures} /></Section>
			<Section title={t.latestSlow}><CallTable list={slow.data} error={slow.error} name="slow" label={t.latestSlow} /></Section>
		</>
	);
}
