// Places the nodes of the map: callers to the left of what they call, and near it. d3-force finds the order of each column.
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";

export interface Place {
	x: number;
	y: number;
}

export interface Layout {
	places: Map<string, Place>;
	bends: Map<string, Place[]>; // where an edge, "from>to", passes the columns between its ends
	width: number;
	height: number;
}

export const box = { w: 178, h: 50 };
const gap = { x: 130, y: 20 };
const deepest = 16;
const tallest = 12; // nodes of a column, before it is split

// depths returns the column of each node: the longest way to it from a caller. Calls that close a circle do not count.
export function depths(names: string[], edges: [string, string][]): Map<string, number> {
	const out = new Map<string, string[]>(names.map((n) => [n, []])), called = new Set<string>();
	for (const [from, to] of edges) {
		if (from === to || !out.has(from) || !out.has(to)) continue;
		out.get(from)?.push(to);
		called.add(to);
	}
	const depth = new Map(names.map((n) => [n, 0])), state = new Map<string, "open" | "done">(), order: string[] = [], kept: [string, string][] = [];
	const visit = (from: string) => {
		state.set(from, "open");
		for (const to of out.get(from) ?? []) {
			if (state.get(to) === "open") continue;
			kept.push([from, to]);
			if (!state.has(to)) visit(to);
		}
		state.set(from, "done");
		order.push(from);
	};
	for (const n of [...names.filter((n) => !called.has(n)), ...names]) if (!state.has(n)) visit(n);
	const after = new Map<string, string[]>();
	for (const [from, to] of kept) after.set(from, [...(after.get(from) ?? []), to]);
	for (const from of order.reverse()) {
		for (const to of after.get(from) ?? []) depth.set(to, Math.max(depth.get(to) ?? 0, Math.min((depth.get(from) ?? 0) + 1, deepest)));
	}
	return depth;
}

interface Node extends SimulationNodeDatum {
	id: string;
	column: number;
	edge?: string; // a place where this edge passes a column
}

const most = 600; // places where edges pass columns

// place returns the places. Nodes that had one stay as near to it as they can.
export function place(names: string[], edges: [string, string][], before: ReadonlyMap<string, Place>): Layout {
	const depth = depths(names, edges);
	const column = (id: string) => depth.get(id) ?? 0;
	const nodes: Node[] = names.map((id, i) => ({ id, column: column(id), y: before.get(id)?.y ?? ((i * 137) % 400) }));
	const links: { source: string; target: string }[] = [];
	let passes = 0;
	for (const [from, to] of edges) {
		if (from === to || !depth.has(from) || !depth.has(to)) continue;
		let last = from;
		for (let c = column(from) + 1; c < column(to) && passes < most; c++, passes++) {
			const id = `${from}>${to} ${c}`;
			nodes.push({ id, column: c, y: before.get(to)?.y ?? (passes * 61) % 400, edge: from + ">" + to });
			links.push({ source: last, target: id });
			last = id;
		}
		links.push({ source: last, target: to });
	}
	for (const n of nodes) n.x = n.column * (box.w + gap.x);
	const simulation = forceSimulation(nodes)
		.force("x", forceX<Node>((n) => n.column * (box.w + gap.x)).strength(1))
		.force("y", forceY(0).strength(0.03))
		.force("links", forceLink<Node, { source: string; target: string }>(links).id((n) => n.id).strength(0.25).distance(120))
		.force("apart", forceManyBody<Node>().strength((n) => (n.edge ? -60 : -260)))
		.force("boxes", forceCollide<Node>((n) => (n.edge ? 12 : box.h * 0.65)))
		.stop();
	simulation.tick(nodes.length > 250 ? 60 : 160);
	return columns(nodes);
}

// columns moves the nodes onto columns in which no two overlap.
function columns(nodes: Node[]): Layout {
	const places = new Map<string, Place>(), bends = new Map<string, Place[]>();
	let x = 0, top = 0, bottom = 0;
	const last = Math.max(0, ...nodes.map((n) => n.column));
	for (let c = 0; c <= last; c++) {
		const list = nodes.filter((n) => n.column === c).sort((a, b) => (a.y ?? 0) - (b.y ?? 0) || a.id.localeCompare(b.id));
		const boxes = list.filter((n) => !n.edge).length;
		if (!boxes) continue;
		const parts = Math.ceil(boxes / tallest);
		for (let part = 0; part < parts; part++) {
			// Edges pass a column that is split where the first part is.
			const column = list.filter((n, i) => (n.edge ? part === 0 : i % parts === part));
			let next = -Infinity;
			const ys = column.map((n) => {
				const y = Math.max((n.y ?? 0) - height(n) / 2, next);
				next = y + height(n) + (n.edge ? 8 : gap.y);
				return y;
			});
			const shift = ys.reduce((sum, y, i) => sum + y + height(column[i]) / 2 - (column[i].y ?? 0), 0) / Math.max(ys.length, 1);
			column.forEach((n, i) => {
				const at = { x, y: Math.round(ys[i] - shift) };
				if (n.edge) bends.set(n.edge, [...(bends.get(n.edge) ?? []), at]);
				else places.set(n.id, at);
				top = Math.min(top, at.y);
				bottom = Math.max(bottom, at.y + height(n));
			});
			x += box.w + (part < parts - 1 ? 24 : gap.x);
		}
	}
	for (const p of [...places.values(), ...[...bends.values()].flat()]) p.y -= top;
	return { places, bends, width: Math.max(x - gap.x, box.w), height: Math.max(bottom - top, box.h) };
}

const height = (n: Node): number => (n.edge ? 14 : box.h);
