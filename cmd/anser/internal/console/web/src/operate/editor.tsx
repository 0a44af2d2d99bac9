// The editor of rules as text: with numbers of lines, and a list of what may be written where the caret is.
import { type ChangeEvent, type KeyboardEvent, type RefObject, type UIEvent, useEffect, useId, useRef, useState } from "react";
import { useText } from "../settings";
import { type Candidate, type Names, type Place, candidatesAt, placeOf } from "./complete";
import type { Schema } from "./schema";

interface Popup {
	place: Place;
	list: Candidate[];
	at: number; // the chosen one
	left: number;
	top: number;
	scroll: number; // of the text, for this top
}

interface Props {
	area: RefObject<HTMLTextAreaElement | null>;
	value: string;
	set: (text: string) => void;
	readOnly: boolean;
	schema?: Schema; // without one nothing is suggested
	names: Names;
	wrong: number[]; // lines with mistakes, from 1
}

// write replaces a part of the text as if it was typed, so that the browser can undo it.
function write(area: HTMLTextAreaElement, from: number, to: number, text: string): void {
	area.focus();
	area.setSelectionRange(from, to);
	if (document.execCommand("insertText", false, text)) return;
	area.setRangeText(text, from, to, "end");
	area.dispatchEvent(new Event("input", { bubbles: true }));
}

// lineHeight returns the height of a line in pixels.
const lineHeight = (area: HTMLElement): number => parseFloat(getComputedStyle(area).lineHeight);

// goTo selects a line.
export function goTo(area: HTMLTextAreaElement, line: number): void {
	const lines = area.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
	area.focus();
	area.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
	area.scrollTop = (line - 3) * lineHeight(area);
}

