// What a page does in its frames: how many there are, what its main thread does, and what changes in each.

// frames counts the frames of a page for some seconds. during runs in the page, and returns what is called in each frame
// with its number, and with -1 at the end.
export const frames = (page, seconds, during = () => () => {}) => page.evaluate(`(${count})(${seconds}, ${during})`); // a text, as the policy of the page forbids eval

async function count(seconds, during) {
	const act = during(), began = performance.now(), end = began + seconds * 1000;
	let n = 0, longest = 0, last = began;
	while (last < end) {
		await new Promise(requestAnimationFrame);
		const now = performance.now();
		longest = Math.max(longest, now - last);
		last = now;
		act(n++);
	}
	act(-1);
	return { rate: (1000 * n) / (last - began), longest };
}

// drag moves the map of calls by its pointer events.
export function drag() {
	const svg = document.querySelector(".canvas"), { left, top } = svg.getBoundingClientRect();
	const at = (type, x) => svg.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1, clientX: left + x, clientY: top + 200 }));
	Element.prototype.setPointerCapture = () => {};
	at("pointerdown", 300);
	return (n) => (n < 0 ? at("pointerup", 300) : at("pointermove", 300 + 100 * Math.sin(n / 10)));
}

// traced does something while the browser is traced, and returns what the main thread of the page did: processor time in ms
// a second (busy), by kind of event (by), of the longest task (task), the number of tasks over 16 ms (long), and the largest
// number of objects that one layout had to do (dirty) of all of them (total).
export async function traced(browser, page, f) {
	await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] });
	const began = performance.now();
	await f();
	const seconds = (performance.now() - began) / 1000;
	const { traceEvents: events } = JSON.parse(String(await browser.stopTracing()));
	const threads = new Map();
	for (const e of events) if (e.name === "thread_name" && e.args.name === "CrRendererMain") threads.set(`${e.pid} ${e.tid}`, []);
	for (const e of events) if (e.ph === "X") threads.get(`${e.pid} ${e.tid}`)?.push(e);
	const time = (e) => (e.tdur ?? e.dur ?? 0) / 1000, tasks = (list) => list.filter((e) => e.name === "RunTask");
	const sum = (list) => list.reduce((n, e) => n + time(e), 0);
	const main = [...threads.values()].sort((a, b) => sum(tasks(b)) - sum(tasks(a)))[0] ?? [];
	const layouts = main.filter((e) => e.name === "Layout" && e.args.beginData), by = {};
	for (const e of main) by[e.name] = (by[e.name] ?? 0) + time(e) / seconds;
	return {
		busy: sum(tasks(main)) / seconds, task: Math.max(0, ...tasks(main).map(time)), long: tasks(main).filter((e) => time(e) > 16).length, by,
		dirty: Math.max(0, ...layouts.map((e) => e.args.beginData.dirtyObjects)), total: Math.max(0, ...layouts.map((e) => e.args.beginData.totalObjects)), layouts: layouts.length,
	};
}

// changed watches a page for some seconds, and returns the largest number of rows of tables that changed in one frame, and
// how many of the rows in sight have changed, of all of them.
export const changed = (page, seconds) => page.evaluate(async (seconds) => {
	const byFrame = new Map(), ever = new Set();
	const watch = new MutationObserver((list) => {
		const frame = document.timeline.currentTime, rows = byFrame.get(frame) ?? new Set();
		byFrame.set(frame, rows);
		for (const { target } of list) {
			const row = (target.nodeType === 1 ? target : target.parentElement)?.closest("tbody tr");
			if (!row) continue;
			rows.add(row);
			ever.add(row);
		}
	});
	watch.observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true, attributes: true });
	await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
	watch.disconnect();
	const sight = [...document.querySelectorAll("tbody tr")].filter((r) => {
		const { top, bottom } = r.getBoundingClientRect();
		return bottom > 60 && top < innerHeight;
	});
	return { most: Math.max(0, ...[...byFrame.values()].map((s) => s.size)), frames: byFrame.size, seen: sight.filter((r) => ever.has(r)).length, sight: sight.length, rows: document.querySelectorAll("tbody tr").length };
}, seconds);
