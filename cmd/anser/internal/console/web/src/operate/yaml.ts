// How texts of rules are read and written. Every scalar is a text, so that what a user does not change is written as it was.
import { type Document, type ParsedNode, Scalar, parseDocument } from "yaml";

const options = { schema: "failsafe", logLevel: "error", prettyErrors: false } as const;

export const parse = (text: string): Document.Parsed<ParsedNode> => parseDocument(text, options);

// written returns the text of a document in the form in which the console shows rules.
export const written = (doc: Document): string => doc.toString({ lineWidth: 0, indentSeq: false, flowCollectionPadding: false });

const plain = /^[A-Za-z_$][\w.$/-]*(\.\*)?( [\w./-]+)*$/;
const words = /^(true|false|yes|no|on|off|y|n|null)$/i;

// isPlain reports whether a text needs no quotes to be a text.
export const isPlain = (text: string): boolean => plain.test(text) && !words.test(text);

// scalar returns a text as a scalar, with quotes if it needs some. A literal is a number or the like.
export function scalar(text: string, literal = false): Scalar<string> {
	const s = new Scalar(text);
	s.type = literal || isPlain(text) ? Scalar.PLAIN : Scalar.QUOTE_DOUBLE;
	return s;
}
