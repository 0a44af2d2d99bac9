// The names that rules of a service can have, by what they are names of in the schema.
import type { ServiceDetail } from "../api";
import { isProcess } from "../format";
import type { Names } from "./complete";

const unique = (list: (string | undefined)[]): string[] => [...new Set(list.filter((x): x is string => Boolean(x)))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));

// withGroups adds "Arith.*" for the methods of Arith.
const withGroups = (methods: string[]): string[] => unique([...methods, ...methods.filter((m) => m.includes(".")).map((m) => m.slice(0, m.lastIndexOf(".")) + ".*")]);

// found returns what a pattern finds in texts.
const found = (texts: string[], pattern: RegExp): string[] => unique(texts.flatMap((text) => [...text.matchAll(pattern)].map((m) => m[1])));

// namesOf returns the names of a service. Those of rules and metadata are in no list: they are those of earlier texts.
export function namesOf(detail: ServiceDetail, texts: string[]): Names {
	const list = detail.instances;
	const names: Names = {
		methods: withGroups(detail.methods.map((m) => m.name)), instances: unique(list.map((i) => i.id)), addresses: unique(list.map((i) => i.address)),
		groups: unique(list.map((i) => i.group)), versions: unique(detail.service.versions), zones: unique(detail.service.zones),
		services: unique(detail.callers.map((e) => e.from).filter((name) => !isProcess(name))), tags: unique(detail.tags.map((tag) => tag.slice(0, tag.indexOf("=")))),
		names: found(texts, /^[\s-]*name: *"?([^"\n]*[^"\s])"? *$/gm), metadata: found(texts, /^[\s-]*(?:by|metadata): *"?([\w.-]+)"? *$/gm),
	};
	for (const tag of names.tags) names["tags=" + tag] = unique(detail.tags.filter((x) => x.startsWith(tag + "=")).map((x) => x.slice(tag.length + 1)));
	return names;
}
