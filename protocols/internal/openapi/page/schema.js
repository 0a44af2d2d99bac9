const nameOfRef = (schema) => schema.$ref && schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);

const group = (text) => text.includes(" or ") ? "(" + text + ")" : text;

// typeText says in a few words what a value is.
function typeText(schema) {
	if (schema.$ref) return nameOfRef(schema);
	const options = schema.anyOf || schema.oneOf;
	if (options) return options.map(typeText).join(" or ");
	const list = [].concat(schema.type || []);
	if (!list.length) return schema.pattern || schema.enum ? "string" : "any value";
	return list.map((type) => {
		if (type === "array") return schema.prefixItems ? "array [" + schema.prefixItems.map(typeText).join(", ") + "]" : "array of " + (schema.items ? group(typeText(schema.items)) : "any value");
		if (type === "object" && schema.additionalProperties && !schema.properties) return "map of " + group(typeText(schema.additionalProperties));
		if (type === "string" && schema.contentEncoding) return "string (" + schema.contentEncoding + ")";
		return schema.format && type !== "null" ? type + " (" + schema.format + ")" : type;
	}).join(" or ");
}

// limits says what else a value must be.
function limits(schema) {
	const of = [];
	if (schema.minimum !== undefined && schema.maximum !== undefined) of.push(schema.minimum + " to " + schema.maximum);
	else if (schema.minimum !== undefined) of.push("at least " + schema.minimum);
	if (schema.minItems !== undefined && !schema.prefixItems) of.push(schema.minItems === schema.maxItems ? schema.minItems + " elements" : "from " + schema.minItems + " elements");
	if (schema.pattern) of.push(schema.pattern);
	if (schema.enum) of.push(schema.enum.join(", "));
	if (schema.default !== undefined) of.push("default " + JSON.stringify(schema.default));
	if (schema.readOnly) of.push("set by the server");
	if (schema.writeOnly) of.push("not told by the server");
	return of.join("; ");
}

// inside returns the schemas whose properties are shown below a value. around are those that it is in.
function inside(schema, around = []) {
	const whole = resolve(schema);
	if (around.includes(whole)) return [];
	if (whole.properties) return Object.keys(whole.properties).length ? [whole] : [];
	return [whole.anyOf, whole.oneOf, whole.items, whole.additionalProperties].flat().filter(Boolean).flatMap((one) => inside(one, [...around, whole]));
}

// properties shows the properties of a schema. Those of inner ones are made when they are opened,
// since a type may contain itself. must says of a property that is always there what that means.
function properties(schema, must) {
	const list = el("ul", { class: "props" });
	for (const [name, value] of Object.entries(schema.properties || {})) {
		const whole = { ...resolve(value), ...value };
		const more = limits(whole);
		const item = el("li", {},
			el("div", { class: "prop" },
				el("span", { class: "name" }, name), el("span", { class: "type" }, typeText(value)),
				(schema.required || []).includes(name) && el("span", { class: must === "required" ? "must" : "type" }, must),
				value.deprecated && el("span", { class: "must" }, "deprecated")),
			value.description && el("div", { class: "text" }, value.description),
			more && el("div", { class: "text mono" }, more));
		const inner = inside(value);
		if (inner.length) {
			const details = el("details", {}, el("summary", {}, "Fields of " + name));
			details.addEventListener("toggle", () => {
				if (details.open && details.children.length === 1) details.append(...inner.map((one) => properties(one, must)));
			});
			item.append(details);
		}
		list.append(item);
	}
	return list;
}

// messageCard shows a message with its fields and an example.
function messageCard(title, schema, example, must, more) {
	const whole = resolve(schema);
	const inner = inside(schema);
	return el("section", { class: "card" },
		el("div", { class: "head" }, el("h3", {}, title), el("span", { class: "type muted small mono" }, typeText(schema))),
		more && el("p", { class: "small muted" }, more),
		whole.description && el("p", { class: "doc small muted" }, whole.description),
		inner.length ? inner.map((one) => properties(one, must)) : el("p", { class: "small muted" }, [typeText(schema), limits(whole)].filter(Boolean).join(": ") === "object" ? "It has no fields." : limits(whole)),
		example !== undefined && el("details", {}, el("summary", {}, "Example"), el("pre", { tabindex: 0 }, JSON.stringify(example, null, 2))));
}
