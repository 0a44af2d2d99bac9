// Finds services, instances, methods, pages and actions by their names.
import { useEffect, useId, useRef, useState } from "react";
import { type Found, ask, query } from "./api";
import { go, href, hrefOf } from "./route";
import { type Theme, setLanguage, setTheme, useSettings, useText } from "./settings";
import { useStore } from "./store";
import { Icon } from "./ui";

interface Entry {
	kind: string;
	name: string;
	run: () => void;
}

function useActions(): Entry[] {
	const t = useText();
	const { language } = useSettings();
	const arena = useStore((s) => s.arena);
	const pages: [string, string[]][] = [[t.overview, []], ...(["services", "instances", "calls", "changes", "registries", "connections", "files", "canaries"] as const).map((p): [string, string[]] => [t[p], [p]]), [t.auditLog, ["audit"]]];
	return [
		...pages.map(([name, path]) => ({ kind: "page", name, run: () => go(href(path)) })),
		...(arena ? [{ kind: "page", name: t.arena, run: () => { open("api/arena", "_blank", "noopener"); } }] : []),
		...(["system", "light", "dark"] as Theme[]).map((theme) => ({ kind: "action", name: t.useTheme(t.themes[theme]), run: () => setTheme(theme) })),
		{ kind: "action", name: t.languageHint, run: () => setLanguage(language === "en" ? "zh" : "en") },
	];
}

export default function Palette({ close }: { close: () => void }) {
	const t = useText();
	const actions = useActions();
	const dialog = useRef<HTMLDialogElement>(null);
	const [text, setText] = useState(""), [found, setFound] = useState<Found[]>([]), [at, setAt] = useState(0);
	const id = useId();

	useEffect(() => {
		const e = dialog.current;
		e?.showModal();
		return () => e?.close();
	}, []);
	useEffect(() => {
		const control = new AbortController();
		const wait = setTimeout(() => {
			// "posts: canary" is an action of a service, and "posts: File" the name of a folder.
			const names = [text, ...(text.includes(":") ? [text.slice(0, text.indexOf(":"))] : [])];
			Promise.all(names.map((q) => ask<Found[]>("search" + query({ q }), { signal: control.signal }))).then(([list, more = []]) => {
				setFound([...list, ...more.filter((f) => f.kind === "service" && !list.some((l) => l.url === f.url))]);
				setAt(0);
			}, () => {});
		}, text ? 60 : 0);
		return () => {
			clearTimeout(wait);
			control.abort();
		};
	}, [text]);

	const wanted = text.trim().toLowerCase();
	const list: Entry[] = [
		...(wanted ? found.filter((f) => f.name.toLowerCase().includes(wanted)).slice(0, 30).map((f) => ({ kind: f.kind, name: f.name, run: () => go(hrefOf(f.url)) })) : []),
		...(wanted ? found.filter((f) => f.kind === "service").slice(0, 5).flatMap((f) => ([["rules", t.rules], ["canary", t.canaryAndFaults], ["try", t.tryMethod]] as const).map(([tab, name]) => (
			{ kind: "action", name: `${f.name}: ${name}`, run: () => go(href(["services", f.name], { tab })) }
		))).filter((a) => !wanted.includes(":") || a.name.toLowerCase().includes(wanted)) : []),
		...actions.filter((a) => a.name.toLowerCase().includes(wanted)),
	];
	const chosen = Math.min(at, list.length - 1);
	const run = (e: Entry | undefined) => {
		if (!e) return;
		close();
		e.run();
	};
	useEffect(() => {
		document.getElementById(id + chosen)?.scrollIntoView({ block: "nearest" }); // newer browsers return a promise, which is no clean-up
	}, [chosen]);
	return (
		<dialog ref={dialog} className="palette" aria-label={t.searchWhat} onClose={close} onClick={(e) => e.target === dialog.current && close()}>
			<div className="ask">
				<Icon name="search" />
				<input autoFocus type="text" role="combobox" aria-expanded="true" aria-controls={id} aria-activedescendant={chosen >= 0 ? id + chosen : undefined} aria-label={t.searchWhat} placeholder={t.searchWhat} value={text} spellCheck={false} autoComplete="off"
					onChange={(e) => setText(e.target.value)}
					onKeyDown={(e) => {
						if (e.key === "ArrowDown" || e.key === "ArrowUp") {
							e.preventDefault();
							setAt((n) => (Math.min(n, list.length - 1) + (e.key === "ArrowDown" ? 1 : -1) + list.length) % Math.max(list.length, 1));
						} else if (e.key === "Enter") run(list[chosen]);
					}} />
			</div>
			<ul id={id} role="listbox" aria-label={t.search}>
				{list.map((e, i) => (
					<li key={e.kind + e.name + i} id={id + i} role="option" aria-selected={i === chosen} onClick={() => run(e)} onPointerMove={() => setAt(i)}>
						<span className="name">{e.name}</span><span className="kind">{t.paletteKinds[e.kind] ?? e.kind}</span>
					</li>
				))}
			</ul>
			{list.length ? null : <p className="empty">{t.paletteNone}</p>}
			<p className="hint dim">{t.paletteHint}</p>
		</dialog>
	);
}
