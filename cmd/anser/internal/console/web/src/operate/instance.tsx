// Changes of one instance: its state, weight and tags.
import { useState } from "react";
import { type Instance, type InstancePage, query } from "../api";
import { change } from "../session";
import { useText } from "../settings";
import { useApi } from "../store";
import { Dialog, Field, Outcome, Reason, useDoing } from "./common";

export default function InstanceDialog({ of: shown, close }: { of: Instance; close: () => void }) {
	const t = useText();
	const { data } = useApi<InstancePage>("instances" + query({ service: shown.service, first: shown.id, limit: 1 }));
	const of = data?.instances.find((i) => i.id === shown.id) ?? shown;
	const doing = useDoing();
	const [reason, setReason] = useState(""), [weight, setWeight] = useState(String(of.weight)), [tag, setTag] = useState(""), [value, setValue] = useState("");
	const send = (what: object) => doing.run(async () => {
		await change("POST", "instances", { service: of.service, instance: of.id, ...what, reason });
		return t.changed;
	});
	return (
		<Dialog title={`${of.service} / ${of.id}`} close={close}>
			<p className="note">{t.instanceHint}</p>
			<Reason value={reason} set={setReason} />
			<fieldset disabled={doing.busy}>
				<legend>{t.state}</legend>
				<div className="row">
					<button type="button" disabled={of.state === "up"} onClick={() => send({ state: "up" })}>{t.activate}</button>
					<button type="button" disabled={of.state === "draining"} onClick={() => send({ state: "draining" })}>{t.drain}</button>
					<button type="button" disabled={of.state === "disabled"} onClick={() => send({ state: "disabled" })}>{t.deactivate}</button>
					<span className="dim">{t.now}: {t.states[of.state]}</span>
				</div>
			</fieldset>
			<fieldset disabled={doing.busy}>
				<legend>{t.weight}</legend>
				<div className="row">
					<input type="number" min={0} max={1000000} aria-label={t.weight} value={weight} onChange={(e) => setWeight(e.target.value)} />
					<button type="button" disabled={!/^\d+$/.test(weight)} onClick={() => send({ weight: Number(weight) })}>{t.set}</button>
					<span className="dim">{t.now}: {of.weight}. {t.weightHint}</span>
				</div>
			</fieldset>
			<fieldset disabled={doing.busy}>
				<legend>{t.tags}</legend>
				<div className="row">{Object.entries(of.tags ?? {}).map(([k, v]) => <code key={k} className="tag">{k}={v}</code>)}</div>
				<div className="row">
					<Field label={t.tagName}><input value={tag} onChange={(e) => setTag(e.target.value)} /></Field>
					<Field label={t.tagValue}><input value={value} onChange={(e) => setValue(e.target.value)} /></Field>
					<button type="button" disabled={!tag} onClick={() => send({ tags: { [tag]: value } })}>{value ? t.set : t.remove}</button>
				</div>
			</fieldset>
			<Outcome of={doing} />
		</Dialog>
	);
}
