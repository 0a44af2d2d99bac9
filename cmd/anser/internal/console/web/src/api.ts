// What the console sends, as in package model. Rates are calls per second, durations are nanoseconds, times are in UTC.

export interface Figures {
	rate: number;
	failed: number;
	p50: number;
	p90: number;
	p99: number;
}

export interface Registry {
	name: string;
	kind: string;
	healthy: boolean;
	trouble?: string;
	since?: string;
	latency?: number;
}

export interface Service extends Figures {
	name: string;
	instances: number;
	up: number;
	ejected: number;
	down: number;
	drained: number;
	in_flight: number;
	zones: string[];
	versions: string[];
	fingerprints: string[];
	rules: number;
	external?: boolean;
	stale?: string;
}

export interface Edge extends Figures {
	from: string;
	to: string;
	retried: number;
}

export interface Change {
	time: string;
	kind: string;
	service?: string;
	instance?: string;
	text: string;
	by?: string;
}

export interface Processes {
	known: number;
	read: number;
	failed: { address: string; error: string }[];
}

export interface System {
	time: string;
	interval: number; // the longest time between two readings of a process
	period: number; // between two updates
	processes: Processes;
	registries: Registry[];
	services: Service[];
	edges: Edge[];
	changes: Change[];
	arena?: boolean; // there is a report of the arena
	long_history?: boolean; // there is more than an hour, from Prometheus
}

export interface Update extends System {
	gone: { services: string[]; edges: [string, string][] };
}

export interface Instance extends Figures {
	service: string;
	id: string;
	address: string;
	zone?: string;
	version?: string;
	group?: string;
	weight: number;
	state: "up" | "draining" | "disabled";
	health: "ok" | "ejected" | "down" | "unknown";
	why?: string;
	tags?: Record<string, string>;
	in_flight: number;
	waiting: number;
	cpu: number;
	memory: number;
	goroutines: number;
	conns: number;
	process?: string;
	admin?: string;
	started?: string;
	stale?: string;
}

export interface InstancePage {
	total: number; // of the service, or of the system
	matching: number;
	offset: number;
	instances: Instance[];
}

// MapRow has a letter for what each instance of a service looks like, and a digit for its share of the largest value.
export interface MapRow {
	service: string;
	looks: string;
	shares?: string;
}

export interface InstanceMap {
	total: number;
	matching: number;
	most?: number;
	services: MapRow[];
}

export interface RulesChange {
	version: number;
	former: number;
	time: string;
	author?: string;
	comment?: string;
}

export interface EffectFigures {
	known: boolean;
	span: number;
	rate: number;
	failed: number;
	p50: number;
	p99: number;
}

export interface EffectGroup {
	name: string; // "" for all instances
	instances: number;
	before: EffectFigures;
	since: EffectFigures;
}

export interface Effect extends RulesChange {
	ended?: string;
	by: string;
	groups: EffectGroup[];
	more?: number;
	callers: EffectGroup; // all calls as their callers see them
}

export interface Effects {
	changes: RulesChange[]; // the last one first
	shown: Effect | null;
}

export interface Method extends Figures {
	name: string;
	p999: number;
	codes: { code: string; rate: number }[];
	retried: number;
	refused: number;
	replayed: number;
	queue: number;
	decode: number;
	handle: number;
	encode: number;
	runs?: string;
	stream?: boolean;
	oneway?: boolean;
	idempotent?: boolean;
	limit?: number;
	max_in_flight?: number;
	running: number;
	waiting: number;
}

export interface ServiceDetail {
	service: Service;
	instances: Instance[]; // up to 200
	tags: string[]; // of all instances, as name=value
	methods: Method[];
	callers: Edge[];
	callees: Edge[];
	rules: { version: number; trouble?: string };
	contracts: { fingerprint: string; instances: number }[];
	changes: Change[];
	folders: string[]; // of files
}

export interface Attempt {
	Address?: string;
	Outcome?: string | number;
	Duration?: number;
	Message?: string;
	Code?: string | number;
	Reason?: string | number;
	Pause?: number;
}

export interface Call {
	process: string;
	service?: string;
	instance?: string;
	time: string;
	side: "server" | "client";
	target?: string;
	method: string;
	stream?: boolean;
	oneway?: boolean;
	peer?: string;
	attempt?: number;
	pick?: { reason: string | number; balancer?: string; route?: string };
	code: string;
	outcome?: string;
	message?: string;
	duration: number;
	queue?: number;
	decode?: number;
	handle?: number;
	encode?: number;
	request_bytes?: number;
	reply_bytes?: number;
	trace_id?: string;
	span_id?: string;
	parent_id?: string;
	attempts?: Attempt[];
}

export interface MethodDetail {
	method: Method;
	instances: (Figures & { instance: string; stale?: string })[];
	attempts: { attempts: number; rate: number }[];
	slow: Call[];
	failures: Call[];
}

export interface Conn {
	process: string;
	service: string;
	side: string;
	peer: string;
	local?: string;
	protocol?: string;
	tls?: string;
	identity?: string;
	in_flight: number;
	streams?: number;
	draining?: boolean;
	sent: number;
	received: number;
	waiting?: number;
	quiet: number;
}

export interface Series {
	from: string;
	step: number;
	rate: (number | null)[];
	failed: (number | null)[];
	p50: (number | null)[];
	p90: (number | null)[];
	p99: (number | null)[];
}

export interface Heat {
	from: string;
	step: number;
	bounds: number[];
	counts: (number[] | null)[];
}

export interface Found {
	kind: string;
	name: string;
	url: string;
}

export interface Session {
	user: string;
	role: string;
	login: "none" | "local" | "oidc" | "proxy";
	csrf: string;
	changes: boolean;
	read_only?: string; // why no user may change anything
	log_in?: { method: string; path: string };
	log_in_provider?: { method: string; path: string }; // if users can log in there as well
	version: string;
	started: string;
}

// ApiError is why the console has not done what it was asked. status is 0 if it does not answer.
export class ApiError extends Error {
	constructor(
		readonly status: number,
		message: string,
		readonly advice = "",
		readonly current?: unknown,
	) {
		super(message);
	}
}

// ask sends a request below api/ and returns the JSON of the answer.
export async function ask<T>(path: string, init?: RequestInit): Promise<T> {
	let answer: Response;
	try {
		answer = await fetch("api/" + path, init);
	} catch (error) {
		if (error instanceof DOMException && error.name === "AbortError") throw error;
		throw new ApiError(0, "");
	}
	const text = await answer.text();
	let body: unknown;
	try {
		body = text ? JSON.parse(text) : undefined;
	} catch {
		body = { error: text.slice(0, 400) };
	}
	if (answer.ok) return body as T;
	const problem = body as { error?: string; advice?: string; current?: unknown } | undefined;
	throw new ApiError(answer.status, problem?.error ?? answer.statusText, problem?.advice, problem?.current);
}

// query returns a query with the values that are set.
export function query(values: Record<string, string | number | undefined>): string {
	const q = new URLSearchParams();
	for (const [key, value] of Object.entries(values)) if (value !== undefined && value !== "") q.set(key, String(value));
	const text = q.toString();
	return text && "?" + text;
}
