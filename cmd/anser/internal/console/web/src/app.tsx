// The frame of all pages: navigation, search, the state of the connection, colours and language.
import { Component, type ReactNode, Suspense, lazy, useEffect, useRef, useState } from "react";
import { clock, zone } from "./format";
import { logOut, loggedOut, needsLogin, useViewer } from "./session";
import { type Route, href, useRoute } from "./route";
import { type Theme, setLanguage, setTheme, useSettings, useText } from "./settings";
import { reconnect, useStore } from "./store";
import { Icon, Wait, useRevealed } from "./ui";
import { AuditPage, CallsPage, CanariesPage, ChangesPage, ConnectionsPage, FilesView, FoldersPage, InstancesView, LoginPage, Method, Overview, RegistriesPage, Service, ServicesPage, Trace } from "./views/pages";

const search = () => import("./palette");
const Palette = lazy(search);

const pages = ["", "services", "instances", "calls", "changes", "registries", "connections", "files", "canaries", "audit"] as const;

const names: Record<string, "auditLog"> = { audit: "auditLog" };

function view({ path }: Route): ReactNode {
	const [first = "", second, third] = path;
	if (first === "services" && third !== undefined) return <Method key={second + "/" + third} service={second} method={third} />;
	if (first === "services" && second !== undefined) return <Service key={second} name={second} />;
	switch (first) {
		case "": return <Overview />;
		case "services": return <ServicesPage />;
		case "instances": return <InstancesView />;
		case "calls": return <CallsPage />;
		case "trace": return <Trace key={second} id={second ?? ""} />;
		case "changes": return <ChangesPage />;
		case "registries": return <RegistriesPage />;
		case "connections": return <ConnectionsPage />;
		case "files": return second === undefined ? <FoldersPage /> : <FilesView key={second} service={second} />;
		case "canaries": return <CanariesPage />;
		case "audit": return <AuditPage />;
	}
	return <Nowhere />;
}

function Nowhere() {
	const t = useText();
	return <div className="empty"><h1>{t.noSuchPage}</h1><p><a href={href([])}>{t.overview}</a></p></div>;
}

export function App() {
	const t = useText();
	const route = useRoute();
	const lost = useStore((s) => s.lost), loaded = useStore((s) => s.loaded);
	const arena = useStore((s) => s.arena);
	const viewer = useViewer(), out = needsLogin(viewer);
	const [searching, setSearching] = useState(false);
	const main = useRef<HTMLElement>(null);
	const here = route.path.join("/"), rail = useRevealed(here + out);

	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const typing = e.target instanceof HTMLElement && e.target.matches("input, textarea, select, [contenteditable]");
			if (loggedOut()) return;
			if (((e.metaKey || e.ctrlKey) && e.key.toLowerCase() === "k") || (e.key === "/" && !typing)) {
				e.preventDefault();
				setSearching(true);
			}
		};
		addEventListener("keydown", key);
		const soon = setTimeout(() => search().catch(() => {}), 1_500); // so that no key is lost when it opens
		return () => {
			clearTimeout(soon);
			removeEventListener("keydown", key);
		};
	}, []);
	useEffect(() => {
		scrollTo(0, 0);
		document.title = (route.path.length ? route.path.at(-1) + " – " : "") + t.title;
	}, [here, t]);

	return (
		<div className={"frame" + (lost ? " lost" : "") + (out ? " alone" : "")}>
			<a className="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>{t.skip}</a>
			<header>
				<a className="brand" href="#/"><Brand />{t.title}</a>
				{out ? null : <button type="button" className="find" onClick={() => setSearching(true)} aria-label={t.searchWhat}><Icon name="search" /><span>{t.search}</span><kbd>{/Mac/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd></button>}
				{out ? null : <Connection />}
				<ThemeButton />
				<LanguageButton />
				<User />
			</header>
			{out ? null : <nav className="rail" ref={rail} aria-label={t.pages}>
				{pages.map((p) => {
					const id = p || "overview", current = (route.path[0] ?? "") === p;
					return <a key={id} href={href(p ? [p] : [])} aria-current={current ? "page" : undefined}><Icon name={id} /><span>{t[names[id] ?? (id as "overview")]}</span></a>;
				})}
				{arena ? <a href="api/arena" target="_blank" rel="noopener" title={t.arenaHint}><Icon name="arena" /><span>{t.arena}</span></a> : null}
			</nav>}
			<main id="main" ref={main} tabIndex={-1}>
				{lost && !out ? <Lost /> : null}
				<Guard key={here + out} text={t.broken} reload={t.reload}>{out ? <Suspense fallback={<Coming />}><LoginPage again={reconnect} /></Suspense> : loaded ? <Suspense fallback={<Coming />}>{view(route)}</Suspense> : lost ? <h1 className="unseen">{t.title}</h1> : <Coming />}</Guard>
			</main>
			{searching && !out ? <Guard text={t.broken} reload={t.reload}><Suspense fallback={null}><Palette close={() => setSearching(false)} /></Suspense></Guard> : null}
		</div>
	);
}

