// The parts that pages are made of. Every text of another process is a child of an element, never markup.
import { type ReactNode, type RefObject, memo, useEffect, useMemo, useRef } from "react";
import type { ApiError, Change, Figures, Instance, Service } from "./api";
import { byName, clock, isProcess, never, party, rate, span } from "./format";
import { inSight, never as dropWork, soon, watchSight } from "./frames";
import type { Tone } from "./tone";
import { href, setQuery, useRoute } from "./route";
import { useText } from "./settings";
import { present, watch } from "./store";

const paths: Record<string, string> = {
	overview: "M3 8a2 2 0 1 0 4 0a2 2 0 1 0-4 0M11 3.5a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M11 12.5a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M6.8 7l4.4-2.7M6.8 9l4.4 2.7",
	services: "M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11zM5 5h.01M5 11h.01",
	instances: "M2.5 2.5h3v3h-3zM6.5 2.5h3v3h-3zM10.5 2.5h3v3h-3zM2.5 6.5h3v3h-3zM6.5 6.5h3v3h-3zM10.5 6.5h3v3h-3zM2.5 10.5h3v3h-3zM6.5 10.5h3v3h-3zM10.5 10.5h3v3h-3z",
	calls: "M2 5.5h10l-3-3M14 10.5H4l3 3",
	changes: "M8 4v4l3 2M2.5 8a5.5 5.5 0 1 0 1.6-3.9L2.5 5.7M2.5 2.5v3.2h3.2",
	registries: "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zM3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
	connections: "M6.5 9.5l3-3M7 4.5l1.3-1.3a2.6 2.6 0 0 1 3.7 0l.8.8a2.6 2.6 0 0 1 0 3.7L11.5 9M9 11.5l-1.3 1.3a2.6 2.6 0 0 1-3.7 0l-.8-.8a2.6 2.6 0 0 1 0-3.7L4.5 7",
	canaries: "M2 12h3c4 0 2-8 6-8h3M11.5 1.5L14 4l-2.5 2.5M10 12h4",
	audit: "M4 1.5h6l3 3v10H4zM10 1.5v3h3M6 8h5M6 11h5",
	files: "M2 4h4l1.5 1.5H14V13H2zM5 9h6",
	folder: "M2 3.5h4L7.5 5H14v8H2z",
	file: "M4 1.5h5.5L12 4v10.5H4zM9.5 1.5V4H12",
	arena: "M2 13.5h12M3.5 13.5V9h2.5v4.5M7 13.5v-10h2.5v10M10.5 13.5V6.5H13v7",
	search: "M7 12a5 5 0 1 1 0-10a5 5 0 0 1 0 10zM10.8 10.8L14 14",
	light: "M8 11a3 3 0 1 1 0-6a3 3 0 0 1 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
	dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
	system: "M2 3h12v8H2zM6 14h4M8 11v3",
	good: "M3 8.5l3.2 3L13 5",
	bad: "M4 4l8 8M12 4l-8 8",
	warn: "M8 2L14.5 13.5h-13zM8 6.5v3M8 11.5v.01",
	user: "M8 8a3 3 0 1 1 0-6a3 3 0 0 1 0 6zM2.5 14c0-3 2.5-4.5 5.5-4.5s5.5 1.5 5.5 4.5",
	lock: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
	play: "M5 3l8 5-8 5z",
	stop: "M4 4h8v8H4z",
};

export function Icon({ name }: { name: string }) {
	return <svg className="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={paths[name]} /></svg>;
}

export interface Column<T> {
	id: string;
	title: string;
	cell: (row: T) => ReactNode;
	sort?: (row: T) => string | number;
	kind?: "n" | "text" | "state";
	hint?: string;
}

export interface TableProps<T> {
	name: string; // of the value of the address that has the order
	label: string;
	columns: Column<T>[];
	rows: T[];
	rowKey: (row: T, i: number) => string;
	rowClass?: (row: T) => string | undefined;
	none?: ReactNode;
	first?: string; // the order at first, such as "name" or "-rate"
	most?: number;
}

export interface Order<T> {
	by: string; // id of a column
	sign: number; // -1: the largest first
	rows: T[];
}

// useOrder returns the rows in the order that the address says, or as they are if they are sorted already.
export function useOrder<T>(name: string, first: string, columns: Column<T>[], rows: T[], sorted = false): Order<T> {
	const { query } = useRoute();
	const order = query.get(name) ?? first;
	const [by, sign] = order.startsWith("-") ? [order.slice(1), -1] : [order, 1];
	const key = sorted ? undefined : columns.find((c) => c.id === by)?.sort;
	return useMemo(() => {
		if (!key) return { by, sign, rows };
		const list = rows.toSorted((a, b) => {
			const x = key(a), y = key(b);
			return sign * (typeof x === "number" && typeof y === "number" ? x - y : byName(String(x), String(y)));
		});
		return { by, sign, rows: list };
	}, [rows, by, sign, sorted]);
}

