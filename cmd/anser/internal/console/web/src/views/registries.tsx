// The registries, and the processes whose page does not answer.
import { clock, span } from "../format";
import { useText } from "../settings";
import { useStore } from "../store";
import { Mark, Section, Table } from "../ui";

export function Registries() {
	const t = useText();
	const registries = useStore((s) => s.registries), processes = useStore((s) => s.processes);
	return (
		<>
			<h1>{t.registries}</h1>
			<div className="live">
				<Table name="sort" label={t.registries} rows={registries} rowKey={(r) => r.name} columns={[
					{ id: "name", title: t.registry, cell: (r) => <code>{r.name}</code>, sort: (r) => r.name },
					{ id: "kind", title: t.kind, cell: (r) => r.kind },
					{ id: "state", title: t.state, cell: (r) => <Mark tone={r.healthy ? "good" : "bad"}>{r.healthy ? t.answers : r.trouble}</Mark> },
					{ id: "since", title: t.since, cell: (r) => (r.since ? clock(r.since) : "") },
					{ id: "latency", title: t.latency, kind: "n", cell: (r) => span(r.latency) },
				]} />
				<Section title={t.notAnswering} aside={<span className="dim">{t.processesRead}: {t.of(processes.read, processes.known)}</span>}>
					<Table name="failed" label={t.notAnswering} rows={processes.failed} rowKey={(p) => p.address} none={processes.known ? t.allAnswer : t.noProcesses} columns={[
						{ id: "address", title: t.adminPage, cell: (p) => p.address, sort: (p) => p.address },
						{ id: "error", title: t.why, kind: "text", cell: (p) => p.error },
					]} />
				</Section>
			</div>
		</>
	);
}