function Brand() {
	return (
		<svg viewBox="0 0 16 16" width="22" height="22" aria-hidden="true">
			<path className="arms" d="M6 7l4-2M6 9l4 2" /><circle className="f-a" cx="4" cy="8" r="3" /><circle className="f-c" cx="12" cy="4" r="2" /><circle className="f-b" cx="12" cy="12" r="2" />
		</svg>
	);
}

// Guard keeps the frame when a page fails.
class Guard extends Component<{ children: ReactNode; text: string; reload: string }, { error: Error | null }> {
	state = { error: null };
	static getDerivedStateFromError(error: Error) {
		return { error };
	}
	render() {
		if (!this.state.error) return this.props.children;
		return (
			<div className="trouble" role="alert"><Icon name="warn" /><div><h1>{this.props.text}</h1><p>{String(this.state.error)}</p>
				<button type="button" onClick={() => location.reload()}>{this.props.reload}</button></div></div>
		);
	}
}

// Coming is in place of a page that is not there yet.
function Coming() {
	const t = useText();
	return <><h1 className="unseen">{t.title}</h1><Wait /></>;
}

function Lost() {
	const t = useText();
	const time = useStore((s) => s.time);
	return <p className="banner" role="alert"><Icon name="warn" />{time ? t.lostText(clock(time)) : t.lostAtFirst}</p>;
}

function Connection() {
	const t = useText();
	const lost = useStore((s) => s.lost), time = useStore((s) => s.time);
	const every = useStore((s) => (s.lost || s.period > 5e9 ? 0 : Math.round(s.interval / 1e9))); // more: before the first reading for this viewer
	return (
		<p id="state" className={lost ? "bad" : time ? "good" : ""} title={Intl.DateTimeFormat().resolvedOptions().timeZone}>
			<i className="lamp" aria-hidden="true" /><span className="word">{lost ? t.lost : time ? t.live : t.connecting}</span>
			{every > 2 ? <span className="every" title={t.everyHint(every)}>{t.every(every)}</span> : null}
			{time ? <time dateTime={time}>{clock(time)} <span className="zone">{zone()}</span></time> : null}
		</p>
	);
}

// User names the viewer, if the console knows users.
function User() {
	const t = useText();
	const { session } = useViewer();
	if (!session?.user || session.login === "none") return null;
	return (
		<span className="user" title={`${session.user}: ${t.roles[session.role] ?? session.role}`}><Icon name="user" /><span className="word">{session.user}</span>
			{session.login === "proxy" ? null : <button type="button" className="quiet" onClick={logOut}>{t.logOut}</button>}</span>
	);
}

const themes: Theme[] = ["system", "light", "dark"];

function ThemeButton() {
	const t = useText();
	const { theme } = useSettings();
	const next = themes[(themes.indexOf(theme) + 1) % themes.length];
	const text = `${t.theme}: ${t.themes[theme]}`;
	return <button type="button" className="quiet" aria-label={text} title={text} onClick={() => setTheme(next)}><Icon name={theme} /></button>;
}

function LanguageButton() {
	const t = useText();
	const { language } = useSettings();
	return <button type="button" className="quiet" lang={language === "en" ? "zh-CN" : "en"} title={t.languageHint} onClick={() => setLanguage(language === "en" ? "zh" : "en")}>{t.language}</button>;
}