// Heads are the titles of columns, which choose the order.
export function Heads<T>({ name, columns, order: { by, sign } }: { name: string; columns: Column<T>[]; order: Order<T> }) {
	return (
		<tr role="row">
			{columns.map((c) => (
				<th key={c.id} scope="col" role="columnheader" className={c.kind} title={c.hint} aria-sort={c.sort && by === c.id ? (sign > 0 ? "ascending" : "descending") : undefined}>
					{c.sort ? (
						<button type="button" onClick={() => setQuery({ [name]: by === c.id ? (sign > 0 ? "-" + c.id : c.id) : c.kind === "n" ? "-" + c.id : c.id })}>
							{c.title}<span className="order" aria-hidden="true">{by === c.id ? (sign > 0 ? "▲" : "▼") : ""}</span>
						</button>
					) : c.title}
				</th>
			))}
		</tr>
	);
}

export function Table<T>({ name, label, columns, rows, rowKey, rowClass, none, first = "", most }: TableProps<T>) {
	const t = useText();
	const order = useOrder(name, first, columns, rows);
	if (rows.length === 0) return <p className="empty">{none ?? t.none}</p>;
	const shown = most ? order.rows.slice(0, most) : order.rows;
	return (
		<div className="scroll" role="region" aria-label={label} tabIndex={0}>
			<table>
				<thead><Heads name={name} columns={columns} order={order} /></thead>
				<tbody>
					{shown.map((row, i) => (
						<tr key={rowKey(row, i)} className={rowClass?.(row)}>{columns.map((c) => <td key={c.id} className={c.kind}>{c.cell(row)}</td>)}</tr>
					))}
				</tbody>
			</table>
			{shown.length < rows.length ? <p className="more">{t.andMore(rows.length - shown.length)}</p> : null}
		</div>
	);
}

export function Tiles({ list }: { list: { name: string; value: ReactNode; tone?: "bad" | "warn" | ""; note?: ReactNode }[] }) {
	return (
		<dl className="tiles">
			{list.map((x) => <div key={x.name} className={x.tone || undefined}><dt>{x.name}</dt><dd>{x.value}{x.note ? <small>{x.note}</small> : null}</dd></div>)}
		</dl>
	);
}

export function Section({ title, aside, children, id }: { title: ReactNode; aside?: ReactNode; children: ReactNode; id?: string }) {
	return <section id={id}>{title ? <div className="head"><h2>{title}</h2>{aside}</div> : null}{children}</section>;
}

function sparkOf(trail: number[] | undefined): string {
	if (!trail || trail.length < 2) return "";
	let top = 1e-9;
	for (const v of trail) if (v > top) top = v;
	const x0 = 60 - trail.length;
	let path = "";
	for (let i = 0; i < trail.length; i++) path += `${i ? "L" : "M"}${x0 + i} ${Math.round(10 * (15 - (13 * trail[i]) / top)) / 10}`;
	return path;
}

// Spark draws the last minute of rates. It is drawn outside of React, and while it is in sight.
export const Spark = memo(function Spark({ name }: { name: string }) {
	const box = useRef<SVGSVGElement>(null);
	useEffect(() => {
		const e = box.current, path = e?.firstElementChild;
		if (!e || !path) return;
		let drawn: number[] | undefined;
		const key = {};
		const draw = () => {
			const trail = present().trails.get(name);
			if (trail === drawn) return;
			drawn = trail;
			path.setAttribute("d", sparkOf(trail));
		};
		draw();
		const unwatch = watch(() => inSight(e) && soon(key, draw)), unsee = watchSight(e, () => soon(key, draw));
		return () => {
			unwatch();
			unsee();
			dropWork(key);
		};
	}, [name]);
	return <svg ref={box} className="spark" viewBox="0 0 60 16" preserveAspectRatio="none" aria-hidden="true"><path /></svg>;
});

export const ServiceLink = ({ name }: { name: string }) =>
	isProcess(name) ? <span title={name}>{party(name)}</span> : <a href={href(["services", name])} title={name}>{name}</a>;

export function Failed({ of }: { of: Figures }) {
	if (!(of.failed > 0)) return <>0</>;
	return <span className="bad"><Icon name="bad" />{rate(of.failed)}</span>;
}

// useRates returns the columns that all lists with figures have.
export function useRates<T extends Figures>(): Column<T>[] {
	const t = useText();
	return [
		{ id: "rate", title: t.callsPerSecond, kind: "n", cell: (r) => rate(r.rate), sort: (r) => r.rate },
		{ id: "failed", title: t.failedPerSecond, kind: "n", cell: (r) => <Failed of={r} />, sort: (r) => r.failed },
		{ id: "p50", title: "p50", kind: "n", cell: (r) => span(r.p50), sort: (r) => r.p50 },
		{ id: "p90", title: "p90", kind: "n", cell: (r) => span(r.p90), sort: (r) => r.p90 },
		{ id: "p99", title: "p99", kind: "n", cell: (r) => span(r.p99), sort: (r) => r.p99 },
	];
}

