// The map of instances on one canvas.
import { useEffect, useMemo, useRef, useState } from "react";
import { type InstanceMap, type InstancePage, type MapRow, query } from "../api";
import { colour, sharp } from "../charts/colours";
import { rate, short, span } from "../format";
import { never, soon } from "../frames";
import { go, href, setQuery } from "../route";
import { useSettings, useText } from "../settings";
import { useApi } from "../store";
import { type Look, type Square, type Squares, arrange, at as squareAt, countsOf, lookOf, shapeOf, shareOf, step } from "./squares";

const restFor = 80; // ms after which an instance below the pointer is asked for

export function Grid({ map, by, filter }: { map: InstanceMap; by: string; filter: string }) {
	const t = useText();
	const { dark } = useSettings();
	const canvas = useRef<HTMLCanvasElement>(null), box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(0);
	const [at, setAt] = useState<number | null>(null);
	const rows = map.services, shape = shapeOf(rows), places = useMemo(() => arrange(rows, width), [shape, width]);
	const painter = useRef<Painter>(null);
	const palette = useMemo(() => Object.fromEntries([...Object.values(names), "a", "ink", "dim", "paper"].map((n) => [n, colour(n)])), [dark]);

	useEffect(() => {
		const e = box.current;
		if (!e) return;
		const sizes = new ResizeObserver(() => setWidth(e.clientWidth));
		sizes.observe(e);
		setWidth(e.clientWidth);
		return () => sizes.disconnect();
	}, []);
	useEffect(() => {
		if (!canvas.current || width === 0) return;
		const p = new Painter(canvas.current, width, places, palette);
		painter.current = p;
		return () => p.end();
	}, [places, palette, width]);
	useEffect(() => painter.current?.show(rows, by, at), [places, palette, width, rows, by, at]);

	const chosen = at === null ? null : places.squares[at] ?? null, one = chosen?.count === 1;
	const instance = useInstance(chosen && one ? chosen : null, rows, filter);
	const service = chosen ? rows[chosen.row]?.service ?? "" : "";
	const open = () => {
		if (one) go(href(["services", service], { tab: "instances", instance: instance?.id }));
		else setQuery({ q: service });
	};
	const text = !chosen ? "" : one ? (instance ? t.instanceText(instance.id, instance.stale ? t.legend.t : `${t.states[instance.state]}, ${t.health[instance.health]}`, rate(instance.rate), span(instance.p99)) : t.loading)
		: `${t.nInstances(chosen.count)}: ${countsOf(chosen, rows).map(([look, n]) => `${n} ${t.legend[look]}`).join(", ")}`;
	return (
		<div className="grid"><div ref={box} className="squares">
			<canvas ref={canvas} tabIndex={0} role="application" aria-label={`${t.allInstances}: ${map.matching}. ${t.gridHint}`} title=""
				onPointerMove={(e) => {
					const size = e.currentTarget.getBoundingClientRect(), n = squareAt(places, e.clientX - size.left, e.clientY - size.top);
					setAt(n < 0 ? null : n);
					e.currentTarget.style.cursor = n < 0 ? "default" : "pointer";
				}}
				onPointerLeave={() => setAt(null)}
				onClick={() => chosen && open()}
				onKeyDown={(e) => {
					const n = step(places, at ?? -1, e.key);
					if (n !== null) {
						e.preventDefault();
						setAt(n);
						reveal(e.currentTarget, places.squares[n]);
					} else if (e.key === "Enter" && chosen) open();
				}}
				onBlur={() => setAt(null)} />
			<p className="unseen" role="status">{chosen ? `${service} ${text}` : ""}</p>
			{chosen ? <div className="tip" aria-hidden="true" style={{ transform: `translate(${Math.min(chosen.x, Math.max(width - 330, 0))}px, ${chosen.y + places.size + 6}px)` }}><strong>{service}</strong> {text}{instance?.why ? <small>{instance.why}</small> : null}</div> : null}
			</div>
			<Legend by={by} most={map.most ?? 0} rows={rows} />
		</div>
	);
}

// reveal brings a square into sight.
function reveal(canvas: HTMLElement, s: Square): void {
	const y = canvas.getBoundingClientRect().top + s.y;
	if (y < 60 || y > innerHeight - 60) scrollBy(0, y - innerHeight / 2);
}

// useInstance asks for the instance of a square, once the pointer rests on it.
function useInstance(s: Square | null, rows: MapRow[], filter: string) {
	const path = s ? "instances" + query({ service: rows[s.row]?.service, q: filter, offset: s.first, limit: 1 }) : null;
	const [asked, setAsked] = useState<string | null>(null);
	useEffect(() => {
		const wait = setTimeout(() => setAsked(path), restFor);
		return () => clearTimeout(wait);
	}, [path]);
	const { data } = useApi<InstancePage>(asked === path ? asked : null);
	return data?.instances[0];
}

