// The processes that serve the pages: the demo, and for the tests a process whose names are hostile, with a gateway.
import { spawn, execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConnection, createServer } from "node:net";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
export const bin = process.env.BIN; // the folder with the programs anser and hostile

// launch starts Chromium.
export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

export const consoleAt = /console of .* at (http:\/\/[\d.:]+)\//; // what a console prints

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

// System is a set of processes and the addresses of their pages.
export class System {
	sites = {};
	#processes = [];
	#cables = [];

	// spawn starts a program, and returns the matches of patterns in what it prints.
	async spawn(name, args, patterns, options) {
		const child = spawn(join(bin, name), args, { stdio: ["pipe", "pipe", "pipe"], ...options });
		this.#processes.push(child);
		let text = "";
		return await new Promise((resolve, reject) => {
			const bound = setTimeout(() => reject(new Error(`${name} does not print ${patterns}:\n${text}`)), 120_000);
			const read = (part) => {
				text += part;
				const found = patterns.map((p) => text.match(p)?.[1]);
				if (found.every(Boolean)) {
					child.found = found;
					clearTimeout(bound);
					resolve(found);
				}
			};
			child.stdout.on("data", read);
			child.stderr.on("data", read);
			child.on("exit", (code) => {
				clearTimeout(bound);
				reject(new Error(`${name} ended with ${code}:\n${text}`));
			});
		});
	}

	// demo starts the demo: its callers and gateway have pages, and so have its instances and the console of all.
	async demo(...flags) {
		const [registry, gateway, page, console] = await this.spawn("anser", ["demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--console", "127.0.0.1:0", ...flags],
			[/(etcd:\/\/[\d.:]+)/, /all protocols except net\/rpc's gob at ([\d.:]+)/, /(http:\/\/[\d.:]+)\/metrics/, /the system is on a page at (http:\/\/[\d.:]+)\//]);
		this.registry = registry;
		const { stdout } = await run(join(bin, "anser"), ["ls", "front", "--json", "--registry", registry]);
		await run(join(bin, "anser"), ["call", "arith", "Demo.Slow", '{"Micros": 60000}', "--registry", registry]); // a trace to look at
		Object.assign(this.sites, { gateway: `http://${gateway}`, callers: page, console, instance: stdout.match(/"(http:\/\/[\d.:]+)\/"/)[1] });
	}

	// hostile starts a process with names that try to be markup and to control terminals, which a file announces.
	async hostile() {
		this.folder = await mkdtemp(join(tmpdir(), "anser-pages-"));
		const [service, page] = await this.spawn("hostile", [], [/service ([\d.:]+)\n/, /page ([\d.:]+)\n/]);
		const tags = { admin: `http://${page}/`, [evil.tag]: evil.tag };
		const record = { service: evil.service, id: evil.id, address: service, version: evil.version, zone: evil.zone, tags };
		await writeFile(join(this.folder, "services.json"), JSON.stringify([record]));
		await writeFile(join(this.folder, "gateway.yaml"), 'mcp: {allow: ["*"]}\n');
		this.evil = { registry: `file://${this.folder}/services.json`, address: service, page };
		const [gateway] = await this.spawn("anser", ["gateway", join(this.folder, "gateway.yaml"), "--listen", "127.0.0.1:0", "--registry", this.evil.registry], [/([\d.]+:\d+)/]);
		Object.assign(this.sites, { hostile: `http://${page}`, "hostile gateway": `http://${gateway}` });
	}

	// states starts what serves the places of states.mjs: consoles of nothing, of a registry that does not answer, of names
	// that are hostile, of users who log in, and of 1,000 instances; and a connection to the demo's console that can be cut.
	async states() {
		const users = join(this.folder, "users.json"), none = join(this.folder, "none.json"), report = join(this.folder, "arena.html");
		await writeFile(none, "[]");
		await writeFile(report, "<!doctype html><title>Arena</title><h1>The arena</h1>");
		const added = run(join(bin, "anser"), ["console", "user", "add", "viewer", "--role", "look", "--users", users]);
		added.child.stdin.end("correct horse battery\n");
		await added;
		const open = async (site, ...flags) => {
			const [address] = await this.spawn("anser", ["console", "--listen", "127.0.0.1:0", ...flags], [consoleAt]);
			this.sites[site] = address;
		};
		const { hostname, port } = new URL(this.sites.console);
		this.cable = this.cut(new Cable(hostname, port));
		await Promise.all([
			open("users", "--registry", this.registry, "--users", users, "--audit", join(this.folder, "users.jsonl"), this.sites.callers),
			open("empty", "--registry", `file://${none}`, "--audit", join(this.folder, "empty.jsonl"), "--arena", report),
			open("unreachable", "--registry", "etcd://127.0.0.1:1"),
			open("hostile console", "--registry", this.evil.registry, "--audit", join(this.folder, "hostile.jsonl")),
			this.crowd(),
			this.cable.listen().then((address) => { this.sites.cable = "http://" + address; }),
		]);
	}

	// crowd starts a console of 1,000 instances, unless it runs.
	async crowd() {
		if (!this.sites.crowd) [this.sites.crowd] = await this.spawn("crowd", [], [/console at (http:\/\/[\d.:]+)\//]);
	}

	// cut closes a cable at the end. Without that the process would not end.
	cut(cable) {
		this.#cables.push(cable);
		return cable;
	}

	// stop ends the process that has printed a text.
	async stop(printed) {
		await ended(this.#processes.find((child) => child.exitCode === null && child.found?.includes(printed)));
	}

	async end() {
		for (const cable of this.#cables) cable.close();
		await Promise.all(this.#processes.map(ended));
		if (this.folder) await rm(this.folder, { recursive: true });
	}
}

// ended ends a process.
const ended = (child) => new Promise((resolve) => {
	if (child.exitCode !== null) return resolve();
	child.on("exit", resolve);
	child.kill("SIGINT");
	child.stdin.end();
});

// evil are names that a registry takes from an instance.
export const evil = {
	service: "evil", id: "<img src=x onerror=alert(1)>", version: "\"><script>alert(2)</script>", zone: "{{.}}<b>zone</b>", tag: "javascript:alert(3)",
};
