// Calls a method: with a form from its schema or as JSON, streams too.
import { useEffect, useRef, useState } from "react";
import { ApiError, type ServiceDetail } from "../api";
import { clock, span } from "../format";
import { setQuery, useRoute } from "../route";
import { change, currentToken } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Choice, Mark, Section, Wait } from "../ui";
import { Field, Outcome, Why, useDoing, useMay } from "./common";
import { at, fieldsOf, withField } from "./form";

interface Schema {
	name: string;
	kind: string;
	doc?: string;
	request: { type: string; json: unknown };
	reply: { type: string; json: unknown };
	deprecated?: boolean;
	idempotent?: boolean;
}

interface Answer {
	reply?: unknown;
	error?: { code: string; message: string; address?: string; phase?: string };
	outcome: string;
	time: number;
	trailers?: unknown;
	copy?: Record<"curl" | "grpcurl" | "anser" | "go", string>;
}

interface Past {
	time: number;
	request: string;
	metadata: string;
	answer: Answer;
}

const kept = 20;

export default function TryTab({ detail }: { detail: ServiceDetail }) {
	const t = useText();
	const { query } = useRoute();
	const why = useMay();
	const service = detail.service.name, method = query.get("method") ?? detail.methods[0]?.name ?? "";
	const schema = useApi<Schema>(method ? `schema/${encodeURIComponent(service)}/${encodeURIComponent(method)}` : null, false);
	if (!method) return <p className="empty">{t.noMethods}</p>;
	return (
		<Section title={t.tryMethod} aside={
			<select aria-label={t.method} value={method} onChange={(e) => setQuery({ method: e.target.value })}>{detail.methods.map((m) => <option key={m.name}>{m.name}</option>)}</select>
		}>
			<Why text={why} />
			{schema.data ? <Try key={service + method} service={service} schema={schema.data} instances={detail.instances.map((i) => i.id)} may={!why} /> : <Wait error={schema.error} again={schema.again} />}
		</Section>
	);
}

function Try({ service, schema, instances, may }: { service: string; schema: Schema; instances: string[]; may: boolean }) {
	const t = useText();
	const { query } = useRoute();
	const doing = useDoing();
	const raw = query.get("body") === "json", stream = schema.kind !== "call";
	const [text, setText] = useState(JSON.stringify(schema.request.json ?? {}, null, 2)), [metadata, setMetadata] = useState(""), [instance, setInstance] = useState(""), [timeout, setTimeout_] = useState("5");
	const [past, setPast] = useState<Past[]>([]), [lines, setLines] = useState<unknown[]>([]);
	const open = useRef<AbortController>(null);
	useEffect(() => () => open.current?.abort(), []);
	const parsed = parse(text, stream);
	const head = () => ({
		service, method: schema.name, ...(instance ? { instance } : {}), timeout: Math.round(Number(timeout) * 1e9) || undefined,
		...(metadata.trim() ? { metadata: Object.fromEntries(metadata.trim().split("\n").map((l) => [l.split(":")[0].trim(), l.slice(l.indexOf(":") + 1).trim()])) } : {}),
	});
	const note = (answer: Answer) => setPast((old) => [{ time: Date.now(), request: text, metadata, answer }, ...old].slice(0, kept));
	const call = () => doing.run(async () => note(await change<Answer>("POST", "call", { ...head(), request: parsed.list[0] })));
	const converse = () => doing.run(async () => {
		setLines([]);
		const control = new AbortController();
		open.current = control;
		try {
			await streamed([head(), ...parsed.list], control.signal, (line) => {
				if (line.end) note(line.end);
				else setLines((old) => [...old, line.reply].slice(-500));
			});
		} catch (error) {
			if (!control.signal.aborted) throw error;
		}
	});
	return (
		<>
			<p className="note"><code>{schema.name}</code>({schema.request.type}) → {schema.reply.type} {schema.doc}</p>
			<form className="card" onSubmit={(e) => { e.preventDefault(); if (stream) converse(); else call(); }}>
				<div className="row">{stream ? null : <Choice name="body" label={t.request} list={[["", t.form], ["json", t.rawJSON]]} />}<span className="dim">{stream ? t.streamHint : ""}</span></div>
				{raw || stream || !parsed.ok ? <textarea className="code" aria-label={t.request} spellCheck={false} rows={stream ? 8 : 10} value={text} onChange={(e) => setText(e.target.value)} /> : (
					<div className="row">
						{fieldsOf(schema.request.json).map((f) => {
							const value = at(parsed.list[0], f.path), set = (v: unknown) => setText(JSON.stringify(withField(parsed.list[0], f.path, v), null, 2)), label = f.path.join(".") || t.request;
							if (f.kind === "boolean") return <label key={label} className="tick"><input type="checkbox" checked={Boolean(value)} onChange={(e) => set(e.target.checked)} /> {label}</label>;
							if (f.kind === "json") return <JSONField key={label} label={label} value={value} set={set} />;
							return <Field key={label} label={label}><input type={f.kind === "number" ? "number" : "text"} step="any" value={String(value ?? "")} onChange={(e) => set(f.kind === "number" ? Number(e.target.value) : e.target.value)} /></Field>;
						})}
					</div>
				)}
				{parsed.ok ? null : <p className="bad" role="status">{t.notJSON}: {parsed.error}</p>}
				<div className="row">
					<Field label={t.instance}><select value={instance} onChange={(e) => setInstance(e.target.value)}><option value="">{t.anyInstance}</option>{instances.map((i) => <option key={i}>{i}</option>)}</select></Field>
					<Field label={t.timeoutSeconds}><input type="number" min={0.1} max={stream ? 600 : 60} step="any" value={timeout} onChange={(e) => setTimeout_(e.target.value)} /></Field>
					<Field label={t.metadata} hint={t.metadataHint}><textarea className="code" rows={2} value={metadata} onChange={(e) => setMetadata(e.target.value)} /></Field>
					<button type="submit" className="main" disabled={!may || doing.busy || !parsed.ok}>{stream ? t.openStream : t.call}</button>
					{stream && doing.busy ? <button type="button" onClick={() => open.current?.abort()}>{t.stopFollowing}</button> : null}
				</div>
				<Outcome of={doing} />
			</form>
			{lines.length ? <Section title={t.replies}><pre className="diff" tabIndex={0} aria-label={t.replies}>{lines.map((l) => JSON.stringify(l)).join("\n")}</pre></Section> : null}
			{past[0] ? <Shown of={past[0].answer} /> : null}
			{past.length > 1 ? (
				<Section title={t.history}>
					<ul className="versions">
						{past.slice(1).map((p) => (
							<li key={p.time}><details>
								<summary><time>{clock(p.time)}</time> <Mark tone={p.answer.error ? "bad" : "good"}>{p.answer.error?.code ?? "ok"}</Mark> {span(p.answer.time)} <code className="dim">{p.request.replace(/\s+/g, " ").slice(0, 80)}</code></summary>
								<button type="button" onClick={() => { setText(p.request); setMetadata(p.metadata); }}>{t.useAgain}</button><Shown of={p.answer} />
							</details></li>
						))}
					</ul>
				</Section>
			) : null}
		</>
	);
}

