// The audit log: who has changed what, when and why.
import { useState } from "react";
import { ask, query } from "../api";
import { clock } from "../format";
import { useText } from "../settings";
import { useApi } from "../store";
import { type Column, Mark, ServiceLink, Table, Wait } from "../ui";

interface Entry {
	sequence: number;
	time: string;
	user: string;
	self?: boolean; // the console has made the change on its own
	role?: string;
	remote?: string;
	action: string;
	service?: string;
	subject?: string;
	text?: string;
	reason?: string;
	outcome: "begun" | "done" | "failed";
	of?: number;
	hash: string;
}

export function Audit() {
	const t = useText();
	const { data, error, again } = useApi<Entry[]>("audit", true);
	const [older, setOlder] = useState<Entry[]>([]);
	if (!data) return <><h1>{t.auditLog}</h1><Wait error={error} again={again} /></>;
	const bySequence = new Map([...(data ?? []), ...older].map((e) => [e.sequence, e]));
	const list = [...bySequence.values()].sort((a, b) => b.sequence - a.sequence);
	const ended = new Set(list.map((e) => e.of));
	const shown = list.filter((e) => e.outcome !== "begun" || !ended.has(e.sequence));
	const columns: Column<Entry>[] = [
		{ id: "time", title: t.time, cell: (e) => clock(e.time), sort: (e) => e.sequence },
		{ id: "user", title: t.by, cell: (e) => <span title={e.remote}>{e.user} <span className="dim">{e.self ? t.itself : e.role}</span></span>, sort: (e) => e.user },
		{ id: "action", title: t.what, cell: (e) => e.action, sort: (e) => e.action },
		{ id: "service", title: t.service, cell: (e) => (e.service ? <ServiceLink name={e.service} /> : ""), sort: (e) => e.service ?? "" },
		{ id: "subject", title: t.subject, cell: (e) => e.subject ?? "", sort: (e) => e.subject ?? "" },
		{ id: "outcome", title: t.result, cell: (e) => <Mark tone={e.outcome === "done" ? "good" : e.outcome === "failed" ? "bad" : "warn"}>{t.outcomes[e.outcome]}</Mark>, sort: (e) => e.outcome },
		{ id: "text", title: t.message, kind: "text", cell: (e) => e.text ?? "" },
		{ id: "reason", title: t.reason, kind: "text", cell: (e) => e.reason ?? "" },
		{ id: "hash", title: t.hash, cell: (e) => <code title={e.hash}>{e.hash.slice(0, 8)}</code> },
	];
	const first = list.at(-1);
	return (
		<>
			<h1>{t.auditLog}</h1>
			<p className="note">{t.auditHint}</p>
			<Table name="sort" label={t.auditLog} columns={columns} rows={shown} rowKey={(e) => String(e.sequence)} none={t.noAudit} />
			{first && first.sequence > 1 ? <p><button type="button" onClick={() => ask<Entry[]>("audit" + query({ before: first.sequence })).then((more) => setOlder((old) => [...old, ...more]), () => {})}>{t.older}</button></p> : null}
		</>
	);
}
