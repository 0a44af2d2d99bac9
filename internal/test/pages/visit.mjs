// Opens the places of places.mjs as a viewer does, in the looks that are checked.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

// Looks are the widths of windows, each in light and in dark. axe runs in those that have axe: each width once, and both
// colour schemes.
export const looks = [
	{ width: 1280, height: 800, scheme: "light", axe: true },
	{ width: 1280, height: 800, scheme: "dark" },
	{ width: 2560, height: 1440, scheme: "light" },
	{ width: 2560, height: 1440, scheme: "dark", axe: true },
	{ width: 390, height: 844, scheme: "light" },
	{ width: 390, height: 844, scheme: "dark", axe: true },
].map((look) => ({ ...look, name: `${look.width} px, ${look.scheme}` }));

// wear shows a page in a look: pages follow the window and the system.
export async function wear(page, { width, height, scheme }) {
	await page.setViewportSize({ width, height });
	await page.emulateMedia({ colorScheme: scheme });
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // it is laid out
}

// visit opens a page in a context of the browser. wrong has the errors of its scripts and of its policy, and requests to
// other servers.
export async function visit(context, system, place) {
	const page = await context.newPage();
	page.setDefaultTimeout(120_000);
	const site = system.sites[place.site];
	const wrong = [];
	page.on("pageerror", (error) => wrong.push(String(error)));
	page.on("dialog", (dialog) => { wrong.push("it opens a dialog"); dialog.dismiss(); });
	page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
	page.on("request", (request) => { if (!request.url().startsWith(site + "/")) wrong.push("it asks for " + request.url()); });
	await place.before?.(page, system);
	const answer = await page.goto(site + place.path);
	const policy = answer.headers()["content-security-policy"] || "";
	if (!/default-src 'none'/.test(policy) || !/frame-ancestors 'none'/.test(policy) || /unsafe|\*/.test(policy)) wrong.push("its policy is " + policy);
	await page.waitForSelector(place.ready);
	await place.prepare?.(page, system);
	return { page, wrong };
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// barriers are what axe finds on a page.
export async function barriers(page) {
	if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
	return page.evaluate(async () => {
		const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
		return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`);
	});
}

// over says what is out of sight: how much wider than the window a page is, what is wider than its dialog, form or row of
// tools, and links that are chosen and not shown.
export const over = (page) => page.evaluate(() => {
	const found = [], past = document.documentElement.scrollWidth - innerWidth;
	if (past > 0) found.push(`the page is ${past} px wider than the window`);
	for (const e of document.querySelectorAll("dialog[open], header, .rail, .card, .tools")) {
		const name = e.localName + "." + e.className, box = e.getBoundingClientRect();
		if (box.left < -1 || box.right > innerWidth + 1) found.push(`${name} reaches from ${box.left} to ${box.right} px`);
		if (e.scrollWidth > e.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(e).overflowX)) found.push(`what is in ${name} is ${e.scrollWidth - e.clientWidth} px wider than it`);
		if (e.localName === "dialog" && e.scrollWidth > e.clientWidth + 1) found.push(`${name} scrolls sideways`);
	}
	for (const e of document.querySelectorAll(".rail [aria-current], .tabs [aria-current]")) {
		const box = e.getBoundingClientRect();
		if (box.left < -1 || box.right > innerWidth + 1) found.push(`${e.textContent} is chosen and out of sight`);
	}
	return found;
});
