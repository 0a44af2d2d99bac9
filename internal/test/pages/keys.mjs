// The console by keys alone, and without motion for viewers who want none.
import assert from "node:assert/strict";

// tab presses the tab key until an element has the focus. A viewer sees where it is: the element has an
// outline, or is a box of the map with a thick one.
async function tab(page, element, key = "Tab") {
	for (let i = 0; !(await element.evaluate((e) => e === document.activeElement)); i++) {
		assert.ok(i < 80, `${key} does not reach ${element}`);
		await page.keyboard.press(key);
	}
	assert.ok(await element.evaluate((e) => getComputedStyle(e).outlineStyle !== "none" || getComputedStyle(e.querySelector(".body") ?? e).strokeWidth === "2.5px"), `the focus of ${element} cannot be seen`);
}

const focused = (page) => page.evaluate(() => document.activeElement.outerHTML.slice(0, 120));

// keyTests adds the tests. visit opens a page.
export function keyTests(test, visit, look) {
	test("the console is used by keys alone", async (t) => {
		const { page, wrong } = await visit(t, { site: "console", path: "/", ready: ".node.t-good" }, look);
		// The first key leads past the navigation.
		await page.keyboard.press("Tab");
		assert.match(await focused(page), /class="skip"/);
		await page.keyboard.press("Enter");
		assert.match(await focused(page), /id="main"/);

		// Navigation, and the page that it opens.
		await page.reload();
		await page.waitForSelector(".node.t-good");
		await tab(page, page.locator(".rail a", { hasText: "Services" }));
		await page.keyboard.press("Enter");
		await page.waitForSelector("tbody tr:nth-child(3)");
		assert.equal(await page.locator(".rail a[aria-current=page]").textContent(), "Services");

		// The order of a table.
		const title = page.locator("th button", { hasText: /^Service/ });
		await tab(page, title);
		const names = () => page.locator("tbody td:first-child").allTextContents();
		const sorted = async (order, sign) => {
			await page.keyboard.press("Enter");
			await page.waitForSelector(`th[aria-sort=${order}] button:focus`);
			await page.waitForFunction((sign) => {
				const list = [...document.querySelectorAll("tbody td:first-child")].map((e) => e.textContent);
				return list.every((name, i) => i === 0 || sign * list[i - 1].localeCompare(name) <= 0);
			}, sign);
		};
		assert.deepEqual(await names(), (await names()).toSorted());
		await sorted("descending", -1);
		await sorted("ascending", 1);

		// A dialog keeps the focus, and gives it back.
		await page.goto(new URL("#/services/posts?tab=instances", page.url()).href);
		await page.waitForSelector("tbody button.small");
		const opens = page.locator("tbody tr:has-text('posts-1') button.small");
		await tab(page, opens);
		await page.keyboard.press("Enter");
		await page.waitForSelector(".dialog[open]");
		const inside = () => page.evaluate(() => document.activeElement === document.body || document.activeElement.closest(".dialog") !== null);
		const seen = new Set();
		for (let i = 0; i < 24; i++) {
			await page.keyboard.press("Tab");
			assert.ok(await inside(), `the focus leaves the dialog: ${await focused(page)}`);
			seen.add(await focused(page));
		}
		for (const label of ["Reason", "Weight", "Tag"]) {
			await tab(page, page.locator(".dialog").getByLabel(label, { exact: true }));
			assert.ok(await inside());
		}
		assert.ok(seen.size > 6, `the tab key reaches only ${[...seen]}`);
		await page.keyboard.press("Escape");
		await page.waitForSelector(".dialog", { state: "detached" });
		assert.ok(await opens.evaluate((e) => e === document.activeElement), `the focus is not given back: ${await focused(page)}`);

		// The search: an action of a service by its name.
		await page.keyboard.press("/");
		await page.waitForSelector(".palette input:focus");
		await page.keyboard.press("Escape");
		await page.waitForSelector(".palette", { state: "detached" });
		assert.ok(await opens.evaluate((e) => e === document.activeElement), `the focus is not given back: ${await focused(page)}`);
		await page.keyboard.press("Control+k");
		await page.keyboard.type("posts: canary");
		await page.waitForSelector(".palette li[aria-selected=true]:has-text('posts: Canary and faults')");
		await page.keyboard.press("Enter");
		await page.waitForSelector("input[type=range]");
		assert.match(page.url(), /#\/services\/posts\?tab=canary$/);

		// A slider and a form.
		const share = page.locator("input[type=range]");
		await tab(page, share);
		const before = Number(await share.inputValue());
		await page.keyboard.press("ArrowRight");
		assert.equal(Number(await share.inputValue()), before + 1);

		// The map: its services are links.
		await page.goto(new URL("#/", page.url()).href);
		await page.waitForSelector(".node.t-good");
		await tab(page, page.locator(".node.t-good[aria-label^='front:']"));
		await page.keyboard.press("Enter");
		await page.waitForSelector(".panel h3:has-text('front')");
		assert.deepEqual(wrong, []);
	});

	test("nothing moves for a viewer who wants no motion", async (t) => {
		const moving = (page) => page.evaluate(() => document.getAnimations().filter((a) => a.playState === "running").map((a) => a.animationName ?? a.transitionProperty));
		const place = { site: "console", path: "/#/?focus=front", ready: ".edge.near path.flow" };
		const { page: usual } = await visit(t, place, look);
		assert.ok((await moving(usual)).includes("flow"), "the test sees no animation: it says nothing");
		await usual.close();

		const { page, wrong } = await visit(t, place, { ...look, reducedMotion: "reduce" });
		assert.deepEqual(await moving(page), []);
		// The map is where it is wanted in the next frame, and stays there.
		const where = () => page.evaluate(async () => {
			const frame = () => new Promise((done) => requestAnimationFrame(done)), g = document.querySelector(".canvas > svg"), list = [];
			document.querySelector(".zoom button").click();
			for (let i = 0; i < 20; i++) {
				await frame();
				list.push(getComputedStyle(g).transform + g.querySelector("g").getAttribute("transform"));
			}
			return list;
		});
		const first = await page.evaluate(() => getComputedStyle(document.querySelector(".canvas > svg")).transform);
		const places = await where();
		assert.equal(new Set(places.slice(1)).size, 1, `the map glides: ${places}`);
		assert.ok(!places.at(-1).startsWith(first), "the map has not moved");
		for (const [path, ready, before] of [
			["/#/services/front", ".skeleton", (page) => page.route("**/api/services/front*", () => {})],
			["/#/calls?service=arith&live=1", ".pulse"],
			["/#/services/front", ".uplot"],
		]) {
			const { page } = await visit(t, { site: "console", path, ready, before }, { ...look, reducedMotion: "reduce" });
			assert.deepEqual(await moving(page), [], path);
			await page.close();
		}
		assert.deepEqual(wrong, []);
	});
}
