// Paths of files, and the requests for them.
import { query } from "../api";

// Place is what a page of files shows.
export interface Place {
	service: string;
	name: string; // of the folder that the service serves
	path: string; // below it; "" is the folder itself
	instance: string; // "" is the first one
}

export interface Entry {
	name: string;
	path?: string; // missing: no request can name it
	size: number;
	time: string;
	dir?: boolean;
	other?: boolean;
}

export const join = (dir: string, name: string): string => (dir ? dir + "/" + name : name);

// above returns a path and all folders above it, the outermost first.
export function above(path: string): { name: string; path: string }[] {
	const parts = path.split("/").filter(Boolean);
	return parts.map((name, i) => ({ name, path: parts.slice(0, i + 1).join("/") }));
}

// request returns the path of a request below api/.
export function request(p: Place, what = "", values: Record<string, string | undefined> = {}): string {
	return `files/${encodeURIComponent(p.service)}/${encodeURIComponent(p.name)}${what && "/" + what}${query({ path: p.path, instance: p.instance, ...values })}`;
}

// order sorts folders before files, and names as a person would.
export function order(e: Entry): string {
	return (e.dir ? "0" : "1") + e.name;
}