function JSONField({ label, value, set }: { label: string; value: unknown; set: (v: unknown) => void }) {
	const [text, setText] = useState(JSON.stringify(value));
	return <Field label={label + " (JSON)"}><input className="code" value={text} onChange={(e) => {
		setText(e.target.value);
		try {
			set(JSON.parse(e.target.value));
		} catch {
			// The text is not complete yet.
		}
	}} /></Field>;
}

function Shown({ of: a }: { of: Answer }) {
	const t = useText();
	const [copied, setCopied] = useState("");
	const ways: [keyof NonNullable<Answer["copy"]>, string][] = [["curl", "curl"], ["grpcurl", "grpcurl"], ["anser", "anser call"], ["go", "Go"]];
	return (
		<Section title={t.answer} aside={<><Mark tone={a.error ? "bad" : "good"}>{a.error?.code ?? "ok"}</Mark><span className="dim">{span(a.time)}{a.outcome === "ok" ? "" : ` · ${a.outcome}`}</span></>}>
			{a.error ? <p className="bad">{a.error.message} <span className="dim">{a.error.address} {a.error.phase}</span></p> : null}
			{a.reply === undefined ? null : <pre className="diff" tabIndex={0} aria-label={t.answer}>{JSON.stringify(a.reply, null, 2)}</pre>}
			{a.copy ? (
				<div className="row">
					<span className="dim">{t.copyAs}</span>
					{ways.map(([key, name]) => <button key={key} type="button" onClick={() => navigator.clipboard.writeText(a.copy?.[key] ?? "").then(() => setCopied(name), () => setCopied(""))}>{name}</button>)}
					<span className="dim" role="status">{copied ? t.copied(copied) : ""}</span>
				</div>
			) : null}
		</Section>
	);
}

// parse returns the messages of a text: one, or for a stream one a line.
function parse(text: string, stream: boolean): { ok: boolean; list: unknown[]; error: string } {
	try {
		if (!stream) return { ok: true, list: [JSON.parse(text)], error: "" };
		try {
			return { ok: true, list: [JSON.parse(text)], error: "" }; // one message on several lines
		} catch {
			return { ok: true, list: text.split("\n").filter((l) => l.trim()).map((l) => JSON.parse(l)), error: "" };
		}
	} catch (error) {
		return { ok: false, list: [], error: error instanceof Error ? error.message : String(error) };
	}
}

// streamed opens a stream, sends messages, and calls took for each line of the answer.
async function streamed(messages: unknown[], signal: AbortSignal, took: (line: { reply?: unknown; end?: Answer }) => void): Promise<void> {
	const answer = await fetch("api/call/stream", {
		method: "POST", signal, headers: { "X-CSRF-Token": currentToken(), "Content-Type": "application/json" }, body: messages.map((m) => JSON.stringify(m)).join("\n") + "\n",
	}).catch((error) => {
		if (signal.aborted) throw error;
		throw new ApiError(0, "");
	});
	if (!answer.ok || !answer.body) {
		const problem = await answer.json().catch(() => ({}));
		throw new ApiError(answer.status, problem.error ?? answer.statusText, problem.advice);
	}
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
		const lines = (rest + part.value).split("\n");
		rest = lines.pop() ?? "";
		for (const line of lines) if (line.trim()) took(JSON.parse(line));
	}
}
