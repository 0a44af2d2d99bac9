import type { Service } from "./api";

export type Tone = "good" | "warn" | "bad" | "dim";

// toneOf says how a service is.
export function toneOf(s: Service): Tone {
	if (s.stale) return "warn";
	if (s.ejected || s.down || s.failed > 0) return "bad";
	return s.external ? "dim" : "good";
}
