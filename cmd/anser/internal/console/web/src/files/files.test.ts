import { expect, test } from "vitest";
import { above, join, order, request } from "./paths";

test("a request keeps any name", () => {
	const path = 'a&b=c/ä #<img src=x onerror="alert(1)">';
	const [at, q] = request({ service: "a/b", name: "x?y", path, instance: "" }, "content", { replace: "1" }).split(/\?(.*)/s);
	expect(at).toBe("files/a%2Fb/x%3Fy/content");
	expect([...new URLSearchParams(q)]).toEqual([["path", path], ["replace", "1"]]);
	expect(request({ service: "a", name: "File", path: "", instance: "" })).toBe("files/a/File");
});

test("a path has the folders above it", () => {
	expect(above("")).toEqual([]);
	expect(above("2026/reports")).toEqual([{ name: "2026", path: "2026" }, { name: "reports", path: "2026/reports" }]);
	expect([join("", "a"), join("a", "b")]).toEqual(["a", "a/b"]);
});

test("folders come first", () => {
	const list = [{ name: "b", dir: false }, { name: "z", dir: true }, { name: "a", dir: false }].map((e) => ({ ...e, size: 0, time: "" }));
	expect(list.toSorted((a, b) => order(a).localeCompare(order(b))).map((e) => e.name)).toEqual(["z", "a", "b"]);
});
