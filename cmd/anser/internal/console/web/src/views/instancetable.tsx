// A list of instances, of which the console sends the part that is in sight, in the order that the viewer has chosen.
import { type ReactNode, useEffect, useState } from "react";
import { type Instance, type InstancePage, query } from "../api";
import { bytes } from "../format";
import { useRoute } from "../route";
import { useText } from "../settings";
import { useApi } from "../store";
import { LiveTable } from "../table";
import { type Column, InstanceState, ServiceLink, Wait, useRates } from "../ui";

const limit = 100; // instances of a part

function useInstanceColumns(): Column<Instance>[] {
	const t = useText();
	const rates = useRates<Instance>();
	return [
		{ id: "id", title: t.instance, cell: (i) => <span title={i.id}>{i.id}</span>, sort: (i) => i.id },
		{ id: "state", title: t.state, kind: "state", cell: (i) => <InstanceState i={i} />, sort: (i) => i.state + i.health },
		...rates,
		{ id: "flight", title: t.inFlight, kind: "n", cell: (i) => i.in_flight, sort: (i) => i.in_flight },
		{ id: "cpu", title: t.cpu, kind: "n", cell: (i) => (100 * i.cpu).toFixed(0) + " %", sort: (i) => i.cpu },
		{ id: "memory", title: t.memory, kind: "n", cell: (i) => bytes(i.memory), sort: (i) => i.memory },
		{ id: "weight", title: t.weight, kind: "n", cell: (i) => i.weight, sort: (i) => i.weight },
		{ id: "zone", title: t.zone, cell: (i) => i.zone ?? "", sort: (i) => i.zone ?? "" },
		{ id: "version", title: t.version, cell: (i) => i.version ?? "", sort: (i) => i.version ?? "" },
		{ id: "address", title: t.address, cell: (i) => i.address, sort: (i) => i.address },
		{ id: "tags", title: t.tags, kind: "text", cell: (i) => Object.entries(i.tags ?? {}).map(([k, v]) => <code key={k} className="tag">{k}={v}</code>) },
	];
}

interface Props {
	name: string;
	label: string;
	service?: string;
	filter?: string;
	look?: string; // instances that look so, as api/instances takes it
	chosen?: string; // id of an instance that is shown first
	services?: boolean; // the services are shown
	operate?: { title: string; cell: (i: Instance) => ReactNode };
	first?: string; // the order at first
}

export function InstanceTable({ name, label, service, filter, look, chosen, services, operate, first }: Props) {
	const t = useText();
	const { query: address } = useRoute();
	const [offset, setOffset] = useState(0);
	const sort = address.get(name) ?? first;
	const of = { service, q: filter, look, first: chosen, sort };
	const { data, error, again } = useApi<InstancePage>("instances" + query({ ...of, offset: offset || undefined, limit }), true, JSON.stringify([service, filter, look]));
	const columns = useInstanceColumns(), gone = data !== undefined && data.instances.length === 0 && data.matching > 0;
	useEffect(() => {
		if (gone) setOffset(0); // the list has become shorter
	}, [gone]);
	// What is wrong is next to the state, where it is in sight on a narrow page, too.
	if (data?.instances.some((i) => i.why)) columns.splice(2, 0, { id: "why", title: t.why, kind: "text", cell: (i) => (i.why ? <span title={i.why}>{i.why}</span> : "") });
	if (services) columns.unshift({ id: "service", title: t.service, cell: (i) => <ServiceLink name={i.service} />, sort: (i) => i.service });
	if (operate) columns.splice(2, 0, { id: "change", ...operate });
	if (!data) return <Wait error={error} again={again} />;
	return (
		<LiveTable key={chosen} name={name} label={label} first={first} columns={columns} rows={data.instances} rowKey={(i) => i.service + "/" + i.id}
			rowClass={(i) => (i.id === chosen ? "chosen" : i.stale ? "stale" : undefined)} stateOf={(i) => [i.state, i.health, i.stale, i.why, i.failed > 0].join()}
			part={{ offset: data.offset, matching: data.matching, show: setOffset }} />
	);
}
