// All instances as squares on one canvas.
import { useEffect, useMemo, useRef, useState } from "react";
import type { Instance } from "../api";
import { colour, sharp } from "../charts/colours";
import { rate, short, span } from "../format";
import { go, href, useRoute } from "../route";
import { useSettings, useText } from "../settings";
import { useApi } from "../store";
import { Choice, Filter, Section, ServiceLink, Table, Wait } from "../ui";
import { type Health, type Square, type Squares, arrange, averages, healthOf, renewed, shapeOf } from "./squares";
import { useInstanceColumns } from "./service";

export function InstancesPage() {
	const t = useText();
	const { query } = useRoute();
	const { data, error, again } = useApi<Instance[]>("instances");
	const wanted = (query.get("q") ?? "").toLowerCase();
	const list = useMemo(() => (wanted === "" ? (data ?? []) : (data ?? []).filter((i) => `${i.service} ${i.id} ${i.address} ${i.zone} ${i.version}`.toLowerCase().includes(wanted))), [data, wanted]);
	const means = useMemo(() => averages(data ?? []), [data]);
	const troubled = list.filter((i) => healthOf(i, means.get(i.service) ?? 0) !== "ok");
	const columns = [{ id: "service", title: t.service, cell: (i: Instance) => <ServiceLink name={i.service} />, sort: (i: Instance) => i.service }, ...useInstanceColumns()];
	return (
		<>
			<div className="head">
				<h1>{t.allInstances}</h1><Filter label={t.filter} />
				<Choice name="by" label={t.colourBy} list={[["", t.byHealth], ["p99", t.byLatency], ["rate", t.byRate], ["cpu", t.byCPU]]} />
				{data ? <span className="dim">{t.of(list.length, data.length)}</span> : null}
			</div>
			{data ? (
				<div className="live">
					{list.length ? <Grid list={list} means={means} by={query.get("by") ?? ""} /> : <p className="empty">{t.none}</p>}
					<Section title={t.needLook}><Table name="sort" label={t.needLook} columns={columns} rows={troubled} rowKey={(i) => i.service + "/" + i.id} rowClass={(i) => (i.stale ? "stale" : undefined)} most={100} /></Section>
				</div>
			) : <Wait error={error} again={again} />}
		</>
	);
}

const values: Record<string, (i: Instance) => number> = { p99: (i) => i.p99, rate: (i) => i.rate, cpu: (i) => i.cpu };

function Grid({ list, means, by }: { list: Instance[]; means: Map<string, number>; by: string }) {
	const t = useText();
	const { dark } = useSettings();
	const canvas = useRef<HTMLCanvasElement>(null), box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(0);
	const [at, setAt] = useState<number | null>(null);
	const [tip, setTip] = useState<{ x: number; y: number } | null>(null);
	const shape = shapeOf(list), arranged = useMemo(() => arrange(list, width), [shape, width]);
	const places = useMemo(() => renewed(arranged, list), [arranged, list]);
	const drawn = useRef<Drawn>(null);
	const palette = useMemo(() => Object.fromEntries(["ok", "slow", "bad", "out", "stale", "a", "ink", "dim", "paper", "link"].map((n) => [n, colour(n)])), [dark]);

	useEffect(() => {
		const e = box.current;
		if (!e) return;
		const sizes = new ResizeObserver(() => setWidth(e.clientWidth));
		sizes.observe(e);
		setWidth(e.clientWidth);
		return () => sizes.disconnect();
	}, []);
	useEffect(() => {
		if (canvas.current && width > 0) drawn.current = draw(canvas.current, width, places, means, by, palette, at, drawn.current);
	}, [places, means, by, palette, at, width]);

	const chosen = at === null ? null : places.squares[at];
	const open = (s: Square) => go(href(["services", s.instance.service], { tab: "instances", instance: s.instance.id }));
	const find = (x: number, y: number) => places.squares.findIndex((s) => x >= s.x - 1 && x < s.x + places.size + 2 && y >= s.y - 1 && y < s.y + places.size + 2);
	const text = (i: Instance) => t.instanceText(i.id, i.stale ? t.legend.stale : `${t.states[i.state]}, ${t.health[i.health]}`, rate(i.rate), span(i.p99));
	return (
		<div className="grid"><div ref={box} className="squares">
			<canvas ref={canvas} tabIndex={0} role="application" aria-label={`${t.allInstances}: ${list.length}. ${t.gridHint}`} title=""
				onPointerMove={(e) => {
					const size = e.currentTarget.getBoundingClientRect(), x = e.clientX - size.left, y = e.clientY - size.top, n = find(x, y);
					setAt(n < 0 ? null : n);
					setTip(n < 0 ? null : { x: places.squares[n].x, y: places.squares[n].y });
					e.currentTarget.style.cursor = n < 0 ? "default" : "pointer";
				}}
				onPointerLeave={() => { setTip(null); setAt(null); }}
				onClick={() => chosen && open(chosen)}
				onKeyDown={(e) => {
					const n = step(places, at ?? -1, e.key);
					if (n !== null) {
						e.preventDefault();
						setAt(n);
						setTip({ x: places.squares[n].x, y: places.squares[n].y });
					} else if (e.key === "Enter" && chosen) open(chosen);
				}}
				onBlur={() => { setTip(null); setAt(null); }} />
			<p className="unseen" role="status">{chosen ? text(chosen.instance) : ""}</p>
			{tip && chosen ? <Tip s={chosen} x={tip.x} y={tip.y + places.size + 6} width={width}>{text(chosen.instance)}{chosen.instance.why ? <small>{chosen.instance.why}</small> : null}</Tip> : null}
			</div>
			<Legend by={by} list={list} />
		</div>
	);
}

