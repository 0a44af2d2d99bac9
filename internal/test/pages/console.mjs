// The page of the console while something happens: a process that is killed, a canary that returns, a registry that cannot
// be reached, a console that restarts, and 1,000 instances. Times are measured and printed; the bounds are those of a
// machine that does much else.
import assert from "node:assert/strict";
import { createConnection, createServer } from "node:net";
import { join } from "node:path";

const patience = 120_000;

// Cable is a connection to a server that can be cut.
export class Cable {
	#open = new Set();
	cut = false;
	constructor(host, port) {
		this.server = createServer((near) => {
			if (this.cut) return near.destroy();
			const far = createConnection({ host, port: Number(port) });
			for (const [a, b] of [[near, far], [far, near]]) {
				this.#open.add(a);
				a.on("error", () => {});
				a.on("close", () => { this.#open.delete(a); b.destroy(); });
				a.pipe(b);
			}
		});
	}
	async listen() {
		await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
		return `127.0.0.1:${this.server.address().port}`;
	}
	set(cut) {
		this.cut = cut;
		if (cut) for (const s of this.#open) s.destroy();
	}
	close() {
		this.set(true);
		this.server.close();
	}
}

// consoleTests adds the tests. visit opens a page, system has the processes.
export function consoleTests(test, visit, system, look) {
	let cable, args, address;
	const open = async () => {
		[address] = await system.spawn("anser", args(), [/console of .* at (http:\/\/[\d.:]+)\//]);
		system.sites.operate = address;
	};
	const setUp = async () => {
		if (cable) return;
		const [host, port] = system.registry.replace("etcd://", "").split(":");
		cable = new Cable(host, port);
		const registry = "etcd://" + (await cable.listen());
		args = () => ["console", "--registry", registry, "--listen", address ? address.replace("http://", "") : "127.0.0.1:0", "--audit", join(system.folder, "audit.jsonl"), system.sites.callers];
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
		await page.waitForSelector("h4:has-text('The other change')");
		await page.locator("button", { hasText: "Take the other one" }).click();
		assert.match(await page.inputValue("textarea.code"), /posts-2/);

		await page.goto(address + "/#/audit");
		await page.waitForSelector("tbody td:has-text('new disk')");
		assert.deepEqual(wrong.filter((w) => !/409/.test(w)), []);
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
		const of = list.find((i) => i.id === "arith-3");
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
		cable.close();
	});

	test("1,000 instances with a hostile one", async (t) => {
		[system.sites.crowd] = await system.spawn("crowd", [], [/console at (http:\/\/[\d.:]+)\//]);
		const { page, wrong } = await visit(t, { site: "crowd", path: "/#/?group=none", ready: ".node:nth-of-type(100)" }, look);
		const first = await page.evaluate(() => performance.getEntriesByType("paint").find((e) => e.name === "first-contentful-paint")?.startTime ?? 0);
		const frames = await page.evaluate(async () => {
			const svg = document.querySelector(".canvas"), { left, top } = svg.getBoundingClientRect();
			const at = (type, x) => svg.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1, clientX: left + x, clientY: top + 200 }));
			Element.prototype.setPointerCapture = () => {};
			at("pointerdown", 300);
			const began = performance.now();
			let n = 0, worst = 0, last = began;
			while (performance.now() - began < 3_000) {
				await new Promise(requestAnimationFrame);
				const now = performance.now();
				worst = Math.max(worst, now - last);
				last = now;
				at("pointermove", 300 + 100 * Math.sin(n++ / 10));
			}
			at("pointerup", 300);
			return { rate: n / 3, worst };
		});
		t.diagnostic(`first paint ${first.toFixed(0)} ms; the map of 100 services is moved at ${frames.rate.toFixed(0)} frames/s, the longest took ${frames.worst.toFixed(0)} ms`);
		assert.ok(frames.rate > 1, "the map does not move");
		await page.goto(system.sites.crowd + "/#/instances");
		await page.waitForSelector(".grid canvas[aria-label*='1001']");
		await page.goto(system.sites.crowd + "/#/instances?q=shop.service-000");
		await page.waitForSelector(".grid canvas[aria-label*=': 11.']");
		await page.focus(".grid canvas");
		await page.keyboard.press("Home");
		await page.waitForFunction(() => document.querySelector(".squares [role=status]").textContent.includes("<img src=x onerror=alert(1)>"));
		for (const path of ["/#/services/shop.service-000", "/#/services/shop.service-000?tab=instances", "/#/calls", "/#/changes"]) {
			await page.goto(system.sites.crowd + path);
			await page.waitForSelector("tbody tr, .changes, .empty");
		}
		await page.goto(system.sites.crowd + "/#/services/shop.service-000?tab=instances");
		await page.waitForSelector("tr:has-text('<img src=x onerror=alert(1)>')");
		assert.equal(await page.locator("img, [onerror], b").count(), 0);
		assert.deepEqual(wrong, []);
	});
}
