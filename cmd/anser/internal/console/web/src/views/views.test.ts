import { expect, test } from "vitest";
import type { Call } from "../api";
import { rowsOf } from "../charts/heat-rows";
import { arrange, at, countsOf, lookOf, shareOf, step } from "./squares";
import { rows } from "./waterfall";

const call = (id: string, parent: string, time: string, ms: number) => ({ span_id: id, parent_id: parent, time, duration: ms * 1e6, side: "server", method: id }) as Call;

test("a call is below the one that it is part of", () => {
	const list = rows([
		call("c", "b", "2026-01-01T00:00:00.030Z", 10), call("a", "", "2026-01-01T00:00:00.100Z", 100), call("b", "a", "2026-01-01T00:00:00.040Z", 30), call("lone", "gone", "2026-01-01T00:00:00.200Z", 5),
	]);
	expect(list.map((r) => [r.call.method, r.depth])).toEqual([["a", 0], ["b", 1], ["c", 2], ["lone", 0]]);
	expect(list[0].start).toBe(Date.parse("2026-01-01T00:00:00Z"));
});

test("what a client took longer than its server is the network", () => {
	const sent = (id: string, ms: number, more = {}) => ({ ...call(id, "", "2026-01-01T00:00:00.100Z", ms), side: "client", ...more }) as Call;
	const [once, , again] = rows([
		sent("once", 12), call("served", "once", "2026-01-01T00:00:00.099Z", 9), sent("again", 50, { time: "2026-01-01T00:00:01Z", attempts: [{}] }), call("last", "again", "2026-01-01T00:00:01Z", 9),
	]);
	expect([once.network, again.call.method, again.network]).toEqual([3e6, "again", undefined]);
});

test("a circle of calls is shown once", () => {
	expect(rows([call("a", "b", "2026-01-01T00:00:00Z", 1), call("b", "a", "2026-01-01T00:00:00Z", 1), call("self", "self", "2026-01-01T00:00:00Z", 1)])).toHaveLength(3);
});

test("digits below a millisecond count", () => {
	const [r] = rows([call("a", "", "2026-01-01T00:00:00.001500Z", 1)]);
	expect(r.start - Date.parse("2026-01-01T00:00:00Z")).toBeCloseTo(0.5, 3);
});

const systemOf = (...sizes: number[]) => sizes.map((n, i) => ({ service: `s-${i}`, looks: "o".repeat(n) }));

test("1,000 squares fit the width, one for each instance", () => {
	const { squares, height, size } = arrange(systemOf(1000), 1000);
	expect(squares.map((s) => s.first)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
	expect(squares.every((s) => s.count === 1 && s.x + size <= 1000 && s.y + size <= height)).toBe(true);
	expect(new Set(squares.map((s) => s.x + "," + s.y)).size).toBe(1000);
});

test("the squares of a very large system are for several instances, and for all of them", () => {
	for (const width of [360, 1060]) {
		for (const rows of [systemOf(...Array<number>(60).fill(167)), systemOf(...Array<number>(60).fill(1000)), systemOf(60_000), systemOf(10_001, 1, 1)]) {
			const { squares, height, size } = arrange(rows, width);
			rows.forEach((r, row) => expect(squares.filter((s) => s.row === row).reduce((n, s) => n + s.count, 0)).toBe(r.looks.length));
			expect(squares.every((s) => s.count > 0 && s.x + size <= width)).toBe(true);
			expect(height - (width < 620 ? 18 * rows.length : 0)).toBeLessThanOrEqual(2400);
		}
	}
	expect(arrange(systemOf(...Array<number>(60).fill(167)), 1060).squares).toHaveLength(10_020);
});

test("a square of several instances looks as the worst of them", () => {
	const rows = [{ service: "s", looks: "oosbotn", shares: "0123gw0" }], square = (first: number, count: number) => ({ x: 0, y: 0, row: 0, first, count });
	expect([square(0, 1), square(0, 3), square(2, 2), square(4, 2), square(6, 1)].map((s) => lookOf(s, rows))).toEqual(["o", "s", "b", "t", "n"]);
	expect(shareOf(square(3, 3), rows)).toBe(1);
	expect(shareOf(square(4, 1), rows)).toBe(0.5);
	expect(countsOf(square(0, 7), rows)).toEqual([["b", 1], ["t", 1], ["s", 1], ["n", 1], ["o", 3]]);
});

test("the arrow keys reach the squares around one, and the pointer those below it", () => {
	const p = arrange(systemOf(100), 1000), columns = p.squares.findIndex((s) => s.y > p.squares[0].y);
	expect([step(p, -1, "ArrowRight"), step(p, 0, "ArrowDown"), step(p, columns + 1, "ArrowUp"), step(p, 5, "End"), step(p, 5, "x")]).toEqual([0, columns, 1, 99, null]);
	expect(p.squares.map((s) => at(p, s.x + 1, s.y + 1))).toEqual(p.squares.map((_, i) => i));
	expect(at(p, 0, 0)).toBe(-1);
});

test("a heat map shows the rows with calls, and one more on each side", () => {
	expect(rowsOf({ from: "", step: 1, bounds: [1, 2, 4, 8, 16, 32], counts: [null, [0, 0, 3, 0, 0, 0], [0, 0, 0, 1, 0, 0]] })).toEqual([1, 4]);
	expect(rowsOf({ from: "", step: 1, bounds: [1, 2], counts: [null] })).toEqual([0, 1]);
});
