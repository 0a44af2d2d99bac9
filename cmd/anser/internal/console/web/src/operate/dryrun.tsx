// What a dry run of rules says: which calls would go elsewhere, with the new rules and with the present ones.
import { useText } from "../settings";
import { Icon, Section } from "../ui";

export interface RuleEffect {
	rule: string;
	instances: string[] | null;
}

interface Counts {
	moved: number;
	failed: number;
	mocked: number;
	faulted: number;
}

export interface DryRun extends Counts {
	calls: number;
	gone: number;
	moves?: { method: string; from: string; to: string[] | null; calls: number }[];
	unknown?: string[];
	effects: RuleEffect[];
	now: Counts; // of the present rules
	from: number;
	advice?: string;
}

export function Effects({ list }: { list: RuleEffect[] }) {
	const t = useText();
	return <ul className="plain effects">{list.map((e) => <li key={e.rule}><code>{e.rule}</code> {e.instances?.length ? e.instances.join(", ") : <span className="warn">{t.noInstance}</span>}</li>)}</ul>;
}

export function DryRunResult({ of }: { of: DryRun }) {
	const t = useText();
	const rows = (["moved", "failed", "mocked", "faulted"] as const).filter((k) => k === "moved" || k === "failed" || of[k] || of.now[k]);
	return (
		<Section title={t.dryRun}>
			{of.advice ? <p className="warn advice"><Icon name="warn" /> {of.advice}{of.unknown?.length ? ": " + of.unknown.join(", ") : ""}</p> : null}
			{of.from ? (
				<>
					<p role="status">{t.dryRunText(of.calls, of.from)}{of.gone ? " " + t.dryRunGone(of.gone) : ""}</p>
					<div className="scroll counts" tabIndex={0} role="region" aria-label={t.dryRunCounts}>
						<table>
							<thead><tr><th scope="col">{t.calls}</th><th scope="col" className="n">{t.presentRules}</th><th scope="col" className="n">{t.newRules}</th></tr></thead>
							<tbody>{rows.map((k) => <tr key={k} className={"of-" + k}><th scope="row">{t.dryRunRows[k]}</th><td className="n">{of.now[k]}</td><td className={of[k] > of.now[k] ? (k === "failed" ? "n bad" : "n warn") : "n"}>{of[k]}</td></tr>)}</tbody>
						</table>
					</div>
					<p className="note">{t.dryRunHint}</p>
				</>
			) : null}
			{of.moves?.length ? (
				<>
					<h3>{t.dryRunMoves}</h3>
					<div className="scroll moves" tabIndex={0} role="region" aria-label={t.dryRunMoves}>
						<table><thead><tr><th scope="col">{t.method}</th><th scope="col">{t.from}</th><th scope="col">{t.to}</th><th scope="col" className="n">{t.calls}</th></tr></thead>
							<tbody>{of.moves.map((m, i) => <tr key={i}><td>{m.method}</td><td>{m.from}</td><td>{m.to?.length ? m.to.join(", ") : <span className="bad">{t.noInstance}</span>}</td><td className="n">{m.calls}</td></tr>)}</tbody></table>
					</div>
				</>
			) : of.from ? <p className="dim">{t.dryRunStays}</p> : null}
			<Effects list={of.effects} />
		</Section>
	);
}
