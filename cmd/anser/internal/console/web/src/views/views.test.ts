import { expect, test } from "vitest";
import type { Call, Instance } from "../api";
import { rowsOf } from "../charts/heat-rows";
import { arrange, averages, healthOf } from "./squares";
import { rows } from "./waterfall";

const call = (id: string, parent: string, time: string, ms: number) => ({ span_id: id, parent_id: parent, time, duration: ms * 1e6, side: "server", method: id }) as Call;

test("a call is below the one that it is part of", () => {
	const list = rows([
		call("c", "b", "2026-01-01T00:00:00.030Z", 10), call("a", "", "2026-01-01T00:00:00.100Z", 100), call("b", "a", "2026-01-01T00:00:00.040Z", 30), call("lone", "gone", "2026-01-01T00:00:00.200Z", 5),
	]);
	expect(list.map((r) => [r.call.method, r.depth])).toEqual([["a", 0], ["b", 1], ["c", 2], ["lone", 0]]);
	expect(list[0].start).toBe(Date.parse("2026-01-01T00:00:00Z"));
});

test("a circle of calls is shown once", () => {
	expect(rows([call("a", "b", "2026-01-01T00:00:00Z", 1), call("b", "a", "2026-01-01T00:00:00Z", 1), call("self", "self", "2026-01-01T00:00:00Z", 1)])).toHaveLength(3);
});

test("digits below a millisecond count", () => {
	const [r] = rows([call("a", "", "2026-01-01T00:00:00.001500Z", 1)]);
	expect(r.start - Date.parse("2026-01-01T00:00:00Z")).toBeCloseTo(0.5, 3);
});

const instance = (id: string, more: Partial<Instance> = {}) => ({ service: "s", id, state: "up", health: "ok", failed: 0, p99: 10, ...more }) as Instance;

test("an instance is as bad as the worst that is known", () => {
	const mean = averages([instance("1"), instance("2", { p99: 30 })]).get("s") ?? 0;
	expect(mean).toBe(20);
	const healths = [instance("a"), instance("b", { p99: 50 }), instance("c", { failed: 1 }), instance("d", { health: "ejected" }), instance("e", { state: "draining" }), instance("f", { stale: "2026-01-01T00:00:00Z", health: "down" })];
	expect(healths.map((i) => healthOf(i, mean))).toEqual(["ok", "slow", "bad", "bad", "out", "stale"]);
});

test("1,000 squares fit the width, in the order of their numbers", () => {
	const { squares, height, size } = arrange(Array.from({ length: 1000 }, (_, i) => instance("s-" + i)), 1000);
	expect(squares.map((s) => s.instance.id).slice(9, 12)).toEqual(["s-9", "s-10", "s-11"]);
	expect(squares.every((s) => s.x + size <= 1000 && s.y + size <= height)).toBe(true);
	expect(new Set(squares.map((s) => s.x + "," + s.y)).size).toBe(1000);
});

test("a heat map shows the rows with calls, and one more on each side", () => {
	expect(rowsOf({ from: "", step: 1, bounds: [1, 2, 4, 8, 16, 32], counts: [null, [0, 0, 3, 0, 0, 0], [0, 0, 0, 1, 0, 0]] })).toEqual([1, 4]);
	expect(rowsOf({ from: "", step: 1, bounds: [1, 2], counts: [null] })).toEqual([0, 1]);
});
