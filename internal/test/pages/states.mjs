// What a viewer of the console can reach besides its pages: dialogs, changes that run, what is read-only, empty, loading,
// wrong, lost or hostile, and the second language. They are part of the list in places.mjs, whose fields they have, and
//
//   before   does something before the page is opened
//   after    takes back what a place has changed, when it has been looked at
//   expects  the errors in the browser's console that belong to the place
const json = (body, status = 200) => ({ status, contentType: "application/json", body: JSON.stringify(body) });
const lost = /ERR_|Failed to load resource/;

// change sends a change to the console that a page shows.
async function change(page, method, path, data) {
	const { origin } = new URL(page.url());
	const { csrf } = await (await page.request.get(origin + "/api/session")).json();
	return page.request.fetch(`${origin}/api/${path}`, { method, headers: { "X-CSRF-Token": csrf, "Content-Type": "application/json" }, data });
}

// edit opens the rules of a service with another text.
const edit = (text) => async (page) => {
	await page.fill("textarea.code", text);
	await page.waitForSelector(".check .good");
};

// version makes the next version of the rules of posts.
async function version(page, percent) {
	const { origin } = new URL(page.url());
	const { version } = await (await page.request.get(origin + "/api/rules/posts")).json();
	const text = `rules:\n  split:\n  - name: one zone\n    percent: ${percent}\n    to: {zone: zone-a}\n`;
	await change(page, "PUT", "rules/posts", { text, version, reason: `${percent} % for zone-a` });
}
const withoutRules = (page) => change(page, "POST", "rules/posts/restore", { version: 0, reason: "as before" });

// logIn logs in as a user who may look.
async function logIn(page) {
	await page.getByLabel("User").fill("viewer");
	await page.getByLabel("Password").fill("correct horse battery");
	await page.click(".login button.main");
}

const instance = (buttons) => ({
	site: "console", path: "/#/services/posts?tab=instances", ready: "tbody button.small",
	prepare: async (page) => {
		await page.locator("tbody tr:has-text('posts-2') button.small").click();
		await buttons(page.locator(".dialog"));
		await page.waitForSelector(".dialog .outcome .icon");
	},
});

