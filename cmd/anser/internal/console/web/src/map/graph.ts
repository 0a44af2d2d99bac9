// What the map shows: services, or groups of them, and the calls between them.
import type { Edge, Service } from "../api";
import { isProcess } from "../format";
import { type Tone, toneOf } from "../tone";

export interface GraphNode {
	id: string;
	label: string;
	members: number; // of a group; 0 for a service or a process
	process: boolean;
	rate: number;
	failed: number;
	p99: number;
	tone: Tone;
	stale: boolean;
}

export interface GraphEdge {
	from: string;
	to: string;
	rate: number;
	failed: number;
	p99: number;
}

export interface Graph {
	nodes: GraphNode[];
	edges: GraphEdge[];
}

const many = 30; // services, from which on they are grouped by themselves
const ofGroup = "group:";

// groupOf returns the group of a name: what is before its first dot or slash.
export function groupOf(name: string): string {
	const at = name.search(/[./]/);
	return at > 0 ? name.slice(0, at) : "";
}

export interface View {
	group: string; // "", "name" or "none"
	open: string; // the group whose services are shown
	filter: string;
	focus: string;
}

const worst: Record<Tone, number> = { dim: 0, good: 1, warn: 2, bad: 3 };

// graphOf returns what a view shows of the system.
export function graphOf(services: ReadonlyMap<string, Service>, edges: ReadonlyMap<string, Edge>, view: View): Graph {
	const grouped = view.group === "name" || (view.group !== "none" && services.size > many);
	const focus = view.focus;
	const idOf = (name: string) => {
		const group = grouped && !isProcess(name) ? groupOf(name) : "";
		return group && group !== view.open && name !== focus ? ofGroup + group : name;
	};
	const nodes = new Map<string, GraphNode>();
	const node = (name: string) => {
		const id = idOf(name);
		let n = nodes.get(id);
		if (!n) {
			n = { id, label: id.startsWith(ofGroup) ? id.slice(ofGroup.length) : name, members: 0, process: isProcess(name), rate: 0, failed: 0, p99: 0, tone: "dim", stale: false };
			nodes.set(id, n);
		}
		return n;
	};
	for (const s of services.values()) {
		const n = node(s.name);
		if (n.id.startsWith(ofGroup)) n.members++;
		n.rate += s.rate;
		n.failed += s.failed;
		n.p99 = Math.max(n.p99, s.p99);
		n.stale ||= Boolean(s.stale);
		if (worst[toneOf(s)] > worst[n.tone]) n.tone = toneOf(s);
	}
	const sums = new Map<string, GraphEdge>();
	for (const e of edges.values()) {
		const from = node(e.from).id, to = node(e.to).id;
		if (from === to && from.startsWith(ofGroup)) continue;
		const key = from + ">" + to;
		const sum = sums.get(key);
		if (sum) {
			sum.rate += e.rate;
			sum.failed += e.failed;
			sum.p99 = Math.max(sum.p99, e.p99);
		} else sums.set(key, { from, to, rate: e.rate, failed: e.failed, p99: e.p99 });
	}
	return narrowed({ nodes: [...nodes.values()].sort((a, b) => (a.id < b.id ? -1 : 1)), edges: [...sums.values()] }, view);
}

// narrowed keeps what the filter names, with its callers and callees.
function narrowed(g: Graph, view: View): Graph {
	const wanted = view.filter.toLowerCase();
	if (!wanted) return g;
	const hits = new Set(g.nodes.filter((n) => n.label.toLowerCase().includes(wanted)).map((n) => n.id));
	const kept = new Set(hits);
	for (const e of g.edges) {
		if (hits.has(e.from)) kept.add(e.to);
		if (hits.has(e.to)) kept.add(e.from);
	}
	return { nodes: g.nodes.filter((n) => kept.has(n.id)), edges: g.edges.filter((e) => hits.has(e.from) || hits.has(e.to)) };
}

// shape is equal for graphs that are laid out in the same way.
export const shape = (g: Graph): string => g.nodes.map((n) => n.id).join("\n") + "\n\n" + g.edges.map((e) => e.from + ">" + e.to).sort().join("\n");
