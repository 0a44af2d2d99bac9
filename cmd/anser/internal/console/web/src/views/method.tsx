// One method of a service.
import type { MethodDetail } from "../api";
import { Charts } from "../charts/charts";
import { percent, rate, span } from "../format";
import { href } from "../route";
import { useText } from "../settings";
import { useApi } from "../store";
import { type Column, Mark, Section, Table, Tiles, Wait, useRates } from "../ui";
import { CallTable, Costs, CostKey } from "./calls";

export function MethodPage({ service, method }: { service: string; method: string }) {
	const t = useText();
	const { data: d, error, again } = useApi<MethodDetail>(`services/${encodeURIComponent(service)}/methods/${encodeURIComponent(method)}`);
	const rates = useRates<MethodDetail["instances"][number]>();
	const title = <h1><a href={href(["services", service])}>{service}</a> / {method}</h1>;
	if (!d) return <>{title}<Wait error={error} again={again} /></>;
	const m = d.method;
	const columns: Column<MethodDetail["instances"][number]>[] = [{ id: "name", title: t.instance, cell: (i) => i.instance, sort: (i) => i.instance }, ...rates];
	return (
		<>
			<div className="head">{title}<span className="dim">{[m.stream ? t.stream : m.oneway ? t.oneway : t.unary, m.idempotent ? t.idempotent : "", t.runsAs[m.runs ?? ""] ?? ""].filter(Boolean).join(", ")}</span></div>
			<div className="live">
				<Tiles list={[
					{ name: t.callsPerSecond, value: rate(m.rate) }, { name: t.failedPerSecond, value: rate(m.failed), tone: m.failed > 0 ? "bad" : "", note: m.failed > 0 ? percent(m.failed / m.rate) : undefined },
					{ name: "p50", value: span(m.p50) }, { name: "p90", value: span(m.p90) }, { name: "p99", value: span(m.p99) }, { name: "p99.9", value: span(m.p999) },
					{ name: t.running, value: m.running }, { name: t.waiting, value: m.waiting },
				]} />
			</div>
			<Charts of={{ service, method }} changes={[]} />
			<div className="live">
				<Section title={t.averageCall}>
					<div className="average"><Costs c={{ duration: m.queue + m.decode + m.handle + m.encode, queue: m.queue, decode: m.decode, handle: m.handle, encode: m.encode }} /></div>
					<CostKey times={{ queue: m.queue, decode: m.decode, handle: m.handle, encode: m.encode }} />
				</Section>
				<div className="halves">
					<Section title={t.results}>
						<Table name="codes" label={t.results} first="-rate" rows={m.codes} rowKey={(c) => c.code} columns={[
							{ id: "code", title: t.code, cell: (c) => <Mark tone={c.code === "ok" ? "good" : "bad"}>{c.code}</Mark>, sort: (c) => c.code },
							{ id: "rate", title: t.callsPerSecond, kind: "n", cell: (c) => rate(c.rate), sort: (c) => c.rate },
						]} />
					</Section>
					<Section title={t.attemptsOfCallers}>
						<Table name="attempts" label={t.attemptsOfCallers} rows={d.attempts} rowKey={(a) => String(a.attempts)} columns={[
							{ id: "n", title: t.attempts, cell: (a) => (a.attempts > 1 ? t.moreThanOne : t.one) },
							{ id: "rate", title: t.callsPerSecond, kind: "n", cell: (a) => rate(a.rate) },
						]} />
					</Section>
				</div>
				<Section title={t.instances}><Table name="instances" label={t.instances} first="name" columns={columns} rows={d.instances} rowKey={(i) => i.instance} rowClass={(i) => (i.stale ? "stale" : undefined)} /></Section>
			</div>
			<Section title={t.latestFailures}><CallTable list={d.failures} name="failed" label={t.latestFailures} most={20} /></Section>
			<Section title={t.latestSlow}><CallTable list={d.slow} name="slow" label={t.latestSlow} most={20} /></Section>
		</>
	);
}
