// The pages in a real browser, and commands in a terminal, against the demo and against a process with hostile names.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { consoleTests } from "./console.mjs";
import { keyTests } from "./keys.mjs";
import { places } from "./places.mjs";
import { System, bin, launch } from "./system.mjs";
import { barriers, looks, over, visit as visitIn, wear } from "./visit.mjs";

const run = promisify(execFile);
const system = new System();
let browser;
before(async () => {
	[browser] = await Promise.all([launch(), system.demo("--every", "0"), system.hostile()]);
});
after(async () => {
	await browser?.close();
	await system.end();
});

const wide = { viewport: { width: 1280, height: 800 }, colorScheme: "light" };
const narrow = { viewport: { width: 390, height: 844 }, colorScheme: "dark" };

// visit opens a page in a context of its own, which ends with the test.
async function visit(t, place, look) {
	const context = await browser.newContext(look);
	t.after(() => context.close());
	return visitIn(context, system, place);
}

// renewed waits until the page has renewed itself.
async function renewed(page) {
	const before = await page.textContent("#state");
	await page.waitForFunction((old) => document.getElementById("state").textContent !== old, before);
}

test("every page fits, has no barrier that axe finds, and asks no other server", async (t) => {
	await system.states();
	for (const place of places) {
		await t.test(place.name, async (t) => {
			const { page, wrong } = await visit(t, place, wide);
			try {
				for (const look of looks) { // one visit: a page follows the window and the system
					await wear(page, look);
					assert.deepEqual(await over(page), [], look.name);
					if (look.axe) assert.deepEqual(await barriers(page), [], look.name);
				}
				const size = await page.evaluate(() => ({ body: document.body.innerText.length, scripts: document.querySelectorAll("img, iframe, object, b").length }));
				assert.ok(size.body > 20, "it is empty");
				assert.equal(size.scripts, 0, "it has elements that a name has made");
				assert.deepEqual(wrong.filter((text) => !place.expects?.test(text)), []);
			} finally {
				await place.after?.(page, system);
			}
		});
	}
});

test("a renewal keeps what a viewer looks at", async (t) => {
	const place = places.find((p) => p.name === "admin: clients");
	const { page, wrong } = await visit(t, place, { ...narrow, viewport: { width: 390, height: 300 } });
	await page.evaluate(() => {
		document.querySelector("tbody tr").kept = true;
		document.querySelectorAll(".scroll")[1].scrollLeft = 60;
		scrollTo(0, 400);
	});
	const button = page.locator("section").nth(1).locator("th button").nth(1);
	await button.evaluate((e) => e.focus({ preventScroll: true }));
	await renewed(page);
	await renewed(page);
	assert.deepEqual(await page.evaluate(() => ({
		row: document.querySelector("tbody tr").kept, left: document.querySelectorAll(".scroll")[1].scrollLeft, top: Math.round(scrollY), focus: document.activeElement.textContent,
	})), { row: true, left: 60, top: 400, focus: await button.textContent() });

	await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("main h2")));
	await page.waitForFunction(() => document.getElementById("held").textContent.includes("selected"));
	const state = await page.textContent("#state");
	assert.equal(await page.evaluate(() => String(getSelection())), await page.locator("main h2").first().textContent());
	assert.equal(await page.textContent("#state"), state);
	await page.evaluate(() => getSelection().removeAllRanges());
	await renewed(page);

	await page.route("**/clients", (route) => route.abort());
	await page.waitForFunction(() => document.body.classList.contains("lost"));
	assert.match(await page.textContent("#state"), /does not answer/);
	await page.unroute("**/clients");
	await page.waitForFunction(() => !document.body.classList.contains("lost"));
	assert.deepEqual(wrong.filter((text) => !/ERR_FAILED/.test(text)), []);
});

