// A chart of lines over time, drawn by uPlot, with marks where something has changed.
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Change } from "../api";
import { clock } from "../format";
import { never, soon } from "../frames";
import { useSettings, useText } from "../settings";
import { colour } from "./colours";

export interface Line {
	name: string;
	colour: string; // name in the style sheet
	values: (number | null)[];
	dash?: number[];
	fill?: boolean;
}

interface Props {
	title: string;
	from: string;
	step: number;
	lines: Line[];
	format: (v: number) => string;
	changes: Change[];
	mark?: Mark;
}

// Mark is the time of one change with the time before that it is compared with.
export interface Mark {
	time: string;
	text: string;
	before: number; // ms
}

const height = 190;

export default function Lines({ title, from, step, lines, format, changes, mark }: Props) {
	const t = useText();
	const { dark, language } = useSettings();
	const box = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot>(null);
	const marks = useRef(changes), main = useRef(mark);
	const [near, setNear] = useState("");
	marks.current = changes;
	main.current = mark;
	const start = Date.parse(from) / 1000, width = step / 1e9;
	const times = lines[0].values.map((_, i) => start + i * width);
	const data = useMemo(() => [times, ...lines.map((l) => l.values)] as uPlot.AlignedData, [lines, from, step]);
	const [chosen, setChosen] = useState<number | null>(null);

	useEffect(() => {
		const e = box.current;
		if (!e) return;
		const ink = colour("dim"), grid = colour("line"), mark = colour("mark"), strong = colour("ink"), shade = colour("shade");
		const axis = { stroke: ink, font: "11px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: grid, width: 1 } };
		const p = new uPlot({
			width: e.clientWidth, height, padding: [10, 8, 0, 0], legend: { show: false }, cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
			scales: { x: { time: true }, y: { range: (_, __, max) => [0, (max || 1) * 1.12] } },
			series: [{}, ...lines.map((l) => ({
				label: l.name, stroke: colour(l.colour), width: 1.6, dash: l.dash, fill: l.fill ? colour(l.colour + "-soft") : undefined, spanGaps: false, points: { show: false },
			}))],
			axes: [
				{ ...axis, size: 24, space: 70, values: (_, list) => list.map((v) => clock(v * 1000).slice(-8, width < 5 ? undefined : -3)) },
				{ ...axis, size: 62, space: 34, values: (_, list) => list.map(format) },
			],
			hooks: {
				setCursor: [(u) => setChosen(u.cursor.idx ?? null)],
				drawClear: [(u) => {
					if (!main.current) return;
					const { left, top, width: w, height: h } = u.bbox, at = Date.parse(main.current.time);
					const place = (time: number) => Math.min(Math.max(u.valToPos(time / 1000, "x", true), left), left + w);
					const x = place(at - main.current.before);
					u.ctx.fillStyle = shade;
					u.ctx.fillRect(x, top, place(at) - x, h);
				}],
				draw: [(u) => {
					const { left, top, width: w, height: h } = u.bbox;
					u.ctx.save();
					u.ctx.strokeStyle = mark;
					u.ctx.fillStyle = mark;
					u.ctx.lineWidth = devicePixelRatio;
					u.ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
					for (const c of marks.current) {
						const x = u.valToPos(Date.parse(c.time) / 1000, "x", true);
						if (x < left || x > left + w) continue;
						u.ctx.beginPath();
						u.ctx.moveTo(x, top);
						u.ctx.lineTo(x, top + h);
						u.ctx.stroke();
						u.ctx.fillRect(x - 3 * devicePixelRatio, top - 2 * devicePixelRatio, 6 * devicePixelRatio, 5 * devicePixelRatio);
					}
					const x = main.current ? u.valToPos(Date.parse(main.current.time) / 1000, "x", true) : -1;
					if (main.current && x >= left && x <= left + w) {
						u.ctx.strokeStyle = u.ctx.fillStyle = strong;
						u.ctx.setLineDash([]);
						u.ctx.beginPath();
						u.ctx.moveTo(x, top);
						u.ctx.lineTo(x, top + h);
						u.ctx.stroke();
						u.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
						const after = x + u.ctx.measureText(main.current.text).width + 8 * devicePixelRatio < left + w;
						u.ctx.textAlign = after ? "left" : "right";
						u.ctx.fillText(main.current.text, x + (after ? 4 : -4) * devicePixelRatio, top + 12 * devicePixelRatio);
					}
					u.ctx.restore();
				}],
			},
		}, data, e);
		plot.current = p;
		const sizes = new ResizeObserver(() => e.clientWidth && p.setSize({ width: e.clientWidth, height }));
		sizes.observe(e);
		return () => {
			sizes.disconnect();
			p.destroy();
			plot.current = null;
		};
	}, [dark, language, lines.length, width, title]);
	const key = useRef({});
	useEffect(() => soon(key.current, () => plot.current?.setData(data)), [data, mark?.time]);
	useEffect(() => () => never(key.current), []);

	const at = chosen ?? lines[0].values.length - 1;
	useEffect(() => {
		const time = times[at] ?? 0;
		const found = marks.current.filter((c) => Math.abs(Date.parse(c.time) / 1000 - time) <= Math.max(1.5 * width, 2));
		setNear(chosen === null ? "" : found.map((c) => `${t.kinds[c.kind] ?? c.kind}: ${c.text}`).join("; "));
	}, [at, chosen]);
	const last = lines.map((l) => `${l.name} ${format(l.values.findLast((v) => v !== null) ?? 0)}`).join(", ");
	return (
		<figure className="chart live">
			<figcaption>
				<span className="name">{title}</span>
				{lines.map((l) => {
					const v = chosen === null ? l.values.findLast((x) => x !== null) : l.values[at];
					return <span key={l.name} className="key"><i className={"dot c-" + l.colour} />{l.name} <strong>{v === null || v === undefined ? "–" : format(v)}</strong></span>;
				})}
				<time className="dim">{chosen === null ? "" : clock(times[at] * 1000)}</time>
			</figcaption>
			<div ref={box} className="plot" role="img" aria-label={t.chartText(title, last)} />
			<p className="near" aria-live="off">{near}</p>
		</figure>
	);
}
