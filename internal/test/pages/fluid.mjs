// Measures the pages of the console next to an empty page: see scripts/fluid.
import { System, launch } from "./system.mjs";
import { drag, frames, traced } from "./frames.mjs";

const number = (name, otherwise) => Number(process.env[name]) || otherwise;
const rounds = number("ROUNDS", 3), seconds = number("SECONDS_EACH", 5), only = process.env.ONLY ?? "";
const services = number("SERVICES", 100), instances = number("INSTANCES", 10);

const pages = [
	{ name: "map", path: "/#/?group=none", ready: ".node:nth-of-type(20)" },
	{ name: "map, moved", path: "/#/?group=none", ready: ".node:nth-of-type(20)", during: drag },
	{ name: "services", path: "/#/services", ready: "tbody tr" },
	{ name: "services by rate", path: "/#/services?sort=-rate", ready: "tbody tr" },
	{ name: "instances", path: "/#/instances", ready: ".grid canvas" },
	{ name: "all instances in a list", path: "/#/instances?list=all", ready: ".tall tbody tr, tbody tr" },
	{ name: "a service", path: "/#/services/shop.service-000", ready: ".uplot" },
	{ name: "a method", path: "/#/services/shop.service-000/Items.Get", ready: ".uplot" },
].filter((p) => p.name.includes(only));

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const system = new System();
const [site] = await system.spawn("crowd", ["-services", String(services), "-instances", String(instances)], [/console at (http:\/\/[\d.:]+)\//]);
// The console has a viewer also while the empty page is measured.
const viewer = new AbortController();
fetch(site + "/api/events", { signal: viewer.signal }).then(async (r) => { for await (const _ of r.body); }).catch(() => {});
await wait(8_000);
const browser = await launch();

// measure opens a page, and returns its frames, and what a trace says of the time after.
async function measure({ path, ready, during }) {
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	page.setDefaultTimeout(120_000);
	const began = performance.now(); // nothing of the page is in a cache of the browser
	await page.goto(path ? site + path : "about:blank");
	if (ready) await page.waitForSelector(ready);
	const opened = performance.now() - began;
	await wait(path ? 4_000 : 500);
	const shown = await frames(page, seconds, during);
	const trace = await traced(browser, page, () => frames(page, seconds, during));
	await page.close();
	return { opened, ...shown, ...trace };
}

try {
	console.log(`${services} services with ${instances} instances each, ${rounds} rounds of ${seconds} s, 1280 x 800 pixels; medians of the rounds, and the longest of all`);
	const results = new Map(pages.map((p) => [p.name, { page: [], empty: [] }]));
	for (let round = 0; round < rounds; round++) {
		for (const p of pages) {
			const of = results.get(p.name);
			of.empty.push(await measure({}));
			of.page.push(await measure(p));
		}
	}
	console.log("\n| page | drawn after, ms | frames/s | empty page | longest frame, ms | empty page | main thread, ms a second | empty page | longest task, ms | tasks over 16 ms | objects laid out, of |\n|---|---|---|---|---|---|---|---|---|---|---|");
	for (const [name, { page, empty }] of results) {
		const of = (list, key) => median(list.map((x) => x[key])), most = (list, key) => Math.max(...list.map((x) => x[key]));
		console.log(`| ${name} | ${of(page, "opened").toFixed(0)} | ${of(page, "rate").toFixed(1)} | ${of(empty, "rate").toFixed(1)} | ${most(page, "longest").toFixed(0)} | ${most(empty, "longest").toFixed(0)} | ${of(page, "busy").toFixed(0)} | ${of(empty, "busy").toFixed(0)} | ${most(page, "task").toFixed(0)} | ${of(page, "long")} | ${most(page, "dirty")}, ${most(page, "total")} |`);
		if (process.env.VERBOSE) console.log(Object.entries(page[0].by).sort((a, b) => b[1] - a[1]).slice(0, 14).map(([k, v]) => `    ${k} ${v.toFixed(1)} ms/s`).join("\n"));
	}
} finally {
	viewer.abort();
	await browser.close();
	await system.end();
}
