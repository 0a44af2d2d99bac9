// The present of the system, from one stream of events. Components subscribe to the part that they show.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ApiError, ask, type Change, type Edge, type Processes, type Registry, type Service, type System, type Update } from "./api";
import { loggedOut, namedByProxy, refreshSession } from "./session";

export interface State {
	loaded: boolean;
	lost: boolean; // what is shown is of the past
	time: string;
	interval: number; // the longest time between two readings of a process
	period: number; // between two updates
	processes: Processes;
	registries: Registry[];
	services: ReadonlyMap<string, Service>;
	edges: ReadonlyMap<string, Edge>;
	changes: Change[];
	arena: boolean; // there is a report of the arena
	long: boolean; // there is more history than an hour
	trails: ReadonlyMap<string, number[]>; // the rates of services in the last seconds, the last one last
}

const trailLength = 60; // seconds
const shownChanges = 50;
const quiet = 1_500; // ms without an update that was due, after which the page says that it is of the past
const pingQuiet = 13_000; // ms, while the console reads slowly

export const edgeKey = (from: string, to: string): string => from + ">" + to;

export const empty: State = {
	loaded: false, lost: false, time: "", interval: 0, period: 1e9, processes: { known: 0, read: 0, failed: [] }, registries: [],
	services: new Map(), edges: new Map(), changes: [], arena: false, long: false, trails: new Map(),
};

// trailsOf adds the present rates for a number of seconds.
function trailsOf(before: ReadonlyMap<string, number[]>, services: ReadonlyMap<string, Service>, seconds: number): ReadonlyMap<string, number[]> {
	const next = new Map<string, number[]>();
	for (const s of services.values()) next.set(s.name, [...(before.get(s.name) ?? []), ...Array<number>(seconds).fill(s.rate)].slice(-trailLength));
	return next;
}

// passed returns the seconds between two updates, at least one.
function passed(from: string, to: string): number {
	const n = Math.floor(Date.parse(to) / 1_000) - Math.floor(Date.parse(from) / 1_000);
	return n > 1 ? Math.min(n, trailLength) : 1;
}

// begin returns the state that a first event describes.
export function begin(before: State, v: System): State {
	const services = new Map(v.services.map((s) => [s.name, s]));
	return {
		loaded: true, lost: false, time: v.time, interval: v.interval, period: v.period, processes: v.processes, registries: v.registries, services,
		edges: new Map(v.edges.map((e) => [edgeKey(e.from, e.to), e])), changes: v.changes, arena: Boolean(v.arena), long: Boolean(v.long_history), trails: trailsOf(before.trails, services, 1),
	};
}

// apply returns the state after an update. What has not changed is the same object.
export function apply(s: State, u: Update): State {
	const services = new Map(s.services), edges = u.edges.length || u.gone.edges.length ? new Map(s.edges) : s.edges as Map<string, Edge>;
	for (const v of u.services) services.set(v.name, v);
	for (const name of u.gone.services) services.delete(name);
	for (const e of u.edges) edges.set(edgeKey(e.from, e.to), e);
	for (const [from, to] of u.gone.edges) edges.delete(edgeKey(from, to));
	return {
		...s, loaded: true, lost: false, time: u.time, interval: u.interval, period: u.period, processes: u.processes, registries: u.registries, services, edges,
		changes: u.changes.length ? [...u.changes, ...s.changes].slice(0, shownChanges) : s.changes, trails: trailsOf(s.trails, services, passed(s.time, u.time)),
	};
}

let state = empty;
const listeners = new Set<() => void>();
let source: EventSource | null = null;
let heard = 0;

function set(next: State): void {
	state = next;
	for (const f of listeners) f();
}

function subscribe(f: () => void): () => void {
	listeners.add(f);
	return () => listeners.delete(f);
}

// watch calls f after each update, outside of React.
export function watch(f: (s: State) => void): () => void {
	return subscribe(() => f(state));
}

export const present = (): State => state;

export const useStore = <T>(select: (s: State) => T): T => useSyncExternalStore(subscribe, () => select(state));

// silence returns for how many ms nothing may come from a console that sends an update in each period, which is
// at most 2.5 seconds while a viewer looks.
export const silence = (period: number): number => quiet + Math.min(Math.max(period / 1e6, 1_000), 2_500);

function lose(): void {
	if (!state.lost) set({ ...state, lost: true });
}

function open(): void {
	source?.close();
	source = null;
	if (loggedOut()) return;
	const s = new EventSource("api/events");
	source = s;
	s.addEventListener("system", (e) => {
		heard = Date.now();
		set(begin(state, JSON.parse(e.data)));
	});
	s.addEventListener("update", (e) => {
		heard = Date.now();
		if (state.loaded) set(apply(state, JSON.parse(e.data)));
	});
	s.addEventListener("ping", () => {
		heard = Date.now();
	});
	let again = false; // the console ends the stream, and the browser opens it anew
	s.addEventListener("again", () => {
		again = true;
	});
	s.onerror = () => {
		if (again && s.readyState === EventSource.CONNECTING) {
			again = false;
			return;
		}
		lose();
		refreshSession().then(() => loggedOut() && s.close()); // the session may have ended
		if (s.readyState === EventSource.CLOSED) setTimeout(() => source === s && open(), 2_000);
	};
}

// reconnect begins anew, after a login.
export function reconnect(): void {
	open();
}

// follow begins to follow the system, and stops while the page is hidden.
export function follow(): () => void {
	open();
	let hidden: ReturnType<typeof setTimeout> | undefined, word: ReturnType<typeof setInterval> | undefined;
	const look = () => {
		clearTimeout(hidden);
		clearInterval(word);
		if (document.hidden) {
			// Transfers of files go on as long as the proxy names the viewer, at least every 90 seconds.
			if (namedByProxy()) word = setInterval(refreshSession, 45_000);
			hidden = setTimeout(() => {
				source?.close();
				source = null;
			}, 20_000);
		} else if (!source) open();
	};
	const watch = setInterval(() => {
		if (state.loaded && Date.now() - heard > (document.hidden ? pingQuiet : silence(state.period))) lose();
	}, 500);
	document.addEventListener("visibilitychange", look);
	return () => {
		clearInterval(watch);
		clearInterval(word);
		clearTimeout(hidden);
		document.removeEventListener("visibilitychange", look);
		source?.close();
		source = null;
	};
}

export interface Answer<T> {
	data?: T;
	error?: ApiError;
	again: () => void;
}

// useApi asks for a path, again after each reading of the console if it is live. What was known stays while it fails, and
// while the path changes for the same thing.
export function useApi<T>(path: string | null, live = true, thing = path): Answer<T> {
	const [answer, setAnswer] = useState<{ thing: string | null; data?: T; error?: ApiError }>({ thing });
	const [turn, setTurn] = useState(0);
	const asked = useRef<string | null>(null);
	const time = useStore((s) => (live ? s.time : ""));
	const lost = useStore((s) => live && s.lost);
	useEffect(() => {
		if (path === null || asked.current === path) return;
		asked.current = path;
		ask<T>(path).then(
			(data) => asked.current === path && setAnswer({ thing, data }),
			(error) => asked.current === path && setAnswer((old) => ({ thing, data: old.thing === thing ? old.data : undefined, error })),
		).finally(() => {
			if (asked.current === path) asked.current = null;
		});
	}, [path, time, lost, turn]);
	const again = () => setTurn((n) => n + 1);
	return answer.thing === thing ? { data: answer.data, error: answer.error, again } : { again };
}
