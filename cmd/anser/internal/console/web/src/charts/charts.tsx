// The charts of a service or method. What draws them is loaded when a page first shows some.
import { Suspense, lazy } from "react";
import type { Change, Heat, Series } from "../api";
import { query } from "../api";
import { rate, span } from "../format";
import { useRoute } from "../route";
import { useText } from "../settings";
import { useApi, useStore } from "../store";
import { Choice, Wait } from "../ui";

const Lines = lazy(() => import("./lines"));
const HeatMap = lazy(() => import("./heat"));

// The hours and the step of a range.
const ranges: Record<string, [number, string]> = { "1h": [1, "10s"], "6h": [6, "30s"], "24h": [24, "120s"] };

export function Charts({ of, changes }: { of: { service: string; method?: string }; changes: Change[] }) {
	const t = useText();
	const { query: q } = useRoute();
	const more = useStore((s) => s.long);
	const range = q.get("range") ?? "", [hours, step] = ranges[range] ?? [0, ""], long = hours > 1;
	const from = hours ? { from: new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString(), step } : {};
	const thing = JSON.stringify([of, range]);
	const series = useApi<Series>("history" + query({ ...of, ...from }), !long, "series" + thing);
	const heat = useApi<Heat>(long ? null : "history/heat" + query({ ...of, ...from }), true, "heat" + thing);
	const s = series.data, h = heat.data;
	return (
		<section aria-label={t.figures}>
			<div className="head"><h2>{t.figures}</h2><Choice name="range" label={t.range} list={[["", t.minutes5], ["1h", t.hour], ...(more ? [["6h", t.hours(6)], ["24h", t.hours(24)]] as [string, string][] : [])]} /></div>
			<div className="charts">
				<Suspense fallback={<><Wait /><Wait /><Wait /></>}>
					{s ? (
						<>
							<Lines title={t.callRate} from={s.from} step={s.step} format={rate} changes={changes}
								lines={[{ name: t.calls, colour: "a", values: s.rate, fill: true }, { name: t.failed, colour: "bad", values: s.failed, dash: [4, 2] }]} />
							<Lines title={t.latency} from={s.from} step={s.step} format={(v) => (v ? span(v) : "0")} changes={changes}
								lines={[{ name: "p50", colour: "a", values: s.p50 }, { name: "p90", colour: "c", values: s.p90, dash: [6, 3] }, { name: "p99", colour: "b", values: s.p99 }]} />
						</>
					) : <><Wait error={series.error} again={series.again} /><Wait /></>}
					{long ? null : h ? <HeatMap title={t.durations} heat={h} /> : <Wait error={heat.error} />}
				</Suspense>
			</div>
		</section>
	);
}