export const states = [
	// Without a login.
	{ name: "console: login", site: "users", path: "/", ready: ".frame:not(:has(.rail, .find, #state)) .login input" },
	{
		name: "console: a login that is refused", site: "users", path: "/", ready: ".login input", expects: /401/,
		prepare: async (page) => {
			await page.getByLabel("User").fill("viewer");
			await page.getByLabel("Password").fill("not that one");
			await page.click(".login button.main");
			await page.waitForSelector(".login .bad");
		},
	},
	{ name: "console: login in Chinese", site: "users", path: "/#/?lang=zh", ready: ".login input" },

	// A user who may look, and nothing else.
	...[["rules", "?tab=rules", ".editor"], ["canary and faults", "?tab=canary", "section .why"], ["try a method", "?tab=try&method=Posts.Query", "form .main:disabled"]].map(([name, tab, ready]) => ({
		name: `console: read-only ${name}`, site: "users", path: "/#/services/posts" + tab, ready: ".login input",
		prepare: async (page) => {
			await logIn(page);
			await page.waitForSelector(ready);
			await page.waitForSelector(".why:has-text('viewer has the role')");
		},
	})),
	{
		name: "console: read-only files", site: "users", path: "/#/files/posts", ready: ".login input",
		prepare: async (page) => {
			await logIn(page);
			await page.waitForSelector(".why:has-text('Downloads need')");
		},
	},

	// Nothing to show.
	{ name: "console: an empty system", site: "empty", path: "/", ready: ".empty:has-text('anser demo')" },
	{ name: "console: no services", site: "empty", path: "/#/services", ready: "main .empty" },
	{ name: "console: no instances", site: "empty", path: "/#/instances", ready: "main .empty" },
	{ name: "console: no connections", site: "empty", path: "/#/connections", ready: "main .empty" },
	{ name: "console: no folders", site: "empty", path: "/#/files", ready: "main .empty" },
	{ name: "console: nothing audited", site: "empty", path: "/#/audit", ready: "main .empty" },
	{ name: "console: no process is known", site: "empty", path: "/#/registries", ready: "section .empty:has-text('No process is known')" },
	{ name: "console: a filter without a match", site: "console", path: "/#/services?q=nothing", ready: "main .empty" },
	{ name: "console: a trace that is gone", site: "console", path: "/#/trace/0123456789abcdef0123456789abcdef", ready: "main .empty" },
	{
		name: "console: a search without a match", site: "console", path: "/#/", ready: ".node.t-good",
		prepare: async (page) => {
			await page.keyboard.press("Control+k");
			await page.fill(".palette input", "no such thing");
			await page.waitForSelector(".palette .empty");
		},
	},

	// Loading, wrong and lost.
	{ name: "console: loading", site: "console", path: "/#/services/front", ready: "h1:has-text('front') + .skeleton", before: (page) => page.route("**/api/services/front*", () => {}) },
	{ name: "console: connecting", site: "console", path: "/", ready: ".skeleton", before: (page) => page.route("**/api/events*", () => {}) },
	{
		name: "console: an error of the console", site: "console", path: "/#/services/front", ready: ".trouble", expects: lost,
		before: (page) => page.route("**/api/services/front*", (route) => route.fulfill(json({ error: "the registry has not answered in time", advice: "look at the registries" }, 504))),
	},
	{ name: "console: no such service", site: "console", path: "/#/services/nothing", ready: ".trouble", expects: lost },
	{ name: "console: no such folder", site: "console", path: "/#/files/posts?path=nowhere", ready: ".trouble", expects: lost },
	{
		name: "console: a page that fails", site: "console", path: "/#/services/front", ready: ".trouble[role=alert]", expects: /TypeError|error/,
		before: (page) => page.route("**/api/services/front*", (route) => route.fulfill(json({ service: {} }))),
	},
	{
		name: "console: a console that never answered", site: "console", path: "/", ready: ".banner", expects: lost,
		before: (page) => page.route("**/api/**", (route) => route.abort()),
	},
	{
		name: "console: a lost connection", site: "cable", path: "/", ready: ".node.t-good", expects: lost,
		prepare: async (page, system) => {
			system.cable.set(true);
			await page.waitForSelector(".frame.lost .banner:has-text('data from')");
		},
		after: async (page, system) => system.cable.set(false),
	},
	{ name: "console: a registry that does not answer", site: "unreachable", path: "/", ready: ".health .bad:has-text('has not answered')" },
	{ name: "console: registries that do not answer", site: "unreachable", path: "/#/registries", ready: ".live:has(tbody .mark.bad) section .empty:has-text('No process is known')" },

	// Changes.
	{
		name: "console: an instance", ...instance(async (dialog) => {
			await dialog.getByLabel("Reason").fill("new disk");
			await dialog.locator("button", { hasText: "Drain" }).click();
		}),
		after: (page) => change(page, "POST", "instances", { service: "posts", instance: "posts-2", state: "up", reason: "as before" }),
	},
	{
		name: "console: the weight of an instance", ...instance(async (dialog) => {
			await dialog.getByLabel("Weight", { exact: true }).fill("50");
			await dialog.locator("fieldset:nth-of-type(2) button").click();
		}),
		after: (page) => change(page, "POST", "instances", { service: "posts", instance: "posts-2", weight: 0, reason: "as before" }),
	},
	{
		name: "console: a tag of an instance", ...instance(async (dialog) => {
			await dialog.getByLabel("Tag", { exact: true }).fill("colour");
			await dialog.getByLabel("Value, empty to remove").fill("blue");
			await dialog.locator("fieldset:nth-of-type(3) button").click();
		}),
		after: (page) => change(page, "POST", "instances", { service: "posts", instance: "posts-2", tags: { colour: "" }, reason: "as before" }),
	},
	{ name: "console: a chosen instance", site: "console", path: "/#/services/arith?tab=instances&instance=arith-2", ready: "tr.chosen" },
	{
		name: "console: a canary that runs", site: "console", path: "/#/services/posts?tab=canary", ready: "input[type=range]",
		prepare: async (page) => {
			await page.getByLabel("Failed calls at most, %").fill("90");
			await page.getByLabel("in steps").check();
			await page.getByLabel("Reason").first().fill("the new version");
			await page.locator("button", { hasText: "Start" }).click();
			await page.waitForSelector(".head .mark.good:has-text('runs')");
			await page.waitForSelector(".effect .uplot");
		},
		after: (page) => change(page, "DELETE", "canary/posts"),
	},
	{
		name: "console: canaries of services", site: "console", path: "/#/canaries", ready: ".versions, .empty",
		prepare: async (page) => {
			await change(page, "POST", "canary", { service: "posts", version: "1.0", share: 5, bounds: { errors: 0.9 } });
			await page.reload();
			await page.waitForSelector(".versions li:has-text('runs')");
		},
		after: (page) => change(page, "DELETE", "canary/posts"),
	},
	{
		name: "console: a method that fails", site: "console", path: "/#/services/arith?tab=try&method=Arith.Mul&body=json", ready: "form .main",
		prepare: async (page) => {
			await page.getByLabel("Timeout, s").fill("0.1");
			await page.fill("form textarea", '{"A": "seven"}');
			await page.click("form .main");
			await page.waitForSelector(".head .mark.bad, .outcome.bad");
		},
	},
	{
		name: "console: faults with an end", site: "console", path: "/#/services/posts?tab=canary", ready: "input[type=range]",
		prepare: async (page) => {
			const form = page.locator("form", { has: page.getByLabel("Delay, ms") });
			await form.getByLabel("Method").selectOption("Posts.Query");
			await form.getByLabel("Share, %").fill("1");
			await form.getByLabel("Delay, ms").fill("5");
			await form.locator("button[type=submit]").click();
			await page.waitForSelector(".versions .mark.bad:has-text('Posts.Query')");
		},
		after: (page) => change(page, "DELETE", "faultinjection?service=posts&method=Posts.Query"),
	},
	{
		name: "console: the history of rules", site: "console", path: "/#/services/posts?tab=rules", ready: ".ruleform",
		prepare: async (page) => {
			await version(page, 60);
			await version(page, 70);
			await page.locator(".versions summary:has-text('60 % for zone-a')").first().click();
			await page.waitForSelector(".versions details[open] .diff .plus");
			await page.waitForSelector(".versions details[open] button");
		},
		after: withoutRules,
	},
	{
		name: "console: a dry run", site: "console", path: "/#/services/posts?tab=rules", ready: ".ruleform",
		prepare: async (page) => {
			await edit("rules:\n  conditions:\n  - to: {id: posts-1}\n")(page);
			await page.locator("button", { hasText: "Dry run" }).click();
			await page.waitForSelector(".counts");
		},
	},
	{
		name: "console: two changes at once", site: "console", path: "/#/services/posts?tab=rules", ready: ".ruleform", expects: /409/,
		prepare: async (page) => {
			await edit("rules:\n  conditions:\n  - name: mine\n    to: {id: posts-1}\n")(page);
			await version(page, 40);
			await page.click("button.main");
			await page.waitForSelector("h3:has-text('The other change')");
		},
		after: withoutRules,
	},

	// Calls.
	{
		name: "console: an answer to copy", site: "console", path: "/#/services/arith?tab=try&method=Arith.Mul", ready: "form .main",
		before: (page) => page.context().grantPermissions(["clipboard-write"]),
		prepare: async (page) => {
			await page.getByLabel("A", { exact: true }).fill("7");
			await page.getByLabel("B", { exact: true }).fill("8");
			await page.click("form .main");
			await page.click("form .main");
			await page.waitForSelector(".versions li"); // the first answer is in the history
			await page.locator(".row button", { hasText: /^curl$/ }).first().click(); // of the second one
			await page.waitForSelector("[role=status]:has-text('curl')");
		},
	},
	{
		name: "console: a request that is not JSON", site: "console", path: "/#/services/posts?tab=try&method=Posts.Query&body=json", ready: "form .main",
		prepare: async (page) => {
			await page.fill("form textarea", '{"posttype": ');
			await page.waitForSelector("form .bad");
		},
	},
	{
		name: "console: a stream", site: "console", path: "/#/services/posts?tab=try&method=File.List", ready: "form .main",
		prepare: async (page) => {
			await page.fill("form textarea", '{"Path": "reports"}');
			await page.click("form .main");
			await page.waitForSelector(".diff:has-text('reports')");
		},
	},
	{ name: "console: calls as they happen", site: "console", path: "/#/calls?service=arith&live=1", ready: "tbody tr:nth-child(10)" },

	// Files.
	{
		name: "console: a file is removed", site: "console", path: "/#/files/posts", ready: "tbody tr:has-text('readme.txt')",
		prepare: async (page) => {
			await page.locator("tbody tr:has-text('readme.txt') button").click();
			await page.waitForSelector(".dialog button.main");
		},
	},
	{
		name: "console: files are sent", site: "console", path: "/#/files/posts", ready: "tbody tr",
		prepare: async (page) => {
			await page.locator("button", { hasText: "Upload files" }).click();
			await page.setInputFiles(".dialog input[type=file]", ["a file with a long name that says what is in it, and from when.txt", "b.txt"].map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from("x") })));
			await page.getByLabel("Into the folder").fill("looks");
			await page.click(".dialog button.main");
			await page.waitForFunction(() => document.querySelectorAll(".uploads .mark.good").length === 2);
		},
		after: async (page) => {
			for (const name of ["a file with a long name that says what is in it, and from when.txt", "b.txt"]) await change(page, "DELETE", "files/posts/File/content?path=" + encodeURIComponent("looks/" + name));
			await change(page, "DELETE", "files/posts/File/content?path=looks");
		},
	},

	// Names that try to be markup.
	{ name: "console: hostile names on the map", site: "hostile console", path: "/#/?focus=evil", ready: ".panel .button" },
	{ name: "console: hostile names of a service", site: "hostile console", path: "/#/services/evil", ready: "tbody tr" },
	{ name: "console: hostile instances", site: "hostile console", path: "/#/instances?list=all", ready: ".grid canvas" },
	{ name: "console: hostile calls", site: "hostile console", path: "/#/calls", ready: "tbody tr" },
	{ name: "console: hostile methods to try", site: "hostile console", path: "/#/services/evil?tab=try", ready: "form" },

	// Colours and languages that a viewer chooses.
	{ name: "console: dark as chosen", site: "console", path: "/#/services/front?tab=instances&theme=dark", ready: "tbody tr" },
	{ name: "console: overview in Chinese", site: "console", path: "/#/?lang=zh", ready: ".node.t-good" },
	{ name: "console: rules in Chinese", site: "console", path: "/#/services/posts?tab=rules&lang=zh", ready: ".ruleform" },
	{ name: "console: canary in Chinese", site: "console", path: "/#/services/posts?tab=canary&lang=zh", ready: "input[type=range]" },
	{ name: "console: the way to the arena", site: "empty", path: "/#/canaries", ready: ".rail a[href='api/arena']" },

	// Many services.
	{ name: "console: a map of groups", site: "crowd", path: "/", ready: ".node .back" },
	{ name: "console: many services on the map", site: "crowd", path: "/#/?group=none", ready: ".node:nth-of-type(100)" },
	{ name: "console: many instances", site: "crowd", path: "/#/instances", ready: ".grid canvas[aria-label*='1001']" },
];
