// What has changed, with filters.
import { useState } from "react";
import { type Change, ask, query } from "../api";
import { setQuery, useRoute } from "../route";
import { useText } from "../settings";
import { useApi, useStore } from "../store";
import { Changes, Filter, Wait } from "../ui";

export function ChangesPage() {
	const t = useText();
	const { query: q } = useRoute();
	const service = q.get("service") ?? "", kind = q.get("kind") ?? "", wanted = (q.get("q") ?? "").toLowerCase();
	const { data, error, again } = useApi<Change[]>("changes" + query({ service }));
	const [older, setOlder] = useState<{ service: string; list: Change[]; end: boolean }>({ service, list: [], end: false });
	const names = useStore((s) => s.services);
	const more = older.service === service ? older : { service, list: [], end: false };
	const list = [...(data ?? []), ...more.list];
	const last = list.at(-1);
	const shown = list.filter((c) => (!kind || c.kind === kind) && (!wanted || `${c.service} ${c.instance} ${c.text} ${c.by}`.toLowerCase().includes(wanted)));
	return (
		<>
			<div className="head">
				<h1>{t.changes}</h1>
				<select aria-label={t.kind} value={kind} onChange={(e) => setQuery({ kind: e.target.value })}>
					<option value="">{t.allKinds}</option>
					{Object.entries(t.kinds).map(([id, text]) => <option key={id} value={id}>{text}</option>)}
				</select>
				<select aria-label={t.chooseService} value={service} onChange={(e) => setQuery({ service: e.target.value })}>
					<option value="">{t.anyService}</option>
					{[...names.keys()].sort().map((n) => <option key={n} value={n}>{n}</option>)}
				</select>
				<Filter label={t.filter} />
			</div>
			{data ? <Changes list={shown} /> : <Wait error={error} again={again} />}
			{last && !more.end ? (
				<button type="button" onClick={async () => {
					const next = await ask<Change[]>("changes" + query({ service, before: last.time })).catch(() => null);
					if (next) setOlder({ service, list: [...more.list, ...next], end: next.length === 0 });
				}}>{t.older}</button>
			) : null}
		</>
	);
}
