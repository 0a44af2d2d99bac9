// The page of the console while something happens: a process that is killed, a canary that returns, a registry that cannot
// be reached, a console that restarts, and 1,000 instances. Times are measured and printed; the bounds are those of a
// machine that does much else.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { changed, drag, frames, traced } from "./frames.mjs";
import { Cable, consoleAt } from "./system.mjs";

const patience = 120_000;

// consoleTests adds the tests. visit opens a page, system has the processes.
export function consoleTests(test, visit, system, look) {
	let cable, args, address;
	const open = async () => {
		[address] = await system.spawn("anser", args(), [consoleAt]);
		system.sites.operate = address;
	};
	const setUp = async () => {
		if (cable) return;
		const [host, port] = system.registry.replace("etcd://", "").split(":");
		cable = system.cut(new Cable(host, port));
		const registry = "etcd://" + (await cable.listen());
		const report = join(system.folder, "arena.html");
		await writeFile(report, "<!doctype html><title>Arena</title><h1>The arena</h1>");
		args = () => ["console", "--registry", registry, "--listen", address ? address.replace("http://", "") : "127.0.0.1:0", "--audit", join(system.folder, "audit.jsonl"), "--arena", report, system.sites.callers];
		await open();
	};
	const timed = async (t, what, f) => {
		const began = Date.now();
		await f();
		t.diagnostic(`${what}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
	};
	const expected = (wrong) => wrong.filter((text) => !/ERR_|Failed to load|503|502|504/.test(text)); // while nothing answers

	test("an operator changes the system from the page", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/services/arith?tab=try&method=Arith.Mul", ready: "form .main" }, look);
		await page.getByLabel("A", { exact: true }).fill("7");
		await page.getByLabel("B", { exact: true }).fill("8");
		await page.click("form .main");
		await page.waitForSelector("pre:has-text('56')");

		await page.goto(address + "/#/services/posts?tab=instances");
		await page.locator("button.small").first().click();
		await page.locator(".dialog input").first().fill("new disk");
		await page.locator(".dialog button", { hasText: "Drain" }).click();
		await page.waitForSelector(".dialog .outcome .icon");
		await page.keyboard.press("Escape");
		await page.waitForSelector("tbody .mark.warn:has-text('draining')");

		await page.goto(address + "/#/services/posts?tab=rules");
		await page.waitForSelector("textarea.code");
		const text = await page.inputValue("textarea.code");
		assert.match(text, /draining/);
		await page.fill("textarea.code", text + "  wrong: 1\n");
		await page.waitForSelector(".check .bad");
		assert.ok(await page.locator("button.main").isDisabled(), "wrong rules can be applied");
		// Another change comes first: both are shown, and neither is lost.
		const { csrf } = await (await page.request.get(address + "/api/session")).json();
		await page.request.post(address + "/api/instances", { headers: { "X-CSRF-Token": csrf, "Content-Type": "application/json" }, data: { service: "posts", instance: "posts-2", weight: 50 } });
		await page.fill("textarea.code", text.replace("draining", "up"));
		await page.waitForSelector(".check .good");
		await page.click("button.main");
		await page.waitForSelector("h3:has-text('The other change')");
		await page.locator("button", { hasText: "Take the other one" }).click();
		assert.match(await page.inputValue("textarea.code"), /posts-2/);

		await page.goto(address + "/#/audit");
		await page.waitForSelector("tbody td:has-text('new disk')");
		assert.deepEqual(wrong.filter((w) => !/409/.test(w)), []);
	});

	const rules = async (t, service, check) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: `/#/services/${service}`, ready: `section a[href*="/services/${service}/"]` }, look); // its methods are known
		await page.goto(`${address}/#/services/${service}?tab=rules`);
		await page.waitForSelector(".ruleform");
		const area = page.locator("textarea.code");
		await check(page, area, () => area.inputValue());
		assert.deepEqual(wrong, []);
	};

	test("rules are completed by the keyboard", (t) => rules(t, "front", async (page, area, text) => {
		const chosen = async (name) => {
			await page.waitForSelector(`[role=option][aria-selected=true]:has-text("${name}")`);
			const id = await area.getAttribute("aria-activedescendant");
			assert.equal(await page.locator(`[id="${id}"] code`).textContent(), name);
			assert.match(await page.textContent(".editor [role=status]"), new RegExp("^" + name.replace(/[.*]/g, "\\$&")));
		};
		await area.fill("");
		await page.keyboard.type("ru");
		await chosen("rules");
		await page.keyboard.press("Enter");
		await chosen("conditions");
		await page.keyboard.type("meth");
		await chosen("methods");
		await page.keyboard.press("Tab");
		assert.equal(await text(), "rules:\n  methods:\n  - ");
		await page.keyboard.type("wh");
		await chosen("when");
		await page.keyboard.press("Enter");
		await page.keyboard.type("meth");
		await chosen("methods");
		await page.keyboard.press("Enter");
		await page.keyboard.type("Fr");
		await chosen("Front.*");
		await page.keyboard.press("ArrowDown");
		await chosen("Front.Page");
		await page.keyboard.press("ArrowUp");
		await page.keyboard.press("Enter");
		await page.keyboard.press("Enter"); // a line with the same indentation
		await page.keyboard.press("Backspace");
		await page.keyboard.press("Backspace");
		await page.keyboard.type("mod");
		await chosen("mode");
		await page.keyboard.press("Enter");
		await chosen("backup");
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Enter");
		const whole = "rules:\n  methods:\n  - when:\n      methods: Front.*\n    mode: failfast";
		assert.equal(await text(), whole);
		await page.waitForSelector(".check .good");
		await page.keyboard.press("Enter");
		await page.keyboard.press("Control+Space");
		await chosen("attempts");
		await page.keyboard.press("Escape");
		assert.equal(await page.locator("[role=listbox]").count(), 0);
		assert.equal(await text(), whole + "\n    ");
		await page.keyboard.press("Control+z");
		assert.equal(await text(), whole, "the browser does not undo it");
		await area.fill("# a line\n".repeat(60));
		await page.keyboard.press("Control+End");
		await page.keyboard.type("ru");
		await chosen("rules"); // although the text scrolls
		await page.keyboard.press("Escape");
		await page.keyboard.press("Tab");
		assert.ok(await area.evaluate((e) => e !== document.activeElement), "the tab key does not leave the editor");
	}));

	test("the form changes the rules of the text, and keeps what it cannot show", (t) => rules(t, "front", async (page, area, text) => {
		const rule = (percent) => `rules:\n  # kept\n  mocks:\n  - name: fixed\n    reply: {"Product": 7.50}\n    when: {methods: Front.Never}\n  split:\n  - name: half\n    percent: ${percent}\n    to: {zone: zone-a}\n`;
		await area.fill(rule(50));
		await page.locator(".ruleform summary", { hasText: "half" }).click();
		assert.equal(await page.getByLabel("Percent", { exact: true }).inputValue(), "50");
		await page.getByLabel("Percent", { exact: true }).fill("25");
		assert.equal(await text(), rule(25));
		await area.fill(rule(30));
		assert.equal(await page.getByLabel("Percent", { exact: true }).inputValue(), "30");
		await page.getByLabel("Percent", { exact: true }).fill("300");
		await page.waitForSelector(".ruleform [aria-invalid]");
		await page.getByLabel("Percent", { exact: true }).fill("30");
		await page.locator(".ruleform summary", { hasText: "fixed" }).click();
		assert.match(await page.textContent(".ruleform .note"), /Only the text shows: ?reply/);
		await page.getByLabel("Calls: methods").fill("Front.Never, Front.None");
		const changed = rule(30).replace("methods: Front.Never", "methods: [Front.Never, Front.None]");
		assert.equal(await text(), changed);
		await area.fill(changed + "  split: [\n");
		await page.waitForSelector(".ruleform .warn:has-text('line')");
		assert.ok(await page.getByLabel("Calls: methods").isDisabled(), "the form changes a text that cannot be read");
		await area.fill(changed);
		await page.getByLabel("Calls: methods").waitFor();
		await page.locator(".ruleform select").last().selectOption("methods");
		await page.locator(".ruleform button", { hasText: "Add a rule" }).click();
		await page.getByLabel("Timeout", { exact: true }).fill("5s");
		await page.waitForSelector(".check .good");
		await page.getByLabel("Reason").fill("a form");
		await page.click("button.main");
		await page.waitForSelector(".outcome:has-text('is in force')");
		assert.match(await text(), /reply:\n\s+Product: 7\.5\n[^]*percent: 30[^]*/);
		assert.match(await text(), /timeout: 5s/);
		await page.locator(".versions summary", { hasText: "a form" }).waitFor();
	}));

	test("a dry run shows the rules in force beside the new ones, and what limits it", (t) => rules(t, "arith", async (page, area) => {
		await area.fill('rules:\n  conditions:\n  - to: {id: arith-1}\n');
		await page.waitForSelector(".check .good");
		await page.locator("button", { hasText: "Dry run" }).click();
		await page.waitForSelector(".counts");
		const moved = (await page.locator(".counts .of-moved td").allTextContents()).map(Number);
		assert.ok(moved.length === 2 && moved[1] > moved[0], `${moved} calls go elsewhere`);
		assert.match(await page.locator(".moves tbody tr").first().textContent(), /^Arith\.\w+arith-[23]arith-1\d+$/);
		assert.equal(await page.locator(".advice").count(), 0);
		await area.fill('rules:\n  split:\n  - percent: 10\n    by: user\n    to: {id: arith-1}\n');
		await page.waitForSelector(".check .good");
		await page.locator("button", { hasText: "Dry run" }).click();
		await page.waitForSelector(".advice:has-text('metadata')");
		assert.match(await page.textContent(".advice"), /: user$/);
	}));

	test("the effect of a change is shown in place, with the way back", (t) => rules(t, "arith", async (page, area, text) => {
		const before = await text();
		await area.fill("rules:\n  conditions:\n  - name: one\n    to: {id: arith-1}\n");
		await page.waitForSelector(".check .good");
		await page.getByLabel("Reason").fill("the effect");
		await page.click("button.main");
		await page.waitForSelector(".effect h2:has-text('Effect of version')");
		const title = await page.textContent(".effect h2");
		assert.match(await page.textContent(".effect .head"), /the effect/);
		await page.getByLabel("Grouped by").selectOption("instance");
		// All calls go to one instance since, of three before.
		const cell = (row, n) => page.locator(`.compared tr:has(th:text-is("${row}")) td`).nth(n);
		await page.waitForFunction(() => /→ 100 %/.test([...document.querySelectorAll(".compared tr")].find((r) => r.querySelector("th")?.textContent === "arith-1")?.textContent ?? ""), null, { timeout: patience });
		assert.match(await cell("arith-3", 2).getAttribute("title"), / % before, 0 % since$/);
		assert.match(await page.textContent(".compared"), /as the callers see them/);
		await page.waitForSelector(".effect .uplot canvas");
		await page.waitForSelector(".effect .note:has-text('before the change are compared with')");
		// One key returns to the rules before.
		await page.focus(".effect button.back");
		await page.keyboard.press("Enter");
		await page.waitForSelector(".effect .outcome:has-text('is in force')");
		await page.waitForFunction((old) => document.querySelector(".effect h2")?.textContent !== old, title);
		await page.waitForFunction((old) => document.querySelector("textarea.code").value === old, before.replace(/^\s*$/, "rules: {}\n"));
		await page.locator(".effect select").nth(1).selectOption({ index: 1 });
		await page.waitForSelector(".effect .note:has-text('no longer the rules in force')");
		assert.equal(await page.locator(".effect button.back").count(), 0);
	}));

	test("files of a service are shown, sent, fetched and removed", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/services/posts", ready: ".head a:has-text('Files: File')" }, look);
		await page.click(".head a:has-text('Files: File')");
		await page.click("tbody a:has-text('reports')");
		await page.click("tbody a:has-text('2026')");
		await page.waitForSelector("tbody tr:has-text('november.csv')");
		const link = page.url(); // shows the same to a colleague
		await page.reload();
		await page.waitForSelector("tbody tr:has-text('october.csv')");
		assert.equal(page.url(), link);
		await page.fill(".filter", "NOVEMBER");
		await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
		await page.fill(".filter", "none of them");
		await page.waitForSelector(".empty:has-text('No name contains')");
		await page.fill(".filter", "");

		const fetched = async (name) => {
			const [download] = await Promise.all([page.waitForEvent("download"), page.click(`tbody tr:has-text('${name}') a[download]`)]);
			assert.equal(download.suggestedFilename(), name);
			return readFile(await download.path());
		};
		assert.match(String(await fetched("november.csv")), /^day,posts\n1,/);

		// A large file and one with a hostile name, into a folder that is not there yet.
		const hostile = "<img src=x onerror=alert(1)>.html", large = Buffer.alloc(8 << 20, "a");
		const upload = async (...files) => {
			await page.locator("button", { hasText: "Upload files" }).click();
			await page.getByLabel("Reason").fill("a test");
			await page.setInputFiles(".dialog input[type=file]", files.map(([name, buffer]) => ({ name, mimeType: "text/html", buffer })));
		};
		await upload(["large.bin", large], [hostile, Buffer.from("<script>alert(2)</script>")]);
		await page.getByLabel("Into the folder").fill("reports/2026/new");
		await page.click(".dialog button.main");
		await page.waitForFunction(() => document.querySelectorAll(".uploads .mark.good").length === 2);
		await page.keyboard.press("Escape");
		await page.click("tbody a:has-text('new')");
		await page.waitForSelector("tbody tr:has-text('large.bin')");
		assert.ok(large.equals(await fetched("large.bin")));
		assert.equal(await page.locator("img, [onerror]").count(), 0);
		// As a page of its own it is saved, too, and not shown.
		const [saved] = await Promise.all([page.waitForEvent("download"), page.evaluate(() => { location.href = [...document.querySelectorAll("a[download]")].find((a) => a.href.includes("img")).href; })]);
		assert.match(saved.suggestedFilename(), /html$/);

		// A file that exists is replaced when the viewer says so.
		await upload(["large.bin", Buffer.from("small")]);
		await page.click(".dialog button.main");
		await page.click(".uploads button:has-text('Replace')");
		await page.waitForSelector(".uploads .mark.good");
		await page.keyboard.press("Escape");
		await page.waitForSelector("tbody tr:has-text('5 B')");

		for (const name of ["large.bin", "img src"]) {
			await page.click(`tbody tr:has-text('${name}') button:has-text('Remove')`);
			await page.click(".dialog button.main");
			await page.waitForSelector(".dialog", { state: "detached" });
		}
		await page.waitForSelector(".empty:has-text('This folder is empty.')");
		await page.goto(address + "/#/audit");
		await page.waitForSelector("tbody tr:has-text('upload file'):has-text('reports/2026/new/large.bin'):has-text('a test')");
		await page.goto(address + "/#/files/posts?path=nowhere");
		await page.waitForSelector(".trouble:has-text('nowhere')");
		assert.deepEqual(wrong.filter((w) => !/404/.test(w)), []);
	});

	test("the search finds folders, and the report of the arena has a tab of its own", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/", ready: ".rail a[href='api/arena']" }, look);
		await page.keyboard.press("Control+k");
		await page.fill(".palette input", "posts: f");
		await page.waitForSelector(".palette li[aria-selected=true]:has-text('posts: File')");
		await page.keyboard.press("Enter");
		await page.waitForSelector("tbody tr:has-text('readme.txt')");
		for (const open of [
			() => page.click(".rail a[href='api/arena']"),
			async () => {
				await page.keyboard.press("Control+k");
				await page.fill(".palette input", "arena");
				await page.waitForSelector(".palette li[aria-selected=true]:has-text('Arena')");
				await page.keyboard.press("Enter");
			},
		]) {
			const [tab] = await Promise.all([page.context().waitForEvent("page"), open()]);
			await tab.waitForSelector("h1:has-text('The arena')");
			await tab.close();
		}
		assert.deepEqual(wrong, []);
	});

	test("a canary whose bound is passed returns, and the page shows it", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/services/front?tab=canary", ready: "input[type=range]" }, look);
		await page.getByLabel("p99 at most, ms").fill("0.001");
		await page.getByLabel("p99 at most, ms").press("Enter");
		await page.waitForSelector(".head .mark.good:has-text('runs')");
		await timed(t, "a canary that passes its bound has returned after", () => page.waitForSelector(".head .mark.bad:has-text('has returned')", { timeout: patience }));
		assert.deepEqual(wrong, []);
	});

	test("a killed process is seen, and its figures are not shown as present", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/services/arith?tab=instances", ready: "tr:has-text('arith-3') .mark.good" }, look);
		const list = await (await page.request.get(address + "/api/instances?service=arith")).json();
		const of = list.instances.find((i) => i.id === "arith-3");
		const pid = (await (await page.request.get(of.admin.replace(/\/$/, "") + "/", { headers: { Accept: "application/json" } })).json()).process.pid;
		process.kill(pid, "SIGKILL");
		await timed(t, "a killed process is marked after", () => page.waitForFunction(() => {
			const row = [...document.querySelectorAll("tbody tr")].find((r) => r.textContent.includes("arith-3"));
			return !row || row.querySelector(".mark.bad, .mark.warn");
		}, null, { timeout: patience }));
		await page.goto(address + "/#/changes");
		await page.waitForSelector(".changes li:has-text('arith-3')", { timeout: patience });
		assert.deepEqual(expected(wrong), []);
	});

	test("a registry that cannot be reached is seen, and what it said is marked as old", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/", ready: ".node" }, look);
		cable.set(true);
		await timed(t, "a registry that does not answer is shown after", () => page.waitForSelector(".health .bad:has-text('has not answered')", { timeout: patience }));
		await page.goto(address + "/#/services/front");
		await page.waitForSelector(".head .mark.warn:has-text('list from')", { timeout: patience });
		cable.set(false);
		await timed(t, "its return is shown after", () => page.waitForFunction(() => !document.querySelector(".head .mark.warn"), null, { timeout: patience }));
		assert.deepEqual(expected(wrong), []);
	});

	test("a console that restarts is seen, and the page goes on by itself", async (t) => {
		await setUp();
		const { page, wrong } = await visit(t, { site: "operate", path: "/#/", ready: ".node.t-good, .node.t-bad" }, look);
		await system.stop(address);
		await timed(t, "a lost console is shown after", () => page.waitForSelector(".frame.lost .banner", { timeout: patience }));
		assert.match(await page.textContent(".banner"), /data from/);
		await open();
		await timed(t, "the page is current again after a start of", () => page.waitForFunction(() => !document.querySelector(".frame.lost") && document.querySelector(".node"), null, { timeout: patience }));
		assert.deepEqual(expected(wrong), []);
	});

	test("1,000 instances with a hostile one", async (t) => {
		await system.crowd();
		const { page, wrong } = await visit(t, { site: "crowd", path: "/#/?group=none", ready: ".node:nth-of-type(100)" }, look);
		const first = await page.evaluate(() => performance.getEntriesByType("paint").find((e) => e.name === "first-contentful-paint")?.startTime ?? 0);
		const moved = await frames(page, 3, drag);
		t.diagnostic(`first paint ${first.toFixed(0)} ms; the map of 100 services is moved at ${moved.rate.toFixed(0)} frames/s, the longest took ${moved.longest.toFixed(0)} ms`);
		assert.ok(moved.rate > 1, "the map does not move");
		await page.goto(system.sites.crowd + "/#/instances");
		await page.waitForSelector(".grid canvas[aria-label*='1001']");
		await page.goto(system.sites.crowd + "/#/instances?q=shop.service-000");
		await page.waitForSelector(".grid canvas[aria-label*=': 11.']");
		await page.focus(".grid canvas");
		await page.keyboard.press("Home");
		await page.waitForFunction(() => document.querySelector(".squares [role=status]").textContent.includes("<img src=x onerror=alert(1)>"));
		await page.goto(system.sites.crowd + "/#/instances?list=all");
		await page.waitForSelector(".tall tbody tr");
		assert.ok(await page.locator("tbody tr").count() <= 100, "the whole list is on the page");
		await page.evaluate(() => document.querySelector(".tall").scrollTo(0, 1e6));
		await page.waitForSelector("tr[aria-rowindex='1002']:has-text('stock.service-099-10')");
		await page.locator(".tall th button", { hasText: "Calls/s" }).click(); // the console sorts it
		await page.evaluate(() => document.querySelector(".tall").scrollTo(0, 0));
		await page.waitForSelector("th[aria-sort=descending]");
		await page.waitForFunction(() => Number(document.querySelector("tr[aria-rowindex='2'] td:nth-child(4)")?.textContent) > 260); // 275 is the largest
		for (const path of ["/#/services/shop.service-000", "/#/services/shop.service-000?tab=instances", "/#/calls", "/#/changes"]) {
			await page.goto(system.sites.crowd + path);
			await page.waitForSelector("tbody tr, .changes, .empty");
		}
		await page.goto(system.sites.crowd + "/#/services/shop.service-000?tab=instances");
		await page.waitForSelector("tr:has-text('<img src=x onerror=alert(1)>')");
		assert.equal(await page.locator("img, [onerror], b").count(), 0);
		assert.deepEqual(wrong, []);
	});

	test("the map of 100 services can be read on a telephone", async (t) => {
		await system.crowd();
		const { page } = await visit(t, { site: "crowd", path: "/#/?group=none", ready: ".node:nth-of-type(100)" }, { ...look, viewport: { width: 390, height: 844 } });
		const names = () => page.evaluate(() => {
			const canvas = document.querySelector(".callmap .canvas").getBoundingClientRect();
			const inside = [...document.querySelectorAll(".node .body")].map((e) => e.getBoundingClientRect()).filter((r) => r.left >= canvas.left && r.right <= canvas.right && r.top >= canvas.top && r.bottom <= canvas.bottom);
			const name = document.querySelector(".node .name");
			return { inside: inside.length, pixels: parseFloat(name.getAttribute("font-size")) * name.getScreenCTM().a };
		});
		const first = await names();
		assert.ok(first.pixels >= 11.9 && first.inside > 3, `${first.inside} services are in sight, with names of ${first.pixels} pixels`);
		await page.getByRole("button", { name: "Fit" }).click();
		await page.waitForFunction(() => document.querySelector(".node .name").getScreenCTM().a < 0.1);
		assert.equal((await names()).inside, 100);
	});

	// What a page does for an update is spread over frames, and no cell makes the browser lay out its table: this holds on any
	// machine, and scripts/fluid measures how long it takes.
	test("an update changes few rows in a frame, and lays out little", async (t) => {
		await system.crowd();
		for (const [path, ready, atLeast] of [["/#/services", "tbody tr:nth-child(100)", 10], ["/#/instances?list=all", ".tall tbody tr:nth-child(50)", 3], ["/#/services/shop.service-000", ".uplot", 0]]) {
			const { page } = await visit(t, { site: "crowd", path, ready }, look);
			if (path.includes("list")) await page.locator(".tall").scrollIntoViewIfNeeded();
			await page.waitForTimeout(2_000); // until what came first is shown
			const seen = await changed(page, 4);
			assert.ok(seen.most <= 8, `${path}: ${seen.most} of ${seen.rows} rows have changed in a frame`);
			assert.ok(seen.seen >= atLeast, `${path}: ${seen.seen} of the ${seen.sight} rows in sight have changed in 4 s`);
			const trace = await traced(page.context().browser(), page, () => page.waitForTimeout(4_000));
			t.diagnostic(`${path}: ${seen.most} rows in a frame at most, ${trace.dirty} of ${trace.total} objects laid out at once at most`);
			assert.ok(trace.layouts > 0 && trace.dirty < trace.total / 4, `${path}: ${trace.dirty} of ${trace.total} objects were laid out at once`);
			await page.close();
		}
	});
}
