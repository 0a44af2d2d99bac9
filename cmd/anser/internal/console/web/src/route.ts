// The address of a page is in the fragment, so that the console may be behind any path of a proxy: #/services/arith?tab=rules.
import { useSyncExternalStore } from "react";

export interface Route {
	path: string[];
	query: URLSearchParams;
}

// parse returns the route of a fragment. What cannot be decoded is taken as it is.
export function parse(hash: string): Route {
	const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
	const decode = (part: string) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	};
	return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

// href returns the address of a page.
export function href(path: string[], values: Record<string, string | undefined> = {}): string {
	const q = new URLSearchParams();
	for (const [key, value] of Object.entries(values)) if (value) q.set(key, value);
	const text = q.toString();
	return "#/" + path.map(encodeURIComponent).join("/") + (text && "?" + text);
}

// hrefOf returns the address within the page of a path that the console names, such as /services/arith/methods/Arith.Mul.
export function hrefOf(url: string): string {
	const [path, query] = url.split(/\?(.*)/s);
	return "#" + path.replace("/methods/", "/") + (query ? "?" + query : "");
}

let current = parse(location.hash);
const listeners = new Set<() => void>();
addEventListener("hashchange", () => {
	current = parse(location.hash);
	for (const f of listeners) f();
});

function subscribe(f: () => void): () => void {
	listeners.add(f);
	return () => listeners.delete(f);
}

export const useRoute = (): Route => useSyncExternalStore(subscribe, () => current);

// setQuery changes values of the address without a new entry of the history.
export function setQuery(values: Record<string, string | undefined>): void {
	const next = Object.fromEntries(current.query);
	for (const [key, value] of Object.entries(values)) {
		if (value) next[key] = value;
		else delete next[key];
	}
	history.replaceState(null, "", href(current.path, next));
	current = parse(location.hash);
	for (const f of listeners) f();
}

export const go = (address: string): void => {
	location.hash = address;
};
