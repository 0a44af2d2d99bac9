// The charts of a service or method. What draws them is loaded when a page first shows some.
import { Suspense, lazy, useMemo } from "react";
import type { Change, Heat, Series } from "../api";
import { query } from "../api";
import { rate, span } from "../format";
import { useRoute } from "../route";
import { useText } from "../settings";
import { useApi, useStore } from "../store";
import { Choice, Wait } from "../ui";
import type { Line, Mark } from "./lines";

const Lines = lazy(() => import("./lines"));
const HeatMap = lazy(() => import("./heat"));

// The hours and the step of a range.
const ranges: Record<string, [number, string]> = { "1h": [1, "10s"], "6h": [6, "30s"], "24h": [24, "120s"] };

const latencyText = (v: number) => (v ? span(v) : "0");

// Charts are those of the last minutes, or of a range that the viewer chooses. With a mark they are those of one change.
export function Charts({ of, changes, mark }: { of: { service: string; method?: string }; changes: Change[]; mark?: Mark }) {
	const t = useText();
	const { query: q } = useRoute();
	const more = useStore((s) => s.long);
	const range = mark ? "" : q.get("range") ?? "", [hours, step] = ranges[range] ?? [0, ""], long = hours > 1;
	const from = hours ? { from: new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString(), step } : {};
	const thing = JSON.stringify([of, range]);
	const series = useApi<Series>("history" + query({ ...of, ...from }), !long, "series" + thing);
	const heat = useApi<Heat>(long || mark ? null : "history/heat" + query({ ...of, ...from }), true, "heat" + thing);
	const s = series.data, h = heat.data;
	const calls = useMemo<Line[]>(() => (s ? [{ name: t.calls, colour: "a", values: s.rate, fill: true }, { name: t.failed, colour: "bad", values: s.failed, dash: [4, 2] }] : []), [s, t]);
	const latency = useMemo<Line[]>(() => (s ? [{ name: "p50", colour: "a", values: s.p50 }, { name: "p90", colour: "c", values: s.p90, dash: [6, 3] }, { name: "p99", colour: "b", values: s.p99 }] : []), [s]);
	const charts = (
		<div className="charts">
			<Suspense fallback={<><Wait /><Wait /></>}>
				{s ? (
					<>
						<Lines title={t.callRate} from={s.from} step={s.step} format={rate} changes={changes} mark={mark} lines={calls} />
						<Lines title={t.latency} from={s.from} step={s.step} format={latencyText} changes={changes} mark={mark} lines={latency} />
					</>
				) : <><Wait error={series.error} again={series.again} /><Wait /></>}
				{long || mark ? null : h ? <HeatMap title={t.durations} heat={h} /> : <Wait error={heat.error} />}
			</Suspense>
		</div>
	);
	if (mark) return charts;
	return (
		<section aria-label={t.figures}>
			<div className="head"><h2>{t.figures}</h2><Choice name="range" label={t.range} list={[["", t.minutes5], ["1h", t.hour], ...(more ? [["6h", t.hours(6)], ["24h", t.hours(24)]] as [string, string][] : [])]} /></div>
			{charts}
		</section>
	);
}
