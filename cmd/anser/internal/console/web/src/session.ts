// Who looks at the page, and what it may change.
import { useSyncExternalStore } from "react";
import { ApiError, ask, type Session } from "./api";

export interface Viewer {
	known: boolean;
	session: Session | null; // null: the console has no changes at all
}

let viewer: Viewer = { known: false, session: null };
const listeners = new Set<() => void>();
let asking = false;

function subscribe(f: () => void): () => void {
	listeners.add(f);
	return () => listeners.delete(f);
}

export const useViewer = (): Viewer => useSyncExternalStore(subscribe, () => viewer);

// refreshSession asks who the viewer is. A console without changes has no sessions.
export async function refreshSession(): Promise<void> {
	if (asking) return;
	asking = true;
	try {
		set({ known: true, session: await ask<Session>("session") });
	} catch (error) {
		if (error instanceof ApiError && error.status === 404) set({ known: true, session: null });
	} finally {
		asking = false;
	}
}

function set(next: Viewer): void {
	if (JSON.stringify(next) === JSON.stringify(viewer)) return;
	viewer = next;
	for (const f of listeners) f();
}

// needsLogin reports whether the console shows nothing without a login.
export const needsLogin = (v: Viewer): boolean => v.session !== null && v.session.user === "" && v.session.login !== "none";

// namedByProxy reports whether a proxy names the viewer in each request.
export const namedByProxy = (): boolean => viewer.session?.login === "proxy";

// loggedOut reports whether the viewer must log in first.
export const loggedOut = (): boolean => needsLogin(viewer);

// currentToken is what the headers of a change need.
export const currentToken = (): string => viewer.session?.csrf ?? "";

// change sends a change. A token that is over is renewed once.
export async function change<T>(method: string, path: string, body?: unknown): Promise<T> {
	const send = () => ask<T>(path, {
		method,
		headers: { "X-CSRF-Token": viewer.session?.csrf ?? "", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
		body: body === undefined ? undefined : JSON.stringify(body),
	});
	try {
		return await send();
	} catch (error) {
		if (!(error instanceof ApiError) || (error.status !== 401 && error.status !== 403)) throw error;
		const before = viewer.session?.csrf;
		await refreshSession();
		if (viewer.session?.csrf === before || !viewer.session?.csrf) throw error;
		return await send();
	}
}

// logOut ends the session, and the one at the provider that has logged the viewer in, if the console says where it ends.
export async function logOut(): Promise<void> {
	const answer = await change<{ at?: string } | undefined>("POST", "logout").catch(() => undefined);
	if (answer?.at) location.assign(answer.at);
	else await refreshSession();
}
