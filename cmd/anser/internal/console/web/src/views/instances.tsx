// All instances: as squares on one canvas, and those that need attention, or all, in a list.
import { useDeferredValue } from "react";
import { type InstanceMap, query } from "../api";
import { useRoute } from "../route";
import { useText } from "../settings";
import { useApi } from "../store";
import { Choice, Filter, Section, Wait } from "../ui";
import { Grid } from "./grid";
import { InstanceTable } from "./instancetable";

export function InstancesPage() {
	const t = useText();
	const { query: q } = useRoute();
	const filter = useDeferredValue(q.get("q") ?? ""), by = q.get("by") ?? "", all = q.get("list") === "all";
	const { data, error, again } = useApi<InstanceMap>("instances/map" + query({ q: filter, by }), true, "map" + by);
	return (
		<>
			<div className="head">
				<h1>{t.allInstances}</h1><Filter label={t.filter} />
				<Choice name="by" label={t.colourBy} list={[["", t.byHealth], ["p99", t.byLatency], ["rate", t.byRate], ["cpu", t.byCPU]]} />
				{data ? <span className="dim">{t.of(data.matching, data.total)}</span> : null}
			</div>
			{data ? (
				<div className="live">
					{data.matching ? <Grid map={data} by={by} filter={filter} /> : <p className="empty">{data.total ? t.none : t.noServices}</p>}
					<Section title={all ? t.allInstances : t.needLook} aside={<Choice name="list" label={t.listed} list={[["", t.needLook], ["all", t.all]]} />}>
						<InstanceTable key={filter + all} name="sort" label={all ? t.allInstances : t.needLook} filter={filter} look={all ? undefined : "slow,bad,out,stale"} services />
					</Section>
				</div>
			) : <Wait error={error} again={again} />}
		</>
	);
}