export function ServiceState({ s }: { s: Service }) {
	const t = useText();
	const bad: string[] = [];
	if (s.ejected) bad.push(t.nEjected(s.ejected));
	if (s.down) bad.push(t.nDown(s.down));
	if (s.stale) return <Mark tone="warn">{t.listOf(clock(s.stale))}</Mark>;
	if (bad.length) return <Mark tone="bad">{bad.join(", ")}</Mark>;
	if (s.failed > 0) return <Mark tone="bad">{t.nFailing(rate(s.failed))}</Mark>;
	if (s.external) return <span className="dim">{t.notInRegistry}</span>;
	return <Mark tone={s.drained ? "warn" : "good"}>{s.drained ? t.nDrained(s.drained) : t.up}</Mark>;
}

// Mark says how something is, by its shape as much as by its colour.
export function Mark({ tone, children }: { tone: Tone; children: ReactNode }) {
	return <span className={"mark " + tone}>{tone === "dim" ? null : <Icon name={tone} />}{children}</span>;
}

export function InstanceState({ i }: { i: Instance }) {
	const t = useText();
	const stale = i.stale ? <Mark tone="warn">{never(i.stale) ? t.neverRead : t.unknownSince(clock(i.stale))}</Mark> : null;
	if (i.health === "ejected" || i.health === "down") return <><Mark tone="bad">{t.health[i.health]}</Mark> {stale}</>;
	if (stale) return stale;
	if (i.state !== "up") return <Mark tone="warn">{t.states[i.state]}</Mark>;
	if (i.health === "unknown") return <Mark tone="dim">{t.health.unknown}</Mark>;
	return <Mark tone="good">{t.health.ok}</Mark>;
}

export function Changes({ list, most }: { list: Change[]; most?: number }) {
	const t = useText();
	const shown = most ? list.slice(0, most) : list;
	if (!shown.length) return <p className="empty">{t.noChanges}</p>;
	return (
		<ol className="changes">
			{shown.map((c, i) => (
				<li key={c.time + i}>
					<time dateTime={c.time}>{clock(c.time)}</time>
					<span className={"kind k-" + c.kind}>{t.kinds[c.kind] ?? c.kind}</span>
					<span className="what">
						{c.service ? <ServiceLink name={c.service} /> : null} {c.instance ? <a href={href(["services", c.service ?? ""], { tab: "instances", instance: c.instance })}>{c.instance}</a> : null} {c.text}{c.by ? <span className="dim"> – {c.by}</span> : null}
					</span>
				</li>
			))}
		</ol>
	);
}

// Wait is what a page shows before its answer, or in its place.
export function Wait({ error, again }: { error?: ApiError; again?: () => void }) {
	const t = useText();
	if (!error) return <div className="skeleton" role="status" aria-label={t.loading}><i /><i /><i /></div>;
	return (
		<div className="trouble" role="alert">
			<Icon name="warn" />
			<div>
				<strong>{error.status === 0 ? t.noAnswer : error.message}</strong>
				{error.advice ? <p>{error.advice}</p> : null}
				{again ? <button type="button" onClick={again}>{t.again}</button> : null}
			</div>
		</div>
	);
}

// useRevealed is for a row of links, which may be wider than the window: the one that is chosen is in sight, whenever key
// or the width changes.
export function useRevealed(key: string): RefObject<HTMLElement | null> {
	const row = useRef<HTMLElement>(null);
	useEffect(() => {
		const e = row.current;
		if (!e) return;
		const reveal = () => {
			const chosen = e.querySelector("[aria-current]")?.getBoundingClientRect(), all = e.getBoundingClientRect();
			if (chosen) e.scrollLeft += chosen.left - all.left - (all.width - chosen.width) / 2;
		};
		reveal();
		const sizes = new ResizeObserver(reveal);
		sizes.observe(e);
		return () => sizes.disconnect();
	}, [key]);
	return row;
}

export function Tabs({ name, list, label }: { name: string; list: [string, string][]; label: string }) {
	const { path, query } = useRoute();
	const chosen = query.get(name) ?? list[0][0], row = useRevealed(chosen);
	return (
		<nav className="tabs" ref={row} aria-label={label}>
			{list.map(([id, title], i) => (
				<a key={id} href={href(path, { [name]: i ? id : undefined })} aria-current={id === chosen ? "page" : undefined}>{title}</a>
			))}
		</nav>
	);
}

// Choice is a group of buttons of which one is chosen. The choice is in the address.
export function Choice({ name, list, label }: { name: string; list: [string, string][]; label: string }) {
	const { query } = useRoute();
	const chosen = query.get(name) ?? list[0][0];
	return (
		<div className="choice" role="group" aria-label={label}>
			{list.map(([id, title], i) => (
				<button key={id} type="button" aria-pressed={id === chosen} onClick={() => setQuery({ [name]: i ? id : undefined })}>{title}</button>
			))}
		</div>
	);
}

// Filter is a text that lists are filtered by. It is in the address.
export function Filter({ label, name = "q" }: { label: string; name?: string }) {
	const { query } = useRoute();
	return <input className="filter" type="search" aria-label={label} placeholder={label} value={query.get(name) ?? ""} onChange={(e) => setQuery({ [name]: e.target.value })} />;
}
