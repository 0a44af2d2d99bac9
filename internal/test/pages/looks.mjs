// Makes a screenshot of each place of places.mjs in each look, light and dark, narrow and wide: see scripts/looks. The
// argument is the folder; further ones choose places by a part of their names.
import { join } from "node:path";
import { places } from "./places.mjs";
import { System, launch } from "./system.mjs";
import { barriers, looks, over, visit, wear } from "./visit.mjs";

const [folder, ...chosen] = process.argv.slice(2);
const wanted = places.filter((p) => chosen.length === 0 || chosen.some((c) => p.name.includes(c)));
const tallest = 4; // windows of a picture: what is below is more of the same

const system = new System();
const troubles = [];
try {
	await Promise.all([system.demo("--every", "0"), system.hostile()]);
	await system.states();
	const browser = await launch();
	for (const place of wanted) {
		const context = await browser.newContext({ viewport: looks[0], colorScheme: looks[0].scheme });
		try {
			const { page, wrong } = await visit(context, system, place);
			try {
				for (const look of looks) {
					await wear(page, look);
					const told = [...await over(page), ...(process.env.AXE && look.axe ? await barriers(page) : [])];
					troubles.push(...told.map((text) => `${place.name}, ${look.name}: ${text}`));
					const height = await page.evaluate(() => { scrollTo(0, 0); return document.documentElement.scrollHeight; });
					const path = join(folder, `${place.name.replace(/[^a-zA-Z0-9]+/g, "-")}-${look.width}-${look.scheme}.png`);
					await page.screenshot({ path, fullPage: true, clip: { x: 0, y: 0, width: look.width, height: Math.min(height, tallest * look.height) } });
				}
				troubles.push(...wrong.filter((text) => !place.expects?.test(text)).map((text) => `${place.name}: ${text}`));
			} finally {
				await place.after?.(page, system);
			}
			console.log(place.name);
		} catch (error) {
			troubles.push(`${place.name}: ${error}`);
		}
		await context.close();
	}
	await browser.close();
} finally {
	await system.end();
}
for (const text of troubles) console.error(text);
process.exitCode = wanted.length === 0 || troubles.length > 0 ? 1 : 0;
if (wanted.length === 0) console.error("no place has such a name");
