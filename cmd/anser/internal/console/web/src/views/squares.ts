// The places of the squares of the map of instances: a row of a name and its squares for each service.
import type { Instance } from "../api";

export interface Square {
	x: number;
	y: number;
	instance: Instance;
}

export interface Group {
	name: string;
	y: number;
}

export interface Squares {
	squares: Square[];
	groups: Group[];
	height: number;
	size: number;
	label: number; // width of the names
}

// arrange places squares in a width.
export function arrange(list: Instance[], width: number): Squares {
	const byService = new Map<string, Instance[]>();
	for (const i of list) byService.set(i.service, [...(byService.get(i.service) ?? []), i]);
	const narrow = width < 620, label = narrow ? 0 : 190;
	const size = list.length > 400 ? 15 : 22, step = size + 3;
	const columns = Math.max(1, Math.floor((width - label) / step));
	const squares: Square[] = [], groups: Group[] = [];
	let y = 4;
	for (const name of [...byService.keys()].sort()) {
		groups.push({ name, y: narrow ? y + 8 : y + size / 2 });
		if (narrow) y += 18;
		const members = byService.get(name) ?? [];
		members.sort((a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }));
		members.forEach((instance, i) => squares.push({ x: label + (i % columns) * step, y: y + Math.floor(i / columns) * step, instance }));
		y += Math.ceil(members.length / columns) * step + 5;
	}
	return { squares, groups, height: y, size, label };
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