// names are the names of the colours of looks.
const names: Record<Look, string> = { o: "ok", s: "slow", b: "bad", d: "out", t: "stale", n: "rest" };
const signs: Record<Look, string> = { o: "", s: "∧", b: "×", d: "−", t: "/", n: "" };

const slice = 1_500; // squares that are looked at in a frame

// Painter draws the squares that look different than before, some in each frame.
class Painter {
	readonly #c: CanvasRenderingContext2D | null;
	#looks: string[] = [];
	#key = {};
	constructor(canvas: HTMLCanvasElement, width: number, readonly p: Squares, readonly palette: Record<string, string>) {
		const c = sharp(canvas, width, p.height);
		this.#c = c;
		if (!c) return;
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		c.fillStyle = palette.ink;
		for (const g of p.groups) c.fillText(short(g.name, p.label ? 26 : 48), g.x, g.y);
	}
	show(rows: MapRow[], by: string, at: number | null): void {
		const part = (from: number) => () => {
			const end = Math.min(from + slice, this.p.squares.length);
			for (let i = from; i < end; i++) this.#paint(i, rows, by, i === at);
			if (end < this.p.squares.length) soon(this.#key, part(end));
		};
		soon(this.#key, part(0));
	}
	end(): void {
		never(this.#key);
	}
	#paint(i: number, rows: MapRow[], by: string, chosen: boolean): void {
		const c = this.#c, s = this.p.squares[i], { size, step } = this.p;
		const look = lookOf(s, rows), share = by ? shareOf(s, rows) : 0, now = `${look}${by}${share}${chosen}`, before = this.#looks[i];
		if (!c || now === before) return;
		this.#looks[i] = now;
		const margin = Math.min(2, (step - size) / 2); // of the frame of the chosen square
		if (before !== undefined) c.clearRect(s.x - margin, s.y - margin, size + 2 * margin, size + 2 * margin);
		square(c, s, size, look, by ? share : null, this.palette);
		if (!chosen) return;
		c.strokeStyle = this.palette.ink;
		c.lineWidth = margin;
		c.strokeRect(s.x - margin / 2, s.y - margin / 2, size + margin, size + margin);
	}
}

// square draws a square. What needs a look has a shape of its own, for viewers who see colours in another way.
function square(c: CanvasRenderingContext2D, { x, y }: Square, size: number, look: Look, share: number | null, palette: Record<string, string>): void {
	const heat = share !== null && look !== "t" && look !== "n";
	c.fillStyle = heat ? palette.a : palette[names[look]];
	c.globalAlpha = heat ? 0.1 + 0.9 * share : look === "t" || look === "n" ? 0.35 : 1;
	if (size > 10) {
		c.beginPath();
		c.roundRect(x, y, size, size, 3);
		c.fill();
	} else c.fillRect(x, y, size, size);
	c.globalAlpha = 1;
	if (look === "o" || look === "n" || (heat && look !== "b")) return;
	c.strokeStyle = look === "t" ? palette.dim : heat ? palette.bad : palette.paper;
	c.lineWidth = size > 10 ? 1.6 : 1.2;
	const a = size > 10 ? size * 0.3 : 1, b = size - a;
	c.beginPath();
	if (look === "b") {
		c.moveTo(x + a, y + a);
		c.lineTo(x + b, y + b);
		c.moveTo(x + b, y + a);
		c.lineTo(x + a, y + b);
	} else if (look === "s") {
		c.moveTo(x + a, y + size * 0.62);
		c.lineTo(x + size / 2, y + size * 0.36);
		c.lineTo(x + b, y + size * 0.62);
	} else if (look === "d") {
		c.moveTo(x + a, y + size / 2);
		c.lineTo(x + b, y + size / 2);
	} else {
		c.moveTo(x + 2, y + size - 2);
		c.lineTo(x + size - 2, y + 2);
	}
	c.stroke();
}

function Legend({ by, most, rows }: { by: string; most: number; rows: MapRow[] }) {
	const t = useText();
	if (by) {
		const text = by === "p99" ? span(most) : by === "rate" ? rate(most) + "/s" : (100 * most).toFixed(0) + " %";
		return <p className="keys"><span className="key">{t.low}</span><span className="ramp" /><span className="key">{t.high}: {text}</span></p>;
	}
	const count = (look: Look) => rows.reduce((n, r) => n + r.looks.split(look).length - 1, 0);
	return <p className="keys">{(Object.keys(names) as Look[]).map((l) => <span key={l} className="key"><i className={"square s-" + names[l]}>{signs[l]}</i>{t.legend[l]} <strong className="count">{count(l)}</strong></span>)}</p>;
}
