// The places of the squares of the map of instances: a row of a name and its squares for each service. In a large system
// the squares are small, and each is for some instances of a service, if there are very many.
import type { MapRow } from "../api";

export interface Square {
	x: number;
	y: number;
	row: number; // of the service
	first: number; // instance of the service
	count: number; // instances
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
	step: number;
	label: number; // width of the names
}

const gap = 28; // between services that are next to each other
const tallest = 2_400; // px, beyond which a square is for several instances

// Sizes of squares with the space after them, by the number of instances up to which they are used.
const sizes = [[400, 22, 25], [2_500, 15, 18], [6_000, 11, 13], [14_000, 8, 10], [Infinity, 6, 7]];

// arrange places squares in a width.
export function arrange(rows: readonly { service: string; looks: string }[], width: number): Squares {
	const total = rows.reduce((n, r) => n + r.looks.length, 0), [, size, step] = sizes.find(([most]) => total <= most) ?? sizes[0];
	for (let per = 1; ; per++) {
		const p = placed(rows, width, size, step, per);
		const names = width < 620 ? 18 * rows.length : 0;
		if (p.height - names <= tallest || per === 64 || per >= total) return p;
	}
}

function placed(rows: readonly { service: string; looks: string }[], width: number, size: number, step: number, per: number): Squares {
	const narrow = width < 620, label = narrow ? 0 : 190;
	const members = rows.reduce((n, r) => Math.max(n, Math.ceil(r.looks.length / per)), 0);
	// Services with few instances are next to each other where there is room.
	const blocks = narrow ? 1 : Math.max(1, Math.min(Math.floor(width / (label + Math.max(members, 4) * step + gap)), rows.length));
	const block = Math.floor(width / blocks), columns = Math.max(1, Math.floor((block - label - (blocks > 1 ? gap : 0)) / step));
	const squares: Square[] = [], groups: Group[] = [];
	const high = Math.ceil(rows.length / blocks);
	let height = 0;
	for (let b = 0; b < blocks; b++) {
		let y = 4;
		for (let row = b * high; row < Math.min((b + 1) * high, rows.length); row++) {
			const { service, looks } = rows[row];
			groups.push({ name: service, x: b * block, y: narrow ? y + 8 : y + Math.max(size, 12) / 2 });
			if (narrow) y += 18;
			const n = Math.ceil(looks.length / per);
			for (let i = 0; i < n; i++) squares.push({ x: b * block + label + (i % columns) * step, y: y + Math.floor(i / columns) * step, row, first: i * per, count: Math.min(per, looks.length - i * per) });
			y += Math.max(Math.ceil(n / columns) * step, narrow ? 0 : 15) + 5;
		}
		height = Math.max(height, y);
	}
	return { squares, groups, height, size, step, label };
}

// shapeOf is equal for rows that are arranged in the same way.
export const shapeOf = (rows: readonly MapRow[]): string => rows.map((r) => `${r.looks.length} ${r.service}`).join("\n");

export type Look = "o" | "s" | "b" | "d" | "t" | "n";

// worst are the looks, the one that matters most first.
export const worst: Look[] = ["b", "t", "s", "d", "n", "o"];

// lookOf is the look of a square: that of its instance, or the worst one of several.
export function lookOf(s: Square, rows: readonly MapRow[]): Look {
	const looks = rows[s.row]?.looks ?? "";
	if (s.count === 1) return (looks[s.first] ?? "n") as Look;
	const part = looks.slice(s.first, s.first + s.count);
	return worst.find((l) => part.includes(l)) ?? "n";
}

// shareOf is the largest share of the instances of a square, from 0 to 1.
export function shareOf(s: Square, rows: readonly MapRow[]): number {
	const shares = rows[s.row]?.shares ?? "";
	let most = 0;
	for (let i = s.first; i < s.first + s.count; i++) most = Math.max(most, parseInt(shares[i] ?? "0", 36));
	return most / 32;
}

// countsOf counts the instances of a square by their looks.
export function countsOf(s: Square, rows: readonly MapRow[]): [Look, number][] {
	const part = (rows[s.row]?.looks ?? "").slice(s.first, s.first + s.count);
	return worst.map((l): [Look, number] => [l, part.split(l).length - 1]).filter(([, n]) => n > 0);
}

// at returns the number of the square at a place, or -1.
export const at = (p: Squares, x: number, y: number): number => p.squares.findIndex((s) => x >= s.x - 1 && x < s.x + p.step - 1 && y >= s.y - 1 && y < s.y + p.step - 1);

// step returns the square that a key leads to.
export function step(p: Squares, at: number, key: string): number | null {
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