test("the keyboard is enough", async (t) => {
	const { page, wrong } = await visit(t, places.find((p) => p.name === "admin: overview"), wide);
	const rows = () => page.locator("main tbody tr:visible").count();
	const all = await rows();
	await page.keyboard.press("/");
	await page.keyboard.type("arith");
	assert.ok(await rows() < all, "the filter hides no row");
	await renewed(page);
	assert.ok(await rows() < all, "a renewal forgets the filter");
	await page.keyboard.press("Escape");
	await page.waitForFunction((n) => [...document.querySelectorAll("main tbody tr")].filter((e) => !e.hidden).length >= n, all);

	const button = page.locator("th button", { hasText: "Target" });
	for (let i = 0; !(await button.evaluate((e) => e === document.activeElement)); i++) {
		assert.ok(i < 60, "the tab key does not reach the titles of columns");
		await page.keyboard.press("Tab");
	}
	const targets = () => page.locator("section", { has: button }).locator("tbody td:first-child").allTextContents();
	for (const [order, sign] of [["ascending", 1], ["descending", -1]]) {
		await page.keyboard.press("Enter");
		assert.equal(await button.locator("..").getAttribute("aria-sort"), order);
		await renewed(page);
		const shown = await targets();
		assert.deepEqual(shown, shown.toSorted((a, b) => sign * a.localeCompare(b)));
		assert.ok(await button.evaluate((e) => e === document.activeElement), "the focus is lost");
	}
	await page.focus("#pause");
	await page.keyboard.press("Space");
	assert.equal(await page.textContent("#pause"), "Continue");
	await page.focus("nav a[aria-current]");
	await page.keyboard.press("Tab");
	await page.keyboard.press("Enter");
	await page.waitForURL("**/methods");
	assert.deepEqual(wrong, []);
});

test("calls are followed as they happen", async (t) => {
	const { page } = await visit(t, { site: "callers", path: "/calls", ready: "#filter" }, wide);
	await page.fill("[name=method]", "Arith.*");
	await page.keyboard.press("Enter");
	await page.waitForSelector("#live tr:nth-child(5)");
	for (const row of await page.locator("#live tr").allTextContents()) assert.match(row, /^\d\d:\d\d:\d\d\.\d{3}clientArith\./);
	await page.fill("[name=slower]", "a while");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => /filter is not valid/.test(document.getElementById("said").textContent));
});

test("hostile names are text on a page", async (t) => {
	for (const [site, path, ready] of [["hostile", "/", ".tiles"], ["hostile", "/methods", "tbody tr"], ["hostile", "/slow", "tbody tr"], ["hostile gateway", "/openapi", ".service a"], ["hostile gateway", "/mcp", "section"]]) {
		const { page, wrong } = await visit(t, { site, path, ready }, wide);
		assert.match(await page.textContent("body"), site === "hostile" ? /<img src=x onerror=alert\(1\)>/ : /Plain/, path);
		assert.equal(await page.locator("img, [onerror]").count(), 0, path);
		assert.deepEqual(wrong, [], path);
	}
});

test("hostile names do not control a terminal", async () => {
	const { registry, address, page } = system.evil;
	const forbidden = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]/;
	for (const line of [
		["ls", "--registry", registry], ["ls", "--json", "--registry", registry], ["describe", address], ["describe", address, "--json"],
		["top", "--once", "--registry", registry], ["top", "--once", "--instances", page], ["top", "--once", "--json", page],
		["tail", "-n", "2", page], ["tail", "-n", "2", "--json", page], ["tail", "--trace", "0123456789abcdef0123456789abcdef", page], ["doctor", address, "--verbose"], ["doctor", "--registry", registry], ["doctor", "--json", registry],
		["call", address, "Evil.Plain", "{}"], ["call", address, "Evil.Plain", "{}", "--json"], ["explain", "evil", "Evil.Plain", "--registry", registry],
	]) {
		const { stdout, stderr } = await run(join(bin, "anser"), line, { timeout: 120_000, env: { ...process.env, NO_COLOR: "1" } }).catch((error) => error);
		assert.ok(stdout + stderr, `anser ${line.join(" ")} prints nothing`);
		assert.doesNotMatch(stdout + stderr, forbidden, `anser ${line.join(" ")}: ${JSON.stringify(stdout + stderr)}`);
	}
});

keyTests(test, visit, wide);
consoleTests(test, visit, system, wide);
