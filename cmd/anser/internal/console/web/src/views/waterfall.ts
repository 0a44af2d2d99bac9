// The order of the calls of a trace: a call is below the one that it is part of.
import type { Call } from "../api";

export interface Row {
	call: Call;
	depth: number;
	start: number; // ms since the epoch
	length: number; // ms
	network?: number; // ns that a client's call took longer than the server's, if it had one attempt
}

// rows returns the calls with their depth, in the order in which they began.
export function rows(calls: Call[]): Row[] {
	const list: Row[] = calls.map((call) => ({ call, depth: 0, start: Date.parse(call.time) + fraction(call.time) - call.duration / 1e6, length: call.duration / 1e6 }));
	list.sort((a, b) => a.start - b.start);
	const byID = new Map(list.filter((r) => r.call.span_id).map((r) => [r.call.span_id, r]));
	const children = new Map<Row | null, Row[]>();
	for (const r of list) {
		const parent = r.call.parent_id ? byID.get(r.call.parent_id) ?? null : null;
		children.set(parent === r ? null : parent, [...(children.get(parent === r ? null : parent) ?? []), r]);
	}
	const out: Row[] = [], seen = new Set<Row>();
	const visit = (r: Row, depth: number) => {
		if (seen.has(r)) return;
		seen.add(r);
		r.depth = depth;
		out.push(r);
		const below = children.get(r) ?? [], served = below.filter((c) => c.call.side === "server");
		if (r.call.side === "client" && !r.call.attempts?.length && served.length === 1) r.network = Math.max(r.call.duration - served[0].call.duration, 0);
		for (const c of below) visit(c, depth + 1);
	};
	for (const r of children.get(null) ?? []) visit(r, 0);
	for (const r of list) visit(r, 0); // of a circle, which a wrong process can make
	return out;
}

// fraction returns the part of a millisecond that Date leaves out.
function fraction(time: string): number {
	const digits = time.match(/\.(\d+)/)?.[1] ?? "";
	return digits.length > 3 ? Number("0." + digits.slice(3)) : 0;
}
