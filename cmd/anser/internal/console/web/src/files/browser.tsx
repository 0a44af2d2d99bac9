// The files of a service: a folder that it serves, with its parts.
import { useEffect, useState } from "react";
import { type InstancePage, query } from "../api";
import { bytes, clock } from "../format";
import { Dialog, Outcome, Reason, Why, useDoing, useMay } from "../operate/common";
import { href, setQuery, useRoute } from "../route";
import { change, useViewer } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Filter, Icon, ServiceLink, Table, Wait } from "../ui";
import { type Entry, type Place, above, order, request } from "./paths";
import { UploadDialog } from "./upload";

interface Folder {
	service: string;
	name: string;
}

interface Served {
	name: string;
	list?: boolean;
	get?: boolean;
	put?: boolean;
	remove?: boolean;
}

interface Listing {
	instance: string;
	entries: Entry[];
	more?: boolean;
}

// Folders lists the services that serve files.
export function Folders() {
	const t = useText();
	const { data, error, again } = useApi<Folder[]>("files");
	return (
		<div className="browser">
			<h1>{t.files}</h1>
			<p className="note">{t.filesHint}</p>
			{data ? <Table name="sort" label={t.files} first="service" rows={data} rowKey={(f) => f.service + " " + f.name} none={t.noFolders} columns={[
				{ id: "service", title: t.service, cell: (f) => <ServiceLink name={f.service} />, sort: (f) => f.service },
				{ id: "name", title: t.folder, cell: (f) => <a href={href(["files", f.service], { name: f.name })}><Icon name="files" />{f.name}</a>, sort: (f) => f.name },
			]} /> : <Wait error={error} again={again} />}
		</div>
	);
}

// FilesPage shows a folder of a service.
export function FilesPage({ service }: { service: string }) {
	const t = useText();
	const { query: q } = useRoute();
	const instance = q.get("instance") ?? "";
	const { data, error, again } = useApi<{ instance: string; folders: Served[] }>(`files/${encodeURIComponent(service)}${query({ instance })}`, false);
	const instances = useApi<InstancePage>("instances" + query({ service, limit: 1000 }), false);
	const name = q.get("name") ?? data?.folders[0]?.name ?? "";
	const folder = data?.folders.find((f) => f.name === name);
	const place = { service, name, path: q.get("path") ?? "", instance };
	return (
		<>
			<div className="head">
				<h1>{t.filesOf(service)}</h1>
				<a href={href(["services", service])}>{t.openService}</a>
				<label className="inline"><span className="dim">{t.instance}</span>
					<select value={instance} onChange={(e) => setQuery({ instance: e.target.value })}>
						<option value="">{t.firstInstance(instance ? "" : data?.instance ?? "")}</option>
						{[...new Set([...(instances.data?.instances ?? []).map((i) => i.id), instance])].filter(Boolean).sort().map((id) => <option key={id} value={id}>{id}</option>)}
					</select>
				</label>
				{data && data.folders.length > 1 ? (
					<label className="inline"><span className="dim">{t.folder}</span>
						<select value={name} onChange={(e) => setQuery({ name: e.target.value, path: undefined })}>{data.folders.map((f) => <option key={f.name}>{f.name}</option>)}</select>
					</label>
				) : null}
			</div>
			{!data || error ? <Wait error={error} again={again} /> : !folder ? <p className="empty">{name && data.folders.length ? t.noSuchFolder(name) : t.servesNoFiles}</p> : <Browser key={service + name} place={place} folder={folder} />}
		</>
	);
}

// useLater returns a value when it has not changed for some time.
function useLater<T>(value: T, ms: number): T {
	const [later, set] = useState(value);
	useEffect(() => {
		const wait = setTimeout(() => set(value), ms);
		return () => clearTimeout(wait);
	}, [value]);
	return later;
}

