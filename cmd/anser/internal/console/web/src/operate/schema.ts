// The JSON Schema of rules, which the console makes from the types that read them: what may be where.
export interface Schema {
	$ref?: string;
	$defs?: Record<string, Schema>;
	type?: string;
	description?: string;
	properties?: Record<string, Schema>;
	additionalProperties?: Schema | false;
	items?: Schema;
	anyOf?: Schema[];
	enum?: string[];
	examples?: string[];
	required?: string[];
	format?: string;
	pattern?: string;
	"x-values"?: string; // what the values are names of, or the keys of a map
}

export type Path = (string | number)[];

export type Kind = "object" | "map" | "list" | "patterns" | "text" | "number" | "boolean" | "duration" | "time" | "any";

export function kindOf(s: Schema): Kind {
	if (s.anyOf) return "patterns"; // a text or a list of texts
	if (s.properties) return "object";
	if (s.type === "object") return "map";
	if (s.type === "array") return "list";
	if (s.type === "boolean") return "boolean";
	if (s.type === "number" || s.type === "integer") return "number";
	if (s.type === "string") return s.format === "date-time" ? "time" : s.pattern ? "duration" : "text";
	return "any";
}

// resolved returns a schema with what it refers to.
function resolved(root: Schema, s: Schema): Schema {
	const name = s.$ref?.split("/").pop();
	return name ? { ...root.$defs?.[name], ...s, $ref: undefined } : s;
}

// schemaAt returns the schema of what is at a path, or undefined if nothing may be there. The values of a map are names of
// what its keys are with "=" and the key.
export function schemaAt(root: Schema, path: Path): Schema | undefined {
	let at: Schema | undefined = resolved(root, root);
	for (const step of path) {
		if (!at) return undefined;
		const kind: Kind = kindOf(at), values: string | undefined = at["x-values"];
		let next: Schema | undefined;
		if (typeof step === "number") next = kind === "list" ? at.items : kind === "patterns" ? { ...at, anyOf: undefined, type: "string" } : undefined;
		else if (kind === "object") next = at.properties?.[step];
		else if (kind === "map" && at.additionalProperties) next = { ...at.additionalProperties, ...(values ? { "x-values": `${values}=${step}` } : {}) };
		at = next && resolved(root, next);
	}
	return at;
}

// Field is a value of a rule, or a map of them.
export interface Field {
	id: string; // its path with dots
	path: string[];
	kind: Exclude<Kind, "object" | "list">;
	schema: Schema;
}

// fieldsOf returns the fields of a list of rules, such as "split".
export function fieldsOf(root: Schema, list: string, path: string[] = []): Field[] {
	const at = schemaAt(root, ["rules", list, 0, ...path]);
	if (!at) return [];
	const kind = kindOf(at);
	if (kind === "object") return Object.keys(at.properties ?? {}).flatMap((k) => fieldsOf(root, list, [...path, k]));
	return kind === "list" ? [] : [{ id: path.join("."), path, kind, schema: at }];
}

// listsOf returns the names of the lists of rules.
export const listsOf = (root: Schema): string[] => Object.keys(schemaAt(root, ["rules"])?.properties ?? {});
