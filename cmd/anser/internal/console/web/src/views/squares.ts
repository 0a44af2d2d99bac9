// The places of the squares of the map of instances: a row of a name and its squares for each service.
import type { Instance } from "../api";
import { byName } from "../format";

export interface Square {
	x: number;
	y: number;
	instance: Instance;
}

export interface Group {
	name: string;
	x: number;
	y: number;
}

export interface Squares {
	squares: Square[];
	groups: Group[];
	height: number;
	size: number;
	label: number; // width of the names
}

const gap = 28; // between services that are next to each other

// arrange places squares in a width.
export function arrange(list: Instance[], width: number): Squares {
	const byService = new Map<string, Instance[]>();
	for (const i of list) {
		const of = byService.get(i.service);
		if (of) of.push(i);
		else byService.set(i.service, [i]);
	}
	const narrow = width < 620, label = narrow ? 0 : 190;
	const size = list.length > 400 ? 15 : 22, step = size + 3;
	const members = Math.max(0, ...[...byService.values()].map((l) => l.length));
	// Services with few instances are next to each other where there is room.
	const blocks = narrow ? 1 : Math.max(1, Math.min(Math.floor(width / (label + Math.max(members, 4) * step + gap)), byService.size));
	const block = Math.floor(width / blocks), columns = Math.max(1, Math.floor((block - label - (blocks > 1 ? gap : 0)) / step));
	const squares: Square[] = [], groups: Group[] = [];
	const names = [...byService.keys()].sort(), rows = Math.ceil(names.length / blocks);
	let height = 0;
	for (let b = 0; b < blocks; b++) {
		let y = 4;
		for (const name of names.slice(b * rows, (b + 1) * rows)) {
			groups.push({ name, x: b * block, y: narrow ? y + 8 : y + size / 2 });
			if (narrow) y += 18;
			const list = byService.get(name) ?? [];
			list.sort((a, c) => byName(a.id, c.id));
			list.forEach((instance, i) => squares.push({ x: b * block + label + (i % columns) * step, y: y + Math.floor(i / columns) * step, instance }));
			y += Math.ceil(list.length / columns) * step + 5;
		}
		height = Math.max(height, y);
	}
	return { squares, groups, height, size, label };
}

const idOf = (i: Instance): string => i.service + "\n" + i.id;

// shapeOf is equal for lists that are arranged in the same way.
export const shapeOf = (list: Instance[]): string => list.map(idOf).join("\n\n");

// renewed returns squares in the same places with what a list says about their instances now.
export function renewed(p: Squares, list: Instance[]): Squares {
	const now = new Map(list.map((i) => [idOf(i), i]));
	return { ...p, squares: p.squares.map((s) => ({ ...s, instance: now.get(idOf(s.instance)) ?? s.instance })) };
}

export type Health = "ok" | "slow" | "bad" | "out" | "stale";

// healthOf says how an instance is, compared with the average p99 of its service.
export function healthOf(i: Instance, average: number): Health {
	if (i.stale) return "stale";
	if (i.health === "ejected" || i.health === "down" || i.failed > 0) return "bad";
	if (i.state !== "up") return "out";
	return average > 0 && i.p99 > 2 * average ? "slow" : "ok";
}

// averages returns the average p99 of each service.
export function averages(list: Instance[]): Map<string, number> {
	const sums = new Map<string, [number, number]>();
	for (const i of list) {
		const [sum, n] = sums.get(i.service) ?? [0, 0];
		sums.set(i.service, [sum + i.p99, n + 1]);
	}
	return new Map([...sums].map(([name, [sum, n]]) => [name, sum / n]));
}