export function Editor({ area, value, set, readOnly, schema, names, wrong }: Props) {
	const t = useText();
	const id = useId();
	const [popup, setPopup] = useState<Popup | null>(null);
	const probe = useRef<HTMLSpanElement>(null), gutter = useRef<HTMLPreElement>(null), list = useRef<HTMLUListElement>(null);
	const accepted = useRef(false);
	const lines = value.split("\n").length;
	useEffect(() => {
		list.current?.children[popup?.at ?? 0]?.scrollIntoView({ block: "nearest" });
	}, [popup?.at]);
	useEffect(() => {
		let width = innerWidth;
		const close = () => { // the place of the list was that of another width
			if (innerWidth !== width) setPopup(null);
			width = innerWidth;
		};
		addEventListener("resize", close);
		return () => removeEventListener("resize", close);
	}, []);

	// suggest opens the list. Unless the viewer asks for it, something must be typed, or a field begun.
	const suggest = (e: HTMLTextAreaElement, asked: boolean) => {
		if (!schema || readOnly || e.selectionStart !== e.selectionEnd) return setPopup(null);
		const at = e.selectionStart, line = e.value.slice(e.value.lastIndexOf("\n", at - 1) + 1, at);
		if (!asked && !/[^\s,[\]{}]$|[:,-] $|["'][^"']*$/.test(line)) return setPopup(null);
		const place = placeOf(schema, e.value, at), found = place ? candidatesAt(schema, e.value, place, names) : [];
		if (!place || !found.length || !probe.current) return setPopup(null);
		probe.current.textContent = e.value.slice(e.value.lastIndexOf("\n", place.from - 1) + 1, place.from);
		const style = getComputedStyle(e), row = e.value.slice(0, place.from).split("\n").length, width = e.clientWidth;
		setPopup({
			place, list: found, at: 0,
			left: Math.max(Math.min(e.offsetLeft + parseFloat(style.paddingLeft) + probe.current.offsetWidth - e.scrollLeft, e.offsetLeft + width - Math.min(width, 340)), 0),
			top: parseFloat(style.paddingTop) + row * lineHeight(e) - e.scrollTop + 4, scroll: e.scrollTop,
		});
	};
	const accept = (c: Candidate) => {
		if (!popup || !area.current) return;
		accepted.current = true;
		write(area.current, popup.place.from, popup.place.to, c.insert);
		accepted.current = false;
	};
	const changed = (e: ChangeEvent<HTMLTextAreaElement>) => {
		const input = e.nativeEvent as InputEvent;
		set(e.target.value);
		if (input.isComposing) return;
		if (accepted.current) suggest(e.target, true);
		else if (input.inputType === "insertText" || (popup && input.inputType?.startsWith("delete"))) suggest(e.target, false);
		else setPopup(null);
	};
	const pressed = (e: KeyboardEvent<HTMLTextAreaElement>) => {
		if (e.nativeEvent.isComposing || readOnly) return;
		if (e.key === " " && e.ctrlKey) {
			e.preventDefault();
			suggest(e.currentTarget, true);
		} else if (popup && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
			e.preventDefault();
			setPopup({ ...popup, at: (popup.at + (e.key === "ArrowDown" ? 1 : -1) + popup.list.length) % popup.list.length });
		} else if (popup && (e.key === "Enter" || e.key === "Tab") && !e.shiftKey) {
			e.preventDefault();
			accept(popup.list[popup.at]);
		} else if (popup && e.key === "Escape") {
			e.preventDefault();
			setPopup(null);
		} else if (e.key === "Enter" && !e.shiftKey && !e.ctrlKey && !e.metaKey) {
			const { selectionStart: from, selectionEnd: to, value: text } = e.currentTarget;
			const indent = /^ *(?:- +(?=\S))?/.exec(text.slice(text.lastIndexOf("\n", from - 1) + 1, from))?.[0].length ?? 0;
			e.preventDefault();
			write(e.currentTarget, from, to, "\n" + " ".repeat(indent));
		} else if (/^(Arrow|Home|End|Page)/.test(e.key)) setPopup(null);
	};
	const scrolled = (e: UIEvent<HTMLTextAreaElement>) => {
		const { scrollTop, clientHeight } = e.currentTarget;
		if (gutter.current) gutter.current.scrollTop = scrollTop;
		setPopup((old) => {
			const top = old ? old.top - (scrollTop - old.scroll) : 0;
			return old && top > 0 && top < clientHeight + 20 ? { ...old, top, scroll: scrollTop } : null;
		});
	};
	const option = (i: number) => `${id}-${i}`, chosen = popup?.list[popup.at];
	return (
		<div className="editor">
			<pre ref={gutter} className="gutter" aria-hidden="true">{Array.from({ length: lines }, (_, i) => <span key={i} className={wrong.includes(i + 1) ? "bad" : undefined}>{i + 1}{"\n"}</span>)}</pre>
			{/* A textarea cannot have the role combobox: it is a textbox with a list. */}
			<textarea ref={area} className="code" aria-label={t.rulesText} aria-describedby={readOnly ? undefined : id + "-hint"} aria-autocomplete={readOnly ? undefined : "list"} aria-controls={popup ? id : undefined} aria-activedescendant={popup ? option(popup.at) : undefined}
				spellCheck={false} autoCapitalize="off" autoComplete="off" rows={Math.min(Math.max(lines + 2, 14), 34)} value={value} readOnly={readOnly}
				onChange={changed} onKeyDown={pressed} onBlur={() => setPopup(null)} onClick={() => setPopup(null)}
				onScroll={scrolled} />
			<span ref={probe} className="probe" aria-hidden="true" />
			{popup ? (
				<ul ref={list} id={id} className="suggestions" role="listbox" aria-label={t.suggestions} style={{ left: `min(${popup.left}px, 100% - min(340px, 100%))`, top: popup.top }}>
					{popup.list.map((c, i) => (
						<li key={c.label} id={option(i)} role="option" aria-selected={i === popup.at} onPointerDown={(e) => { e.preventDefault(); accept(c); }} onPointerMove={() => i === popup.at || setPopup({ ...popup, at: i })}>
							<code>{c.label}</code>{c.doc ? <span className="dim">{c.doc}</span> : null}
						</li>
					))}
				</ul>
			) : null}
			<p className="unseen" role="status">{popup && chosen ? t.suggested(popup.at + 1, popup.list.length, chosen.label, chosen.doc) : ""}</p>
			{readOnly ? null : <p id={id + "-hint"} className="dim hint">{t.editorHint}</p>}
		</div>
	);
}
