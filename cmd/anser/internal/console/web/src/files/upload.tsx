// Sends files to a folder, one after the other.
import { useEffect, useRef, useState } from "react";
import { ApiError, ask } from "../api";
import { bytes, percent } from "../format";
import { Dialog, Field, Reason } from "../operate/common";
import { refreshSession } from "../session";
import { useText } from "../settings";
import { Mark } from "../ui";
import { type Entry, type Place, join, request } from "./paths";
import { send } from "./send";

interface Item {
	file: File;
	state: "waiting" | "sending" | "exists" | "done" | "failed";
	share: number;
	text: string;
}

export function UploadDialog({ to, first, checks, done, close }: { to: Place; first: File[]; checks: boolean; done: () => void; close: () => void }) {
	const t = useText();
	const [dir, setDir] = useState(to.path), [reason, setReason] = useState(""), [items, setItems] = useState<Item[]>(() => first.map(waiting));
	const [busy, setBusy] = useState(false);
	const control = useRef<AbortController>(null);
	useEffect(() => () => control.current?.abort(), []);
	const set = (file: File, values: Partial<Item>) => setItems((old) => old.map((i) => (i.file === file ? { ...i, ...values } : i)));

	const one = async (file: File, replace: boolean, signal: AbortSignal) => {
		const place = { ...to, path: join(dir.replace(/^\/+|\/+$/g, ""), file.name) };
		set(file, { state: "sending", share: 0, text: "" });
		try {
			// A look first: a browser may not read the answer before it has sent all of a large file.
			if (checks && !replace && (await ask<{ entry: Entry | null }>(request(place, "stat"), { signal })).entry) {
				set(file, { state: "exists" });
				return;
			}
			const sent = await send(request(place, "content", { reason, replace: replace ? "1" : undefined }), file, signal, (share) => set(file, { share }));
			set(file, { state: "done", text: `${bytes(sent.size)}, SHA-256 ${sent.sha256}` });
			done();
		} catch (error) {
			if (signal.aborted) set(file, { state: "failed", text: t.canceled });
			else if (error instanceof ApiError && error.status === 409) set(file, { state: "exists" });
			else if (error instanceof ApiError) {
				set(file, { state: "failed", text: error.status === 0 ? t.noAnswer : `${error.message} ${error.advice}` });
				if (error.status === 401 || error.status === 403) refreshSession();
			} else throw error;
		}
	};
	const run = async (list: File[], replace: boolean) => {
		control.current = new AbortController();
		setBusy(true);
		for (const file of list) if (!control.current.signal.aborted) await one(file, replace, control.current.signal);
		setBusy(false);
	};
	const open = items.filter((i) => i.state === "waiting" || i.state === "failed").map((i) => i.file);
	return (
		<Dialog title={t.uploadTo(to.service)} close={close}>
			<form onSubmit={(e) => { e.preventDefault(); run(open, false); }}>
				<div className="row">
					<label className="button pick">{t.chooseFiles}<input type="file" multiple className="unseen" disabled={busy} onChange={(e) => {
						const files = [...(e.target.files ?? [])];
						setItems((old) => [...old, ...files.map(waiting)]);
						e.target.value = "";
					}} /></label>
					<Field label={t.intoFolder} hint={t.intoFolderHint}><input value={dir} disabled={busy} onChange={(e) => setDir(e.target.value)} spellCheck={false} /></Field>
				</div>
				<Reason value={reason} set={setReason} />
				{items.length ? (
					<ul className="versions uploads" aria-label={t.files}>
						{items.map((i, n) => (
							<li key={n}>
								<span className="filename">{i.file.name}</span> <span className="dim">{bytes(i.file.size)}</span>
								{i.state === "sending" ? <span className="moving"><progress max={1} value={i.share} aria-label={i.file.name} /> {percent(i.share)}</span> : null}
								{i.state === "done" ? <Mark tone="good">{t.uploaded}</Mark> : null}
								{i.state === "failed" ? <Mark tone="bad">{t.outcomes.failed}</Mark> : null}
								{i.state === "exists" ? <><Mark tone="warn">{t.existsAlready}</Mark> <button type="button" className="small" disabled={busy} onClick={() => run([i.file], true)} aria-label={`${t.replace} ${i.file.name}`}>{t.replace}</button></> : null}
								{i.text ? <p className="dim">{i.text}</p> : null}
							</li>
						))}
					</ul>
				) : <p className="empty">{t.noFilesChosen}</p>}
				<div className="row">
					<button type="submit" className="main" disabled={busy || !open.length}>{t.upload}</button>
					{busy ? <button type="button" onClick={() => control.current?.abort()}>{t.cancel}</button> : <button type="button" onClick={close}>{t.close}</button>}
				</div>
			</form>
		</Dialog>
	);
}

const waiting = (file: File): Item => ({ file, state: "waiting", share: 0, text: "" });
