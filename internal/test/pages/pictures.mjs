// Makes the pictures of docs/images: the pages in places.mjs that have one, in Chromium, and the commands below on a
// terminal, which is tmux. All show a demo that runs meanwhile. The argument is the folder; further ones choose pictures.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { places } from "./places.mjs";
import { System, bin, launch } from "./system.mjs";
import { draw } from "./terminal.mjs";

const run = promisify(execFile);
const [folder, ...chosen] = process.argv.slice(2);
const wants = (name) => chosen.length === 0 || chosen.includes(name);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The terminals: what is typed, the size, keys that are pressed, and how long the command runs before its picture.
const terminals = [
	{ picture: "demo", command: "anser demo", size: [122, 48], wait: 45_000, alone: true },
	{ picture: "top", command: "anser top", size: [108, 14], wait: 8_000 },
	{ picture: "top-instance", command: "anser top", size: [140, 28], keys: ["Tab", "Enter"], wait: 8_000 },
	{ picture: "tail", command: "anser tail front -n 12 --slower 1ms", size: [140, 14], wait: 12_000 },
	{ picture: "doctor", command: "anser doctor", size: [100, 34], wait: 12_000 },
];

// tmux runs a command of tmux on a server of its own.
const tmux = (...args) => run("tmux", ["-L", `anser-pictures-${process.pid}`, "-f", "/dev/null", ...args]);

// take takes the picture of a terminal.
async function take({ picture, command, size: [columns, rows], keys = [], wait }, registry) {
	const env = [`ANSER_REGISTRY=${registry}`, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8"];
	await tmux("new-session", "-d", "-s", picture, "-x", String(columns), "-y", String(rows), ...env.flatMap((e) => ["-e", e]), `PATH=${bin}:$PATH; ${command}; sleep 600`); // the shell sets a path of its own
	await sleep(wait / 2);
	for (const key of keys) {
		await tmux("send-keys", "-t", picture, key);
		await sleep(500);
	}
	await sleep(wait / 2);
	const { stdout } = await tmux("capture-pane", "-e", "-p", "-t", picture);
	await writeFile(join(folder, `${picture}.svg`), draw(stdout, columns, command));
	await tmux("send-keys", "-t", picture, "C-c");
	await sleep(2_000);
	await tmux("kill-session", "-t", picture).catch(() => {}); // the interrupt may have ended it
	console.log(`${picture}.svg`);
}

// shoot takes the picture of a page.
async function shoot(browser, { picture, site, path, ready, prepare, size: [width, height], wait = 0, dark }) {
	const page = await browser.newPage({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
	page.setDefaultTimeout(120_000);
	await page.goto(system.sites[site] + path);
	await page.waitForSelector(ready);
	await prepare?.(page);
	await sleep(wait);
	await page.evaluate(() => scrollTo(0, 0));
	await page.screenshot({ path: join(folder, `${picture}.png`) });
	await page.close();
	console.log(`${picture}.png`);
}

const system = new System();
try {
	await tmux("new-session", "-d", "-s", "keep", "sleep 3600"); // the server ends with its last session
	for (const terminal of terminals) if (terminal.alone && wants(terminal.picture)) await take(terminal, "");
	const browser = await launch();
	const pictured = places.filter(({ picture }) => picture && wants(picture));
	const still = pictured.filter((place) => place.still);
	if (still.length > 0) {
		await system.demo("--every", "0");
		await sleep(40_000); // the console compares figures with the ones before
		for (const place of still) await shoot(browser, place);
		await system.stop(system.registry);
	}
	await system.demo("--steps", "slow,canary"); // steps that end no instance, whose page a picture may show
	for (const place of pictured) if (!place.still) await shoot(browser, place);
	await browser.close();
	for (const terminal of terminals) if (!terminal.alone && wants(terminal.picture)) await take(terminal, system.registry);
} finally {
	await tmux("kill-server").catch(() => {});
	await system.end();
}
