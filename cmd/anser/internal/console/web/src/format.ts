// Figures, durations and times as text. The width of a number changes as little as possible.

// rate returns calls per second.
export function rate(x: number): string {
	if (!x) return "0";
	if (x >= 1e6) return (x / 1e6).toFixed(1) + "M";
	if (x >= 1e4) return (x / 1e3).toFixed(1) + "k";
	if (x >= 100) return x.toFixed(0);
	return x >= 10 ? x.toFixed(1) : x.toFixed(2);
}

const units: [string, number][] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]];

// span returns a duration of nanoseconds with three digits.
export function span(ns: number | null | undefined): string {
	if (!ns) return "–";
	for (const [unit, size] of units) {
		if (ns >= size * 0.9995) return (ns / size >= 99.95 ? (ns / size).toFixed(0) : (ns / size).toPrecision(3)) + " " + unit;
	}
	return Math.round(ns) + " ns";
}

// bytes returns a size.
export function bytes(n: number): string {
	const names = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; n >= 1024 && i < names.length - 1; i++) n /= 1024;
	return n.toFixed(i && n < 10 ? 1 : 0) + " " + names[i];
}

// percent returns a share of 1.
export function percent(x: number): string {
	if (!x) return "0 %";
	const p = 100 * x;
	return (p >= 10 ? p.toFixed(0) : p >= 0.1 ? p.toFixed(1) : "< 0.1") + " %";
}

// never reports whether a time of the console means that there was none.
export const never = (time: string | undefined): boolean => !time || time.startsWith("1970-01-01") || time.startsWith("0001-01-01");

const two = (n: number) => String(n).padStart(2, "0");

// clock returns a time in the zone of the viewer, with the date if that is another one than today.
export function clock(time: string | number | undefined, now = new Date()): string {
	if (time === undefined || time === "" || (typeof time === "string" && never(time))) return "–";
	const t = new Date(time);
	const text = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
	return t.toDateString() === now.toDateString() ? text : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${text}`;
}

// zone returns the zone of the viewer with its difference to UTC.
export function zone(now = new Date()): string {
	const minutes = -now.getTimezoneOffset();
	const h = Math.floor(Math.abs(minutes) / 60), m = Math.abs(minutes) % 60;
	return "UTC" + (minutes === 0 ? "" : (minutes < 0 ? "−" : "+") + h + (m ? ":" + two(m) : ""));
}

// short cuts a text in the middle.
export function short(text: string, n: number): string {
	if (text.length <= n) return text;
	const tail = Math.floor((n - 1) / 3);
	return text.slice(0, n - 1 - tail) + "…" + text.slice(text.length - tail);
}

// party is the name of a caller without what marks a process.
export const party = (name: string): string => name.replace(/^process:/, "");
export const isProcess = (name: string): boolean => name.startsWith("process:");

// byName compares texts as people do: 2 comes before 10.
export const byName = new Intl.Collator(undefined, { numeric: true }).compare;
