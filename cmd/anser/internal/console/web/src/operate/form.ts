// The fields of a request, from an example message of its schema.

export interface FormField {
	path: string[];
	kind: "text" | "number" | "boolean" | "json";
	value: unknown;
}

// fieldsOf returns the fields of an example. Lists, and what is deep, are JSON.
export function fieldsOf(example: unknown, path: string[] = []): FormField[] {
	if (example !== null && typeof example === "object" && !Array.isArray(example) && path.length < 3) {
		const entries = Object.entries(example);
		if (entries.length || path.length === 0) return entries.flatMap(([k, v]) => fieldsOf(v, [...path, k]));
	}
	if (typeof example === "string") return [{ path, kind: "text", value: example }];
	if (typeof example === "number") return [{ path, kind: "number", value: example }];
	if (typeof example === "boolean") return [{ path, kind: "boolean", value: example }];
	return [{ path, kind: "json", value: example }];
}

// withField returns a message with another value of a field.
export function withField(message: unknown, path: string[], value: unknown): unknown {
	if (!path.length) return value;
	const object = message !== null && typeof message === "object" && !Array.isArray(message) ? (message as Record<string, unknown>) : {};
	return { ...object, [path[0]]: withField(object[path[0]], path.slice(1), value) };
}

// at returns the value of a field.
export const at = (message: unknown, path: string[]): unknown => path.reduce<unknown>((v, k) => (v !== null && typeof v === "object" ? (v as Record<string, unknown>)[k] : undefined), message);
