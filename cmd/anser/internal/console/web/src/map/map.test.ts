import { expect, test } from "vitest";
import type { Edge, Service } from "../api";
import { fitted, nameSize } from "./camera";
import { graphOf, groupOf, shape } from "./graph";
import { box, depths, place } from "./layout";

const services = (...names: string[]) => new Map(names.map((name) => [name, { name, rate: 1, failed: 0, p99: 5 } as Service]));
const edges = (...list: [string, string][]) => new Map(list.map(([from, to]) => [from + ">" + to, { from, to, rate: 2, failed: 0, p99: 7 } as Edge]));
const view = { group: "", open: "", filter: "", focus: "" };

test("callers are left of what they call, and a circle ends", () => {
	const d = depths(["a", "b", "c"], [["a", "b"], ["b", "c"], ["a", "c"]]);
	expect([d.get("a"), d.get("b"), d.get("c")]).toEqual([0, 1, 2]);
	expect([...depths(["a", "b", "c"], [["a", "b"], ["b", "a"], ["b", "c"], ["c", "a"]]).values()]).toEqual([0, 1, 2]);
});

test("no two boxes overlap, and an edge passes between them", () => {
	const names = Array.from({ length: 60 }, (_, i) => "s" + i);
	const list = names.flatMap((n, i): [string, string][] => [2 * i + 1, 2 * i + 2, i + 7].filter((k) => k < 60).map((k) => [n, "s" + k]));
	const { places, bends } = place(names, list, new Map());
	const all = [...places.values()];
	all.forEach((a, i) => all.slice(i + 1).forEach((b) => expect(Math.abs(a.x - b.x) >= box.w || Math.abs(a.y - b.y) >= box.h).toBe(true)));
	expect(bends.size).toBeGreaterThan(0);
});

test("names are readable where figures are not, and fit their boxes", () => {
	expect(nameSize(1)).toBe(0);
	expect(nameSize(0.5) * 0.5).toBeGreaterThanOrEqual(12);
	expect(nameSize(0.34) * 0.34).toBeGreaterThanOrEqual(12); // the demo on a telephone
	for (const k of [0.12, 0.2, 0.3, 0.54]) expect(nameSize(k)).toBeLessThan(box.h);
	expect(new Set(Array.from({ length: 44 }, (_, i) => nameSize(0.12 + i / 100))).size).toBeLessThan(6); // few scales draw anew
});

test("a map that is too large to read begins at its left end, or at the focus, and is whole on demand", () => {
	const names = Array.from({ length: 100 }, (_, i) => "s" + i);
	const layout = place(names, names.slice(1).map((n, i): [string, string] => ["s" + Math.floor(i / 6) * 3, n]), new Map());
	const phone = { width: 366, height: 540 };
	const sight = (at: { x: number; y: number; k: number }) => names.filter((n) => {
		const p = layout.places.get(n) as { x: number; y: number }, x = at.x + p.x * at.k, y = at.y + p.y * at.k;
		return x >= 0 && y >= 0 && x + box.w * at.k <= phone.width && y + box.h * at.k <= phone.height;
	});
	const whole = fitted(layout, phone, true, "");
	expect(sight(whole)).toHaveLength(100);
	expect(nameSize(whole.k) * whole.k).toBeLessThan(12);
	for (const focus of ["", "s99"]) {
		const at = fitted(layout, phone, false, focus);
		expect(nameSize(at.k) * at.k).toBeGreaterThanOrEqual(12);
		expect(sight(at)).toContain(focus || "s0");
		expect(sight(at).length).toBeGreaterThan(3);
	}
	const few = place(["a", "b"], [["a", "b"]], new Map());
	expect(fitted(few, phone, false, "b")).toEqual(fitted(few, phone, true, ""));
});

test("many services are grouped by name, and a group opens", () => {
	const many = services(...Array.from({ length: 40 }, (_, i) => (i % 2 ? "shop." : "pay.") + i));
	const calls = edges(["shop.1", "pay.2"], ["shop.3", "pay.4"], ["shop.1", "shop.3"]);
	const g = graphOf(many, calls, view);
	expect(g.nodes.map((n) => [n.label, n.members, n.rate])).toEqual([["pay", 20, 20], ["shop", 20, 20]]);
	expect(g.edges).toEqual([{ from: "group:shop", to: "group:pay", rate: 4, failed: 0, p99: 7 }]);
	expect(graphOf(many, calls, { ...view, open: "shop" }).nodes).toHaveLength(21);
	expect(graphOf(many, calls, { ...view, group: "none" }).nodes).toHaveLength(40);
	expect(groupOf("front")).toBe("");
});

test("a filter keeps what it names with its callers and callees", () => {
	const g = graphOf(services("a", "b", "c", "d"), edges(["a", "b"], ["b", "c"], ["c", "d"]), { ...view, filter: "B" });
	expect(g.nodes.map((n) => n.id)).toEqual(["a", "b", "c"]);
	expect(shape(g)).toBe("a\nb\nc\n\na>b\nb>c");
});
