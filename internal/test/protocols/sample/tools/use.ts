// What the types of the document mean for a caller: tsc compiles it, and it must refuse the lines that say so.
import type { paths } from "./openapi";

type Request<P extends keyof paths> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type Reply<P extends keyof paths> = paths[P] extends { post: { responses: { 200: { content: { "application/json": infer B } } } } } ? B : never;

export const letter: Request<"/Mail.Send"> = { to: "ann" };
// @ts-expect-error: the contract requires the field "to"
export const noAddress: Request<"/Mail.Send"> = { text: "x" };
export const reply: Reply<"/Mail.Send"> = { number: 7 };
export const thing: Request<"/Things.Echo"> = { small: 1, kids: [{ truth: true }], by_name: { x: null } };
// @ts-expect-error: the field is a number
export const wrong: Request<"/Things.Echo"> = { small: "1" };
export const book: Request<"/test.kinds.v1.Kinds.Echo"> = { int64Value: "9007199254740993", genre: "GOOD", doubleValue: "NaN", inside: { left: "x" } };
// @ts-expect-error: the enum has no such value
export const genre: Request<"/test.kinds.v1.Kinds.Echo"> = { genre: "NONE" };
export const query: paths["/v1/shelves/{shelf}/books"]["get"]["parameters"] = { path: { shelf: "1" }, query: { pageSize: 2, "filter.genre": "NOVEL", authors: ["a"] } };
export const divide: Request<"/Things.Divide">[] = [{ a: 7, b: 2 }, [7, 2]];
