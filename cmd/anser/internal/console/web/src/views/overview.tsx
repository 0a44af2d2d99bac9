// The whole system: how it is, who calls whom, and what has changed.
import { Suspense, lazy } from "react";
import { clock, rate, span } from "../format";
import { href } from "../route";
import { useText } from "../settings";
import { useStore } from "../store";
import { toneOf } from "../tone";
import { Changes, Mark, Section, ServiceState, Tiles, Wait } from "../ui";

const CallMap = lazy(() => import("../map/map"));

export function Overview() {
	const t = useText();
	return (
		<>
			<h1 className="unseen">{t.overview}</h1>
			<Health />
			<Totals />
			<div className="two">
				<Section title={t.map}><Suspense fallback={<Wait />}><CallMap /></Suspense></Section>
				<Section title={t.latestChanges} aside={<a href={href(["changes"])}>{t.all}</a>}><Latest /></Section>
			</div>
		</>
	);
}

function Latest() {
	return <Changes list={useStore((s) => s.changes)} most={14} />;
}

// Health says in one line whether something needs a look.
function Health() {
	const t = useText();
	const services = useStore((s) => s.services), registries = useStore((s) => s.registries), processes = useStore((s) => s.processes);
	const bad = [...services.values()].filter((s) => toneOf(s) === "bad" || toneOf(s) === "warn");
	const down = registries.filter((r) => !r.healthy);
	if (!bad.length && !down.length && !processes.failed.length) {
		return services.size ? <p className="health good"><Mark tone="good">{t.allWell}</Mark></p> : null;
	}
	return (
		<div className="health">
			{down.map((r) => <p key={r.name} className="bad"><Mark tone="bad"><span><a href={href(["registries"])}>{t.registryTrouble(r.name, clock(r.since))}</a> {r.trouble}</span></Mark></p>)}
			{processes.failed.length ? <p><Mark tone="warn"><a href={href(["registries"])}>{t.processTrouble(processes.failed.length)}</a></Mark></p> : null}
			{bad.length ? (
				<p className="list"><Mark tone="bad">{t.troubled(bad.length)}</Mark>
					{bad.slice(0, 8).map((s) => <span key={s.name} className="chip"><a href={href(["services", s.name])}>{s.name}</a> <ServiceState s={s} /></span>)}
					{bad.length > 8 ? <a href={href(["services"], { sort: "-failed" })}>{t.andMore(bad.length - 8)}</a> : null}
				</p>
			) : null}
		</div>
	);
}

function Totals() {
	const t = useText();
	const services = useStore((s) => s.services), processes = useStore((s) => s.processes);
	let calls = 0, failed = 0, worst = 0, instances = 0, count = 0;
	for (const s of services.values()) {
		if (s.external) continue;
		count++;
		calls += s.rate;
		failed += s.failed;
		worst = Math.max(worst, s.p99);
		instances += s.instances;
	}
	return (
		<Tiles list={[
			{ name: t.callsPerSecond, value: rate(calls) },
			{ name: t.failedPerSecond, value: rate(failed), tone: failed > 0 ? "bad" : "" },
			{ name: t.slowestP99, value: span(worst) },
			{ name: t.services, value: count },
			{ name: t.instances, value: instances },
			{ name: t.processesRead, value: t.of(processes.read, processes.known), tone: processes.read < processes.known ? "warn" : "" },
		]} />
	);
}
