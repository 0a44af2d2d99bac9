// A table whose figures change every second. Its rows are drawn some at a time, what has another state first, and each is
// laid out and painted by itself: the widths of the columns are those that the browser has chosen for the first rows.
import { type RefObject, memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { inSight, never, soon, watchSight } from "./frames";
import { useText } from "./settings";
import { type Column, Heads, type TableProps, useOrder } from "./ui";

const lazyFor = 5_000; // ms after which a row that is out of sight is drawn anew

// rowHeight is that of the rows of a long table, as in the style sheet.
export const rowHeight = 32;

// Part is the part of a long list that a table has.
export interface Part {
	offset: number;
	matching: number; // rows of the whole list
	show: (first: number) => void; // asks for another part
}

interface Props<T> extends TableProps<T> {
	stateOf?: (row: T) => string; // what must be seen at once when it changes
	part?: Part; // the rows are in its order
}

// Drawn is what the rows of a table are drawn from. A row is a place: when the order changes, other things come to it.
interface Drawn<T> {
	columns: Column<T>[];
	rowClass?: (row: T) => string | undefined;
	rows: T[];
	keys: string[];
	states: Map<string, string>;
	draw: Map<number, (why: Why) => void>; // by place
	refit: () => void;
	held: boolean; // the viewer points at a row, or has the focus in one
	order: string; // that the viewer has chosen
}

// Why says why a row is drawn: it has other figures, another thing is in its place, or its state is another one.
type Why = "figures" | "other" | "state";

export function LiveTable<T>({ name, label, columns, rows, rowKey, rowClass, none, first = "", stateOf, part }: Props<T>) {
	const t = useText();
	const order = useOrder(name, first, columns, rows, part !== undefined);
	const box = useRef<HTMLDivElement>(null);
	const drawn = useRef<Drawn<T>>({ columns, rows: [], keys: [], states: new Map(), draw: new Map(), refit: () => {}, held: false, order: "" });
	const d = drawn.current, before = { rows: d.rows, keys: d.keys };
	const chosen = `${order.by} ${order.sign}`, list = d.held && d.order === chosen && !part ? kept(order.rows, rowKey, before.keys) : order.rows, keys = list.map(rowKey);
	Object.assign(d, { columns, rowClass, rows: list, keys, order: chosen });
	const look = columns.map((c) => c.id + c.title).join();
	const widest = keys.reduce((n, k) => Math.max(n, k.length), 0);
	const long = part !== undefined && part.matching > rows.length;
	d.refit = useWidths(box, `${look} ${widest} ${rows.length > 0} ${long}`);
	useEffect(() => {
		const states = new Map<string, string>();
		keys.forEach((key, i) => {
			const state = stateOf?.(list[i]) ?? "", was = d.states.get(key);
			states.set(key, state);
			if (before.rows[i] !== list[i]) d.draw.get(i)?.(was !== undefined && was !== state ? "state" : before.keys[i] !== key ? "other" : "figures");
		});
		d.states = states;
	});
	if (rows.length === 0) return <p className="empty">{none ?? t.none}</p>;
	const at = long ? part.offset : 0, hold = (held: boolean) => () => void (d.held = held);
	return (
		<div ref={box} className={long ? "scroll tall" : "scroll"} role="region" aria-label={label} tabIndex={0} onScroll={long ? (e) => scrolled(e.currentTarget, part, rows.length) : undefined}>
			<table role="table" aria-rowcount={long ? part.matching + 1 : undefined}>
				<thead role="rowgroup"><Heads name={name} columns={columns} order={order} /></thead>
				<tbody role="rowgroup" onPointerEnter={hold(true)} onPointerLeave={hold(false)} onFocus={hold(true)} onBlur={hold(false)}
					style={long ? { paddingTop: at * rowHeight, paddingBottom: Math.max(part.matching - at - rows.length, 0) * rowHeight } : undefined}>
					{keys.map((_, i) => <LiveRow key={at + i} place={i} drawn={drawn as RefObject<Drawn<unknown>>} look={look} index={long ? at + i + 2 : undefined} />)}
				</tbody>
			</table>
		</div>
	);
}

// kept returns rows in the order that they had, with new ones at the end.
function kept<T>(rows: T[], rowKey: (row: T, i: number) => string, before: string[]): T[] {
	const places = new Map(before.map((key, i) => [key, i]));
	return rows.map((row, i): [T, number] => [row, places.get(rowKey(row, i)) ?? Infinity]).sort((a, b) => (a[1] === b[1] ? 0 : a[1] - b[1])).map(([row]) => row);
}

// scrolled asks for another part of a long list when the end of what is there comes near.
function scrolled(e: HTMLElement, part: Part, rows: number): void {
	const top = Math.floor(e.scrollTop / rowHeight), sight = Math.ceil(e.clientHeight / rowHeight), margin = 10;
	const end = part.offset + rows;
	if ((top - margin < part.offset && part.offset > 0) || (top + sight + margin > end && end < part.matching)) part.show(Math.max(top - Math.floor((rows - sight) / 2), 0));
}

// useWidths fixes the widths of columns when key, the width of the page or the result says so, and at no other time.
function useWidths(box: RefObject<HTMLDivElement | null>, key: string): () => void {
	const [fit] = useState(() => () => {
		const e = box.current, table = e?.querySelector("table");
		if (!e || !table) return;
		const { scrollLeft, scrollTop } = e; // a long list is short for a moment
		table.classList.remove("fixed");
		const widths = [...table.querySelectorAll("th")].map((e) => e.getBoundingClientRect().width);
		table.style.setProperty("--columns", widths.map((w) => w.toFixed(2) + "px").join(" "));
		table.classList.add("fixed");
		e.scrollTo(scrollLeft, scrollTop);
	});
	useLayoutEffect(fit, [key]);
	useEffect(() => {
		const e = box.current;
		if (!e) return;
		// On a wide window a table has the width of its columns, and others when the window has another width.
		let width = e.clientWidth, page = innerWidth;
		const sizes = new ResizeObserver(() => {
			if (e.clientWidth !== width || innerWidth !== page) fit();
			width = e.clientWidth;
			page = innerWidth;
		});
		sizes.observe(e);
		sizes.observe(document.body);
		return () => sizes.disconnect();
	}, [key]);
	return fit;
}

interface RowProps {
	place: number;
	drawn: RefObject<Drawn<unknown>>;
	look: string; // of the columns
	index?: number; // in the whole list
}

const LiveRow = memo(function LiveRow({ place, drawn, index }: RowProps) {
	useText(); // the cells have texts
	const tr = useRef<HTMLTableRowElement>(null);
	const [row, setRow] = useState(() => drawn.current.rows[place]);
	useEffect(() => {
		const e = tr.current;
		if (!e) return;
		const key = {}, d = drawn.current;
		let at = performance.now() - Math.random() * lazyFor; // so that they take turns
		const draw = (why: Why) => () => {
			at = performance.now();
			flushSync(() => setRow(d.rows[place]));
			if (why === "state" && [...e.children].some((cell) => cell.scrollWidth > cell.clientWidth)) d.refit();
		};
		const want = (why: Why) => {
			if (why !== "figures" || inSight(e) || performance.now() - at > lazyFor) soon(key, draw(why), why === "state");
		};
		d.draw.set(place, want);
		const leave = watchSight(e, () => soon(key, draw("figures")));
		return () => {
			leave();
			never(key);
			if (d.draw.get(place) === want) d.draw.delete(place);
		};
	}, [place]);
	if (row === undefined) return null;
	const { columns, rowClass } = drawn.current;
	return (
		<tr ref={tr} role="row" className={rowClass?.(row)} aria-rowindex={index}>
			{columns.map((c) => <td key={c.id} role="cell" className={c.kind}>{c.cell(row)}</td>)}
		</tr>
	);
});
