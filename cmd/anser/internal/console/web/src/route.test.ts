// @vitest-environment node
import { beforeAll, expect, test, vi } from "vitest";

let route: typeof import("./route");
beforeAll(async () => {
	vi.stubGlobal("location", { hash: "" });
	vi.stubGlobal("addEventListener", () => {});
	route = await import("./route");
});

test("an address keeps any name", () => {
	const name = 'a/b?c#d%<img src=x onerror="alert(1)">';
	const address = route.href(["services", name], { tab: "rules", q: "ä&=" });
	const { path, query } = route.parse(address);
	expect(path).toEqual(["services", name]);
	expect([query.get("tab"), query.get("q")]).toEqual(["rules", "ä&="]);
	expect(route.parse("#/services/%E0%A4%A").path).toEqual(["services", "%E0%A4%A"]);
});

test("what the console finds has an address of the page", () => {
	expect(route.hrefOf("/services/arith/methods/Arith.Mul")).toBe("#/services/arith/Arith.Mul");
	expect(route.hrefOf("/services/arith?tab=instances&instance=arith-1")).toBe("#/services/arith?tab=instances&instance=arith-1");
});
