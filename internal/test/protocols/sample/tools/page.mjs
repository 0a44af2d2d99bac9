// The page in a real browser: what a person sees, with the mouse and with the keyboard alone. SHOTS names a folder for
// pictures of it.
import assert from "node:assert/strict";
import { test, after, before } from "node:test";
import { chromium } from "playwright-core";

const [open, closed, secret] = process.argv.slice(2);
let browser;
before(async () => { browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] }); });
after(() => browser.close());

// visit opens the page. Errors of the script and of the policy fail the test, and so do requests to other servers.
async function visit(t, address, hash = "", { width = 1300, height = 850, colorScheme = "light" } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme });
	const page = await context.newPage();
	page.setDefaultTimeout(60_000);
	const wrong = [];
	page.on("pageerror", (error) => wrong.push(String(error)));
	page.on("console", (message) => { if (message.type() === "error" && !/status of 4|status of 5/.test(message.text())) wrong.push(message.text()); });
	page.on("request", (request) => { if (!request.url().startsWith(`http://${address}/`)) wrong.push("it asks for " + request.url()); });
	t.after(async () => {
		await context.close();
		assert.deepEqual(wrong, []);
	});
	await page.goto(`http://${address}/openapi${hash}`);
	await page.waitForSelector("article, #state[role=alert]");
	return page;
}

const answer = async (page) => {
	await page.waitForFunction(() => /^\d/.test(document.querySelector("#answer .status")?.textContent || ""));
	return page.textContent("#answer");
};

async function shot(page, name) {
	if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
}

test("the list, and a search in it", async (t) => {
	const page = await visit(t, open);
	assert.equal(await page.title(), "Sample");
	assert.ok(await page.locator(".service a").count() > 30);
	await page.fill("#find", "mail send");
	assert.deepEqual(await page.locator(".service a").allTextContents(), ["Send"]);
	await page.fill("#find", "no such method");
	assert.match(await page.textContent("#services"), /No method fits/);
	await shot(page, "list");
});

test("a call", async (t) => {
	const page = await visit(t, open, "#Mail.Send");
	assert.match(await page.textContent("main"), /Send takes a letter\. It is delivered later\..*to is the address/s);
	await page.fill("#body", '{"to": "ann"');
	assert.match(await page.textContent(".wrong"), /The message is no JSON/);
	await page.fill("#body", '{"to": "it\'s me"}');
	const curl = await page.textContent("#curl");
	assert.equal(curl, `curl -H 'Content-Type: application/json' -d '{"to": "it'\\''s me"}' http://${open}/Mail.Send`);
	await page.click("#send");
	assert.match(await answer(page), /^200 OK.*"number": 7/s);
	await shot(page, "call");
});

test("an error is shown with what it says", async (t) => {
	const page = await visit(t, open, "#Things.Fail");
	await page.click("#send");
	assert.match(await answer(page), /^400.*not now.*failed_precondition/s);
});

test("messages of a stream are shown as they arrive, and a stream is cancelled", async (t) => {
	const page = await visit(t, open, "#Things.Tick");
	await page.click("#send");
	await page.waitForFunction(() => document.querySelectorAll(".message").length === 2);
	assert.match(await page.textContent(".status"), /messages arrive/);
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => /Cancelled/.test(document.querySelector(".status").textContent));
	await page.selectOption("select >> nth=1", "text/event-stream");
	await page.click("#send");
	await page.waitForFunction(() => document.querySelectorAll(".message").length === 2);
	await page.click("#cancel");
	await page.waitForFunction(() => /Cancelled/.test(document.querySelector(".status").textContent));
	await shot(page, "stream");
});

test("a stream of the client", async (t) => {
	const page = await visit(t, open, "#Things.Sum");
	await page.fill("#body", '{"to": "a"}\n{"to": "b"}\n');
	await page.click("#send");
	assert.match(await answer(page), /^200 OK.*"number": 2/s);
});

test("paths of annotations have fields for what is in them", async (t) => {
	const page = await visit(t, open, "#test.library.v1.Library.ListBooks");
	await page.selectOption("select >> nth=0", { label: "GET /v1/shelves/{shelf}/books" });
	await page.fill("label:has-text('shelf') input", "a b");
	await page.fill("label:has-text('authors') textarea", "x\ny&z");
	await page.selectOption("label:has-text('filter.genre') select", "NOVEL");
	assert.equal(await page.textContent("#curl"), `curl 'http://${open}/v1/shelves/a%20b/books?authors=x&authors=y%26z&filter.genre=NOVEL'`);
	await page.click("#send");
	assert.match(await answer(page), /^200 OK.*a b.*y&z.*NOVEL/s);
});

test("a type that contains itself is opened step by step", async (t) => {
	const page = await visit(t, open, "#Things.Echo");
	for (let i = 0; i < 3; i++) { // the first of two on the page, what it opens, and what that opens
		await page.locator("summary:has-text('Fields of parent')").nth(i).click();
		await page.waitForFunction((n) => Array.from(document.querySelectorAll("summary")).filter((node) => node.textContent === "Fields of parent").length === n, 3 + i);
	}
});

test("the keyboard alone", async (t) => {
	const page = await visit(t, open);
	await page.keyboard.press("/");
	await page.keyboard.type("things number");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForSelector("h2:has-text('Things.Number')");
	await page.focus("#body");
	await page.keyboard.press("Control+Enter");
	assert.match(await answer(page), /^200 OK/);
});

test("a server that authenticates tells nothing without a token", async (t) => {
	const page = await visit(t, closed);
	assert.match(await page.textContent("main"), /enter a token/);
	assert.equal(await page.locator(".service a").count(), 0);
	await page.fill("#token", "wrong");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => /does not accept this token/.test(document.querySelector("main").textContent));
	await page.fill("#token", secret);
	await page.keyboard.press("Enter");
	await page.waitForSelector(".service a");
	await page.click(".service a:has-text('Send')");
	assert.match(await page.textContent("#curl"), /Bearer \$TOKEN/);
	assert.doesNotMatch(await page.textContent("body"), new RegExp(secret));
	await page.click("#send");
	assert.match(await answer(page), /^200 OK/);
	await shot(page, "token");
});

test("the colours of the system, or the ones that were chosen", async (t) => {
	const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const page = await visit(t, open, "#Things.Divide", { colorScheme: "dark" });
	assert.equal(await background(page), "rgb(13, 17, 23)");
	await shot(page, "dark");
	await page.click("[data-pick=light]");
	assert.equal(await background(page), "rgb(244, 245, 247)");
});

test("nothing is wider than the window", async (t) => {
	for (const width of [320, 400, 760, 1000, 1300, 1800]) {
		for (const hash of ["", "#Things.Echo", "#test.library.v1.Library.UpdateBook", "#test.kinds.v1.Kinds.Echo"]) {
			const page = await visit(t, open, hash, { width });
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${hash} in ${width} pixels`);
			if (width === 400 && hash) await shot(page, "narrow" + hash.replace(/\W/g, "-"));
		}
	}
});
