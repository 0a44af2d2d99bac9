// The map of calls. It is moved and zoomed without drawing it anew.
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { never, soon } from "../frames";
import { party, rate, short, span } from "../format";
import { go, href, setQuery, useRoute } from "../route";
import { useText } from "../settings";
import { useStore } from "../store";
import { Choice, Filter, Spark } from "../ui";
import { type Graph, type GraphEdge, type GraphNode, graphOf, shape } from "./graph";
import { type Layout, type Place, box, place } from "./layout";
import { Panel } from "./panel";
import { useCamera } from "./camera";

const labelled = 16; // edges up to which all have their figures

export default function CallMap() {
	const t = useText();
	const services = useStore((s) => s.services), edges = useStore((s) => s.edges);
	const { query } = useRoute();
	const focus = query.get("focus") ?? "", group = query.get("group") ?? "", open = query.get("open") ?? "", filter = query.get("q") ?? "";
	const graph = useMemo(() => graphOf(services, edges, { group, open, filter, focus }), [services, edges, group, open, filter, focus]);
	const layout = useLayout(graph);
	const [size, setSize] = useState(0), far = size > 0;
	const camera = useCamera(layout, focus, setSize);
	const texts = useTexts(graph);
	const near = useMemo(() => {
		if (!graph.nodes.some((n) => n.id === focus)) return null;
		const set = new Set([focus]);
		for (const e of graph.edges) {
			if (e.from === focus) set.add(e.to);
			if (e.to === focus) set.add(e.from);
		}
		return set;
	}, [graph, focus]);
	if (!graph.nodes.length && !filter) return <div className="empty"><p>{t.noServices}</p><p>{t.noServicesAdvice}</p></div>;
	return (
		<div className="callmap">
			<div className="tools">
				<Filter label={t.filter} />
				<Choice name="group" label={t.grouping} list={[["", t.groupAuto], ["name", t.groupName], ["none", t.groupNone]]} />
				<span className="dim count">{t.mapOf(graph.nodes.length, graph.edges.length)}</span>
				<span className="zoom">
					<button type="button" onClick={() => camera.zoom(1.3)} aria-label={t.zoomIn} title={t.zoomIn}>+</button>
					<button type="button" onClick={() => camera.zoom(1 / 1.3)} aria-label={t.zoomOut} title={t.zoomOut}>−</button>
					<button type="button" onClick={camera.fitWhole}>{t.fit}</button>
				</span>
			</div>
			<div className={near ? "stage with" : "stage"}>
				<div ref={camera.frame} className="canvas live" style={{ height: `clamp(300px, ${Math.round(layout.height * 1.15) + 90}px, 64vh)` }}><svg ref={camera.svg} role="group" aria-label={t.map} onKeyDown={(e) => e.key === "Escape" && setQuery({ focus: undefined })}>
					<title>{t.mapHint}</title>
					<defs>
						{["plain", "failing", "near"].map((id) => (
							<marker key={id} id={"arrow-" + id} className={"arrow " + id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" /></marker>
						))}
					</defs>
					<g ref={camera.world}>
						{graph.edges.map((e) => {
							const a = layout.places.get(e.from), b = layout.places.get(e.to);
							if (!a || !b) return null;
							const close = near !== null && (e.from === focus || e.to === focus);
							return <EdgeLine key={e.from + ">" + e.to} a={a} b={b} bends={layout.bends.get(e.from + ">" + e.to) ?? straight} e={e} near={close} dim={near !== null && !close} label={!far && (close || (near === null && graph.edges.length <= labelled))} texts={texts} />;
						})}
						{graph.nodes.map((n) => {
							const p = layout.places.get(n.id);
							return p ? <NodeBox key={n.id} x={p.x} y={p.y} n={n} chosen={n.id === focus} dim={near !== null && !near.has(n.id)} size={size} texts={texts} /> : null;
						})}
					</g>
				</svg></div>
				{near ? <Panel name={focus} /> : null}
			</div>
		</div>
	);
}

// useLayout places the nodes again when there are others, not when figures change.
function useLayout(graph: Graph): Layout {
	const last = useRef<ReadonlyMap<string, Place>>(new Map());
	const key = shape(graph);
	const layout = useMemo(() => place(graph.nodes.map((n) => n.id), graph.edges.map((e) => [e.from, e.to]), last.current), [key]);
	useEffect(() => {
		last.current = layout.places;
	}, [layout]);
	return layout;
}

// Texts write the figures of what is drawn, by id, outside of React: they change every second, and the rest seldom does.
type Texts = Map<string, (of: GraphNode & GraphEdge) => void>;

function useTexts(graph: Graph): Texts {
	const texts = useRef<Texts>(new Map());
	useEffect(() => {
		const keys: object[] = [];
		const write = (id: string, of: GraphNode | GraphEdge) => {
			const f = texts.current.get(id);
			if (!f) return;
			keys.push(f);
			soon(f, () => f(of as GraphNode & GraphEdge));
		};
		for (const n of graph.nodes) write(n.id, n);
		for (const e of graph.edges) write(e.from + ">" + e.to, e);
		return () => keys.forEach(never);
	}, [graph]);
	return texts.current;
}

// useFigures is for one thing that is drawn: f writes its figures.
function useFigures<T>(texts: Texts, id: string, f: (of: T) => void): void {
	const latest = useRef(f);
	latest.current = f;
	useEffect(() => {
		texts.set(id, (of) => latest.current(of as T));
		return () => void texts.delete(id);
	}, [texts, id]);
}

// put changes a text that React has made.
function put(e: Element | null | undefined, text: string): void {
	const node = e?.firstChild;
	if (node && node.nodeValue !== text) node.nodeValue = text;
}

// curve returns the path of an edge, and where its figures are.
function curve(a: Place, b: Place, bends: Place[]): { d: string; x: number; y: number } {
	if (a === b) {
		const x = a.x + box.w;
		return { d: `M${x - 30} ${a.y}C${x - 30} ${a.y - 34} ${x + 26} ${a.y - 20} ${x} ${a.y + 14}`, x, y: a.y - 24 };
	}
	if (b.x <= a.x) { // back to an earlier column
		const x1 = a.x + box.w / 2, x2 = b.x + box.w / 2, under = Math.max(a.y, b.y) + box.h + 46;
		return { d: `M${x1} ${a.y + box.h}C${x1} ${under} ${x2} ${under} ${x2} ${b.y + box.h}`, x: (x1 + x2) / 2, y: under - 10 };
	}
	let x = a.x + box.w, y = a.y + box.h / 2, d = `M${x} ${y}`;
	const to = (x2: number, y2: number) => {
		const mid = (x2 - x) / 2;
		d += `C${x + mid} ${y} ${x2 - mid} ${y2} ${x2} ${y2}`;
		x = x2;
		y = y2;
	};
	for (const p of bends) {
		to(p.x, p.y + 7);
		d += `H${p.x + box.w}`;
		x = p.x + box.w;
	}
	const first = bends[0] ?? b;
	const label = bends.length ? { x: first.x + box.w / 2, y: first.y + 2 } : { x: (x + b.x) / 2, y: (y + b.y + box.h / 2) / 2 };
	to(b.x, b.y + box.h / 2);
	return { d, ...label };
}

const straight: Place[] = [];

interface EdgeProps {
	a: Place;
	b: Place;
	bends: Place[];
	e: GraphEdge;
	near: boolean;
	dim: boolean;
	label: boolean;
	texts: Texts;
}

const widthOf = (e: GraphEdge): string => (1 + Math.log10(1 + e.rate) * 0.9).toFixed(1);

const EdgeLine = memo(function EdgeLine({ a, b, bends, e, near, dim, label, texts }: EdgeProps) {
	const t = useText();
	const now = useRef(e), figures = useRef<SVGGElement>(null);
	const failing = e.failed > 0, { d, x, y } = useMemo(() => curve(a, b, bends), [a, b, bends]);
	const kind = failing ? "failing" : near ? "near" : "plain";
	const line = (e: GraphEdge) => `${rate(e.rate)}/s · ${span(e.p99)}`, bad = (e: GraphEdge) => `✕ ${rate(e.failed)}/s`;
	useFigures<GraphEdge>(texts, e.from + ">" + e.to, (e) => {
		now.current = e;
		put(figures.current?.children[0], line(e));
		put(figures.current?.children[1], bad(e));
	});
	const name = (path: SVGPathElement) => { // before the browser shows it
		const title = path.firstElementChild;
		if (title) title.textContent = t.edgeText(party(e.from), party(e.to), rate(now.current.rate), rate(now.current.failed), span(now.current.p99));
	};
	return (
		<g className={`edge ${kind}${dim ? " away" : ""}${e.rate ? "" : " idle"}`}>
			<path d={d} strokeWidth={widthOf(e)} markerEnd={`url(#arrow-${kind})`} />
			{near && e.rate ? <path className="flow" d={d} /> : null}
			<path className="touch" d={d} onPointerEnter={(v) => name(v.currentTarget)}><title /></path>
			{label ? (
				<g ref={figures} className="label">
					<text x={x} y={y - 3}>{line(e)}</text>
					{failing ? <text className="bad" x={x} y={y + 11}>{bad(e)}</text> : null}
				</g>
			) : null}
		</g>
	);
}, (p, q) => p.a === q.a && p.b === q.b && p.bends === q.bends && p.near === q.near && p.dim === q.dim && p.label === q.label && widthOf(p.e) === widthOf(q.e) && !p.e.rate === !q.e.rate && p.e.failed > 0 === q.e.failed > 0);

interface NodeProps {
	x: number;
	y: number;
	n: GraphNode;
	chosen: boolean;
	dim: boolean;
	size: number; // of the name, where figures cannot be read
	texts: Texts;
}

const NodeBox = memo(function NodeBox({ x, y, n, chosen, dim, size, texts }: NodeProps) {
	const t = useText(), far = size > 0;
	const { path, query } = useRoute();
	const link = useRef<HTMLAnchorElement>(null), figures = useRef<SVGTextElement>(null);
	const here = Object.fromEntries(query);
	const address = n.members ? href(path, { ...here, open: n.label, focus: undefined }) : href(path, { ...here, focus: chosen ? undefined : n.id });
	const line = (n: GraphNode) => (n.process ? t.callsOthers : n.members ? `${t.nServices(n.members)} · ${rate(n.rate)}/s` : `${rate(n.rate)}/s · p99 ${span(n.p99)}`);
	const shown = (n: GraphNode) => (n.failed > 0 ? `✕ ${rate(n.failed)}/s · ${rate(n.rate)}/s` : line(n));
	const name = (n: GraphNode) => `${party(n.label)}: ${line(n)}${n.failed > 0 ? `, ${rate(n.failed)} ${t.failedPerSecond}` : ""}`;
	useFigures<GraphNode>(texts, n.id, (n) => {
		put(figures.current, shown(n));
		link.current?.setAttribute("aria-label", name(n));
	});
	return (
		<a ref={link} href={address} className={`node t-${n.tone}${chosen ? " chosen" : ""}${dim ? " away" : ""}${n.process ? " process" : ""}${n.stale ? " stale" : ""}`} aria-label={name(n)} aria-current={chosen ? "true" : undefined}
			onDoubleClick={() => !n.members && !n.process && go(href(["services", n.id]))}>
			<title>{party(n.label)}</title>
			{n.members ? <rect className="back" x={x + 5} y={y + 5} width={box.w} height={box.h} rx={9} /> : null}
			<rect className="body" x={x} y={y} width={box.w} height={box.h} rx={9} />
			<rect className="side" x={x} y={y + 9} width={4} height={box.h - 18} rx={2} />
			{far || n.process || n.members ? null : <svg x={x + box.w - 58} y={y + box.h - 20} width={52} height={15}><Spark name={n.id} /></svg>}
			{far ? <text className="name" x={x + 13} y={y + box.h / 2 + 0.36 * size} fontSize={size}>{short(party(n.label), Math.floor((box.w - 20) / (0.56 * size)))}</text> : <text className="name" x={x + 13} y={y + 20} fontSize={13}>{short(party(n.label), 22)}</text>}
			{far ? null : <text ref={figures} className={n.failed > 0 ? "line bad" : "line"} x={x + 13} y={y + 38}>{shown(n)}</text>}
		</a>
	);
}, (p, q) => p.x === q.x && p.y === q.y && p.chosen === q.chosen && p.dim === q.dim && p.size === q.size && p.n.failed > 0 === q.n.failed > 0 && p.n.tone === q.n.tone && p.n.members === q.n.members && p.n.stale === q.n.stale);
