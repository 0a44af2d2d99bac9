// What all changes have: whether the viewer may make them, a reason, and how they end.
import { type ReactNode, useEffect, useRef, useState } from "react";
import { ApiError } from "../api";
import { useViewer } from "../session";
import { useText } from "../settings";
import { Icon } from "../ui";

// useMay returns why the viewer may change nothing, or "".
export function useMay(): string {
	const t = useText();
	const { session } = useViewer();
	if (session?.changes) return "";
	if (session?.role === "look" && session.user) return t.roleLooks(session.user);
	return session?.read_only ? `${t.readOnly} ${session.read_only}` : t.readOnly;
}

// Why says why nothing can be changed, in place of what would change it.
export function Why({ text }: { text: string }) {
	return text ? <p className="note why"><Icon name="lock" />{text}</p> : null;
}

export interface Doing {
	busy: boolean;
	error: ApiError | null;
	done: string;
	run: (f: () => Promise<string | void>) => Promise<void>;
	clear: () => void;
}

// useDoing runs one change at a time, and keeps how it ended.
export function useDoing(): Doing {
	const [state, set] = useState<{ busy: boolean; error: ApiError | null; done: string }>({ busy: false, error: null, done: "" });
	return {
		...state,
		clear: () => set({ busy: false, error: null, done: "" }),
		run: async (f) => {
			set({ busy: true, error: null, done: "" });
			try {
				set({ busy: false, error: null, done: (await f()) || "" });
			} catch (error) {
				set({ busy: false, error: error instanceof ApiError ? error : new ApiError(-1, String(error)), done: "" });
			}
		},
	};
}

export function Outcome({ of }: { of: Doing }) {
	const t = useText();
	if (of.error) return <p className="bad outcome" role="alert"><Icon name="bad" /><span>{of.error.status === 0 ? t.noAnswer : of.error.message} <span className="dim">{of.error.advice}</span></span></p>;
	return <p className="good outcome" role="status">{of.done ? <><Icon name="good" />{of.done}</> : null}</p>;
}

export function Dialog({ title, close, children }: { title: ReactNode; close: () => void; children: ReactNode }) {
	const t = useText();
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const e = dialog.current;
		e?.showModal();
		return () => e?.close();
	}, []);
	return (
		<dialog ref={dialog} className="dialog" onClose={close} onClick={(e) => e.target === dialog.current && close()}>
			<div className="head"><h2>{title}</h2><button type="button" className="quiet" aria-label={t.close} onClick={close}><Icon name="bad" /></button></div>
			{children}
		</dialog>
	);
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
	return <label className="field"><span>{label}</span>{children}{hint ? <small className="dim">{hint}</small> : null}</label>;
}

export function Reason({ value, set }: { value: string; set: (v: string) => void }) {
	const t = useText();
	return <Field label={t.reason}><input value={value} onChange={(e) => set(e.target.value)} placeholder={t.reasonHint} maxLength={200} size={32} /></Field>;
}

// until returns the time after the given number of minutes, at least one. otherwise replaces a text that is no number.
export const until = (minutes: string, otherwise: number): string => new Date(Date.now() + Math.max(Number(minutes) || otherwise, 1) * 60_000).toISOString();
