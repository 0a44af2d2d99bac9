// The pages that people look at, in one list: the tests visit all of them, and those with a picture are in docs/images.
//
//   site     the process that serves it: see start in system.mjs
//   path     its address there
//   ready    a selector of what it shows when it is complete
//   prepare  does what a viewer would do before a picture is taken, and before the page is checked
//   renews   the page renews itself
//   before, after, expects: see states.mjs, which has the states of the console that are no pages of their own
//   picture  its name in docs/images; size is that of the window, wait how long it is open before (ms), dark its colours,
//            still says that the demo must not change anything meanwhile
import { states } from "./states.mjs";

// settled waits until the console has shown a few seconds.
const settled = (page) => page.waitForFunction(() => document.querySelectorAll(".spark path, .uplot canvas").length > 0);

const pages = [
	{ name: "admin: overview", site: "callers", path: "/", ready: ".tiles", renews: true },
	{ name: "admin: overview of an instance", site: "instance", path: "/", ready: ".tiles", renews: true, picture: "admin", size: [1280, 760], wait: 40_000 },
	{ name: "admin: methods", site: "instance", path: "/methods", ready: "tbody tr", renews: true },
	{
		name: "admin: method", site: "instance", path: "/methods", ready: "tbody tr", renews: true,
		prepare: async (page) => {
			await page.locator("main td a").first().click();
			await page.waitForSelector(".bar");
		},
	},
	{ name: "admin: connections", site: "callers", path: "/connections", ready: "tbody tr", renews: true },
	{ name: "admin: clients", site: "callers", path: "/clients", ready: "tbody tr", renews: true, picture: "admin-clients", size: [1280, 620] },
	{ name: "admin: registries", site: "instance", path: "/registries", ready: "tbody tr", renews: true },
	{ name: "admin: failures", site: "hostile", path: "/failures", ready: "tbody tr", renews: true },
	{ name: "admin: slow calls", site: "instance", path: "/slow", ready: "section", renews: true, picture: "admin-slow", size: [1280, 620] },
	{ name: "admin: a trace", site: "hostile", path: "/trace?id=0123456789abcdef0123456789abcdef", ready: ".empty", renews: true },
	{ name: "admin: options", site: "instance", path: "/options", ready: "tbody tr", renews: true },
	{
		name: "admin: live calls", site: "callers", path: "/calls", ready: "#filter",
		prepare: async (page) => {
			await page.click("#filter button[type=submit]");
			await page.waitForSelector("#live tr");
			await page.click("#stop");
		},
	},
	{ name: "admin: profiles", site: "callers", path: "/debug/pprof/", ready: "tbody tr", renews: true },
	{ name: "admin: flight recorder", site: "hostile", path: "/flight/", ready: "tbody tr", renews: true },
	{ name: "admin: nothing to show", site: "hostile", path: "/clients", ready: ".empty", renews: true },
	{ name: "OpenAPI: methods", site: "gateway", path: "/openapi", ready: ".service a" },
	{
		name: "OpenAPI: a call", site: "gateway", path: "/openapi", ready: ".service a", picture: "openapi", size: [1280, 760],
		prepare: async (page) => {
			await page.locator(".service a", { hasText: "Mul" }).click();
			await page.fill("#body", '{"A": 7, "B": 8}');
			await page.click("#send");
			await page.waitForSelector("#answer .status.good");
		},
	},
	{ name: "tools for agents", site: "gateway", path: "/mcp", ready: "section", picture: "mcp", size: [1280, 620] },
	{ name: "OpenAPI: hostile names", site: "hostile gateway", path: "/openapi", ready: ".service a" },
	{ name: "tools for agents: hostile names", site: "hostile gateway", path: "/mcp", ready: "section" },
	{ name: "console: overview", site: "console", path: "/", ready: ".node.t-good", prepare: settled, picture: "console", size: [1360, 760], wait: 40_000 },
	{ name: "console: a chosen service", site: "console", path: "/#/?focus=front", ready: ".panel td a" },
	{ name: "console: services", site: "console", path: "/#/services", ready: "tbody tr" },
	{ name: "console: service", site: "console", path: "/#/services/front", ready: ".uplot", prepare: settled, picture: "console-service", size: [1360, 860], wait: 60_000, dark: true },
	{ name: "console: instances of a service", site: "console", path: "/#/services/arith?tab=instances", ready: "tbody tr" },
	{ name: "console: method", site: "console", path: "/#/services/arith/Arith.Mul", ready: ".uplot", prepare: settled },
	{ name: "console: instances", site: "console", path: "/#/instances", ready: ".grid canvas" },
	{ name: "console: calls", site: "console", path: "/#/calls", ready: "tbody tr" },
	{
		name: "console: trace", site: "console", path: "/#/calls", ready: "tbody tr td a[href*=trace]", picture: "console-trace", size: [1360, 520],
		prepare: async (page) => {
			await page.locator("tr:has-text('Front.Page') td a[href*=trace], tr td a[href*=trace]").first().click();
			await page.waitForSelector(".waterfall, .empty"); // processes forget calls
			if (await page.locator(".waterfall").count()) await page.locator(".waterfall button").first().click();
		},
	},
	{ name: "console: changes", site: "console", path: "/#/changes", ready: ".changes, .empty" },
	{ name: "console: registries", site: "console", path: "/#/registries", ready: "tbody tr" },
	{ name: "console: connections", site: "console", path: "/#/connections?service=arith", ready: "section:nth-of-type(2) tbody tr" },
	{ name: "console: services with files", site: "console", path: "/#/files", ready: "tbody tr:has-text('posts')" },
	{ name: "console: files", site: "console", path: "/#/files/posts?path=reports/2026", ready: "tbody tr:has-text('november.csv')", picture: "console-files", size: [1360, 520] },
	{
		name: "console: upload", site: "console", path: "/#/files/posts", ready: "tbody tr",
		prepare: async (page) => {
			await page.locator("button", { hasText: "Upload files" }).click();
			await page.setInputFiles(".dialog input[type=file]", [{ name: "readme.txt", mimeType: "text/plain", buffer: Buffer.from("x") }]);
			await page.click(".dialog button.main");
			await page.waitForSelector(".dialog .mark.warn"); // it exists already
		},
	},
	{
		name: "console: search", site: "console", path: "/#/", ready: ".node.t-good",
		prepare: async (page) => {
			await page.keyboard.press("Control+k");
			await page.fill(".palette input", "Arith.M");
			await page.waitForSelector(".palette li:has-text('Arith.Mul')");
		},
	},
	{
		name: "console: rules", site: "console", path: "/#/services/arith?tab=rules", ready: ".ruleform", picture: "console-rules", size: [1360, 900],
		prepare: async (page) => {
			await page.fill("textarea.code", "rules:\n  split:\n  - percent: 200\n    to: {zone: zone-a}\n");
			await page.locator(".ruleform summary").click();
			await page.waitForSelector(".ruleform [aria-invalid]");
			await page.focus("textarea.code");
			await page.keyboard.press("Control+End");
			await page.keyboard.type("  ");
			await page.keyboard.press("Control+Space");
			await page.waitForSelector("[role=option]");
		},
	},
	{
		name: "console: effect", site: "console", path: "/#/services/posts?tab=rules", ready: ".ruleform", picture: "console-effect", size: [1360, 1290], wait: 30_000, still: true,
		prepare: async (page) => {
			const until = new Date(Date.now() + 180_000).toISOString(); // it does not stay
			await page.fill("textarea.code", `rules:\n  split:\n  - name: one zone\n    percent: 80\n    to: {zone: zone-a}\n    until: ${until}\n`);
			await page.waitForSelector(".check .good");
			await page.getByLabel("Reason").fill("more for zone-a");
			await page.click("button.main");
			await page.waitForSelector(".effect .uplot");
		},
	},
	{ name: "console: canary and faults", site: "console", path: "/#/services/arith?tab=canary", ready: "input[type=range]" },
	{ name: "console: try a method", site: "console", path: "/#/services/arith?tab=try&method=Arith.Mul", ready: "form .main" },
	{ name: "console: calls of a service", site: "console", path: "/#/services/arith?tab=calls", ready: "tbody tr" },
	{ name: "console: audit log", site: "console", path: "/#/audit", ready: "tbody tr, .empty" },
	{ name: "console: no such page", site: "console", path: "/#/nothing", ready: "main h1" },
	{ name: "console: canaries", site: "console", path: "/#/canaries", ready: ".empty, .versions" },
	{ name: "console: Chinese", site: "console", path: "/#/services/front?lang=zh", ready: ".uplot" },
];

export const places = [...pages, ...states];
