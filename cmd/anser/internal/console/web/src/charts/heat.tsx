// The heat map of durations: a column for each step, a row for each power of two.
import { useEffect, useMemo, useRef, useState } from "react";
import type { Heat } from "../api";
import { clock, rate, span } from "../format";
import { never, soon } from "../frames";
import { useSettings, useText } from "../settings";
import { colour, sharp } from "./colours";
import { rowsOf } from "./heat-rows";

const height = 190, left = 62, bottom = 24, top = 10;

export default function HeatMap({ title, heat }: { title: string; heat: Heat }) {
	const t = useText();
	const { dark } = useSettings();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [width, setWidth] = useState(0);
	const [text, setText] = useState("");
	const [low, high] = rowsOf(heat);
	const columns = heat.counts.length, cell = { w: (width - left - 8) / Math.max(columns, 1), h: (height - top - bottom) / (high - low + 1) };

	useEffect(() => {
		const e = canvas.current?.parentElement;
		if (!e) return;
		const sizes = new ResizeObserver(() => setWidth(e.clientWidth));
		sizes.observe(e);
		setWidth(e.clientWidth);
		return () => sizes.disconnect();
	}, []);

	const palette = useMemo(() => ({ hot: colour("a"), line: colour("line"), ink: colour("dim") }), [dark]), key = useRef({});
	useEffect(() => () => never(key.current), []);
	useEffect(() => soon(key.current, () => {
		const c = canvas.current && width > 0 ? sharp(canvas.current, width, height) : null;
		if (!c) return;
		const { hot, line, ink } = palette;
		let most = 1;
		for (const row of heat.counts) for (const n of row ?? []) most = Math.max(most, n);
		c.clearRect(0, 0, width, height);
		c.font = "11px system-ui, sans-serif";
		c.fillStyle = ink;
		c.textAlign = "right";
		c.textBaseline = "middle";
		const every = Math.ceil((high - low + 1) / 6);
		for (let row = low; row <= high; row++) {
			const y = height - bottom - (row - low) * cell.h;
			if ((row - low) % every === 0) {
				c.fillText(span(heat.bounds[row]), left - 8, y - cell.h / 2);
				c.globalAlpha = 0.6;
				c.fillStyle = line;
				c.fillRect(left, y - cell.h, width - left - 8, 1);
				c.globalAlpha = 1;
				c.fillStyle = ink;
			}
		}
		c.fillStyle = hot;
		heat.counts.forEach((row, i) => {
			for (let j = low; row && j <= high; j++) {
				if (!row[j]) continue;
				c.globalAlpha = 0.16 + (0.84 * Math.log1p(row[j])) / Math.log1p(most);
				c.fillRect(left + i * cell.w, height - bottom - (j - low + 1) * cell.h + 0.5, Math.max(cell.w, 1), cell.h - 1);
			}
		});
		c.globalAlpha = 1;
		c.fillStyle = ink;
		c.textAlign = "center";
		const marks = Math.max(1, Math.floor((width - left) / 110));
		for (let i = 0; i < marks; i++) {
			const column = Math.floor(((i + 0.5) * columns) / marks);
			c.fillText(clock(Date.parse(heat.from) + (column * heat.step) / 1e6).slice(-8), left + column * cell.w, height - 9);
		}
	}), [heat, width, palette]);

	const point = (x: number, y: number) => {
		const i = Math.floor((x - left) / cell.w), j = low + Math.floor((height - bottom - y) / cell.h), row = heat.counts[i];
		if (i < 0 || i >= columns || j < low || j > high) return setText("");
		const time = clock(Date.parse(heat.from) + (i * heat.step) / 1e6);
		setText(row ? t.heatText(rate(row[j]), time, span(heat.bounds[j])) : `${time}: ${t.unknownThen}`);
	};
	return (
		<figure className="chart live">
			<figcaption><span className="name">{title}</span><span className="dim">{text}</span></figcaption>
			<div className="plot">
				<canvas ref={canvas} role="img" aria-label={title} onPointerMove={(e) => {
					const size = e.currentTarget.getBoundingClientRect();
					point(e.clientX - size.left, e.clientY - size.top);
				}} onPointerLeave={() => setText("")} />
			</div>
			<p className="near" />
		</figure>
	);
}