function Tip({ x, y, width, children, s }: { x: number; y: number; width: number; children: React.ReactNode; s: Square }) {
	return <div className="tip" aria-hidden="true" style={{ transform: `translate(${Math.min(x, Math.max(width - 330, 0))}px, ${y}px)` }}><strong>{s.instance.service}</strong> {children}</div>;
}

// step returns the square that a key leads to.
function step(p: Squares, at: number, key: string): number | null {
	const last = p.squares.length - 1;
	if (key === "ArrowRight") return Math.min(at + 1, last);
	if (key === "ArrowLeft") return Math.max(at - 1, 0);
	if (key === "Home") return 0;
	if (key === "End") return last;
	if (key !== "ArrowDown" && key !== "ArrowUp") return null;
	const from = p.squares[Math.max(at, 0)], down = key === "ArrowDown";
	let best = -1;
	p.squares.forEach((s, i) => {
		if (down ? s.y <= from.y : s.y >= from.y) return;
		const b = p.squares[best];
		if (!b || Math.abs(s.y - from.y) < Math.abs(b.y - from.y) || (s.y === b.y && Math.abs(s.x - from.x) < Math.abs(b.x - from.x))) best = i;
	});
	return best < 0 ? null : best;
}

// Drawn is what a canvas shows: how each square looks, and what must be the same for the others to stay.
interface Drawn {
	of: unknown[];
	looks: string[];
}

// draw draws the squares that look different than before, or everything.
function draw(canvas: HTMLCanvasElement, width: number, p: Squares, means: Map<string, number>, by: string, palette: Record<string, string>, at: number | null, before: Drawn | null): Drawn | null {
	const of = [canvas, width, p.groups, palette, devicePixelRatio], same = before && of.every((x, i) => x === before.of[i]);
	const c = same ? canvas.getContext("2d") : sharp(canvas, width, p.height);
	if (!c) return null;
	if (!same) {
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		c.fillStyle = palette.ink;
		for (const g of p.groups) c.fillText(short(g.name, p.label ? 26 : 48), g.x, g.y);
	}
	const value = values[by] as ((i: Instance) => number) | undefined;
	let most = 1e-12;
	if (value) for (const s of p.squares) most = Math.max(most, value(s.instance));
	const looks = p.squares.map((s, i) => {
		const health = healthOf(s.instance, means.get(s.instance.service) ?? 0), share = value ? Math.round((32 * value(s.instance)) / most) / 32 : 0;
		const look = `${health} ${by} ${share} ${i === at}`;
		if (same && before.looks[i] === look) return look;
		if (same) c.clearRect(s.x - 2, s.y - 2, p.size + 4, p.size + 4);
		square(c, s, p.size, health, value ? { colour: palette.a, share } : null, palette);
		if (i === at) {
			c.strokeStyle = palette.ink;
			c.lineWidth = 2;
			c.strokeRect(s.x - 1, s.y - 1, p.size + 2, p.size + 2);
		}
		return look;
	});
	return { of, looks };
}

// square draws an instance. What needs a look has a shape of its own, for viewers who see colours in another way.
function square(c: CanvasRenderingContext2D, s: Square, size: number, health: Health, heat: { colour: string; share: number } | null, palette: Record<string, string>): void {
	const { x, y } = s;
	c.fillStyle = heat && health !== "stale" ? heat.colour : palette[health];
	c.globalAlpha = heat && health !== "stale" ? 0.1 + 0.9 * heat.share : health === "stale" ? 0.35 : 1;
	c.beginPath();
	c.roundRect(x, y, size, size, 3);
	c.fill();
	c.globalAlpha = 1;
	if (health === "ok" || (heat && health !== "stale" && health !== "bad")) return;
	c.strokeStyle = health === "stale" ? palette.dim : palette.paper;
	c.lineWidth = 1.6;
	c.beginPath();
	const a = size * 0.3, b = size * 0.7;
	if (health === "bad") {
		c.strokeStyle = heat ? palette.bad : palette.paper;
		c.moveTo(x + a, y + a);
		c.lineTo(x + b, y + b);
		c.moveTo(x + b, y + a);
		c.lineTo(x + a, y + b);
	} else if (health === "slow") {
		c.moveTo(x + a, y + size * 0.6);
		c.lineTo(x + size / 2, y + size * 0.38);
		c.lineTo(x + b, y + size * 0.6);
	} else if (health === "out") {
		c.moveTo(x + a, y + size / 2);
		c.lineTo(x + b, y + size / 2);
	} else {
		c.moveTo(x + 2, y + size - 2);
		c.lineTo(x + size - 2, y + 2);
	}
	c.stroke();
}

const signs: Record<Health, string> = { ok: "", slow: "∧", bad: "×", out: "−", stale: "/" };

function Legend({ by, list }: { by: string; list: Instance[] }) {
	const t = useText();
	if (by) {
		const most = Math.max(...list.map(values[by] ?? (() => 0)), 0);
		const text = by === "p99" ? span(most) : by === "rate" ? rate(most) + "/s" : (100 * most).toFixed(0) + " %";
		return <p className="keys"><span className="key">{t.low}</span><span className="ramp" /><span className="key">{t.high}: {text}</span></p>;
	}
	return <p className="keys">{(Object.keys(signs) as Health[]).map((h) => <span key={h} className="key"><i className={"square s-" + h}>{signs[h]}</i>{t.legend[h]}</span>)}</p>;
}