function Browser({ place, folder }: { place: Place; folder: Served }) {
	const t = useText();
	const { path: at, query: q } = useRoute();
	const why = useMay(), { session } = useViewer(), looks = session?.role === "look";
	const filter = useLater(q.get("q") ?? "", 250);
	const here = request(place);
	const { data, error, again } = useApi<Listing>(folder.list ? request(place, "", { q: filter || undefined }) : null, false, here);
	const [sending, setSending] = useState<File[] | null>(null), [removing, setRemoving] = useState<Entry | null>(null);
	const to = (path: string) => href(at, { name: place.name, path, instance: place.instance });
	const rows = data?.entries ?? [];
	const mayUpload = folder.put && !why;
	return (
		<div className="browser" onDragOver={(e) => { if (mayUpload && e.dataTransfer.types.includes("Files")) e.preventDefault(); }}
			onDrop={(e) => {
				if (!mayUpload || !e.dataTransfer.files.length) return;
				e.preventDefault();
				setSending([...e.dataTransfer.files]);
			}}>
			<nav className="crumbs" aria-label={t.path}>
				<a href={to("")} aria-current={place.path ? undefined : "page"}><Icon name="files" />{place.name}</a>
				{above(place.path).map((p) => <span key={p.path}><span className="dim" aria-hidden="true">/</span> <a href={to(p.path)} aria-current={p.path === place.path ? "page" : undefined}>{p.name}</a></span>)}
			</nav>
			{folder.put || folder.remove ? <Why text={why} /> : null}
			{looks && folder.get ? <Why text={t.mayNotDownload} /> : null}
			<div className="row">
				{folder.list ? <Filter label={t.filter} /> : null}
				{folder.list ? <button type="button" onClick={again}>{t.refresh}</button> : null}
				{mayUpload ? <button type="button" className="main" onClick={() => setSending([])}>{t.uploadFiles}</button> : null}
				{mayUpload ? <span className="dim drop">{t.dropHint}</span> : null}
			</div>
			{folder.list ? null : <p className="empty">{t.writeOnly}</p>}
			{error || (folder.list && !data) ? <Wait error={error} again={again} /> : null}
			{data && !error ? (
				<Table name="sort" label={t.files} first="name" rows={rows} rowKey={(e, i) => e.name + i} none={filter ? t.noMatch : t.emptyFolder} columns={[
					{ id: "name", title: t.name, cell: (e) => <Name of={e} to={to} />, sort: order },
					{ id: "size", title: t.size, kind: "n", cell: (e) => (e.dir || e.other ? "" : <span title={String(e.size)}>{bytes(e.size)}</span>), sort: (e) => e.size },
					{ id: "time", title: t.modified, cell: (e) => <time dateTime={e.time}>{clock(e.time)}</time>, sort: (e) => Date.parse(e.time) },
					{ id: "operate", title: t.operate, cell: (e) => !e.path ? "" : (
						<span className="inline">
							{folder.get && !e.dir && !e.other && !looks ? <a className="button small" href={"api/" + request({ ...place, path: e.path }, "content")} download={e.name} aria-label={`${t.download} ${e.name}`}>{t.download}</a> : null}
							{folder.remove && !why ? <button type="button" className="small" onClick={() => setRemoving(e)} aria-label={`${t.remove} ${e.name}`}>{t.remove}</button> : null}
						</span>
					) },
				]} />
			) : null}
			{data?.more ? <p className="note">{t.moreFiles(data.entries.length)}</p> : null}
			{sending ? <UploadDialog to={place} first={sending} checks={Boolean(folder.list)} done={again} close={() => setSending(null)} /> : null}
			{removing ? <RemoveDialog place={place} entry={removing} done={again} close={() => setRemoving(null)} /> : null}
		</div>
	);
}

function Name({ of: e, to }: { of: Entry; to: (path: string) => string }) {
	const t = useText();
	if (e.dir && e.path) return <a href={to(e.path)}><Icon name="folder" />{e.name}</a>;
	const note = !e.path ? t.badName : e.other ? t.otherKind : "";
	return <span title={e.path}><Icon name={e.dir ? "folder" : "file"} />{e.name}{note ? <span className="dim"> – {note}</span> : null}</span>;
}

function RemoveDialog({ place, entry, done, close }: { place: Place; entry: Entry; done: () => void; close: () => void }) {
	const t = useText();
	const doing = useDoing();
	const [reason, setReason] = useState("");
	return (
		<Dialog title={t.removeWhat(entry.path ?? "")} close={close}>
			<form onSubmit={(e) => {
				e.preventDefault();
				doing.run(async () => {
					await change("DELETE", request({ ...place, path: entry.path ?? "" }, "content", { reason }));
					done();
					close();
				});
			}}>
				<p className="note">{entry.dir ? t.removeFolderHint : t.removeFileHint}</p>
				<Reason value={reason} set={setReason} />
				<div className="row">
					<button type="submit" className="main" disabled={doing.busy}>{t.remove}</button>
					<button type="button" onClick={close}>{t.cancel}</button>
				</div>
				<Outcome of={doing} />
			</form>
		</Dialog>
	);
}
