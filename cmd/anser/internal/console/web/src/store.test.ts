import { expect, test } from "vitest";
import type { Edge, Service, System, Update } from "./api";
import { apply, begin, edgeKey, empty, silence } from "./store";

const service = (name: string, rate: number) => ({ name, rate }) as Service;
const edge = (from: string, to: string, rate: number) => ({ from, to, rate }) as Edge;
const parts = { processes: { known: 1, read: 1, failed: [] }, registries: [], changes: [] };
const first = { time: "t1", interval: 1e9, period: 1e9, services: [service("a", 1), service("b", 2)], edges: [edge("a", "b", 1)], ...parts } as System;

test("an update changes what it names, and keeps the rest", () => {
	const s1 = begin(empty, first);
	const s2 = apply(s1, { ...parts, time: "t2", interval: 4e9, period: 2e9, services: [service("a", 5)], edges: [], gone: { services: [], edges: [] }, changes: [{ time: "t2", kind: "left", text: "x" }] } as Update);
	expect(s2.services.get("a")?.rate).toBe(5);
	expect([s1.interval, s1.period, s2.interval, s2.period]).toEqual([1e9, 1e9, 4e9, 2e9]);
	expect(s2.services.get("b")).toBe(s1.services.get("b"));
	expect(s2.edges).toBe(s1.edges);
	expect(s2.changes).toHaveLength(1);
	expect(s2.trails.get("a")).toEqual([1, 5]);
	expect(s2.trails.get("b")).toEqual([2, 2]);
});

test("what is gone is removed", () => {
	const s = apply(begin(empty, first), { ...parts, time: "t2", services: [], edges: [], gone: { services: ["b"], edges: [["a", "b"]] } } as unknown as Update);
	expect([...s.services.keys()]).toEqual(["a"]);
	expect(s.edges.has(edgeKey("a", "b"))).toBe(false);
	expect(s.trails.has("b")).toBe(false);
});

test("the trail is bounded, and survives a new connection", () => {
	let s = begin(empty, first);
	for (let i = 0; i < 100; i++) s = apply(s, { ...parts, time: "t", services: [service("a", i)], edges: [], gone: { services: [], edges: [] } } as unknown as Update);
	expect(s.trails.get("a")).toHaveLength(60);
	expect(begin({ ...s, lost: true }, first).trails.get("a")?.slice(-2)).toEqual([99, 1]);
	expect(begin({ ...s, lost: true }, first).lost).toBe(false);
});

test("the trail has a rate for each second", () => {
	let s = begin(empty, { ...first, time: "2026-01-02T03:04:05Z" });
	for (const [time, rate] of [["2026-01-02T03:04:07.5Z", 2], ["2026-01-02T03:04:10Z", 3], ["2026-01-02T03:04:10.2Z", 4]] as const) {
		s = apply(s, { ...parts, time, services: [service("a", rate)], edges: [], gone: { services: [], edges: [] } } as unknown as Update);
	}
	expect(s.trails.get("a")).toEqual([1, 2, 2, 3, 3, 3, 4]);
	s = apply(s, { ...parts, time: "2026-01-02T04:04:10Z", services: [], edges: [], gone: { services: [], edges: [] } } as unknown as Update);
	expect(s.trails.get("a")).toEqual(Array(60).fill(4));
});

test("a console that sends less often may be silent for longer", () => {
	expect([silence(0), silence(1e9), silence(2e9), silence(1e10)]).toEqual([2_500, 2_500, 3_500, 4_000]);
});
