// The pages. Each returns its parts for the state of the system and the parts of its address.
import { at, bytes, chart, clock, costs, el, failed, heat, link, rate, span, svg, table, tiles } from './draw.js';

export async function get(path) {
  const answer = await fetch('api/' + path);
  const body = await answer.json();
  if (!answer.ok) throw new Error([body.error, body.advice].filter(Boolean).join(': '));
  return body;
}

const query = (values) => '?' + new URLSearchParams(values);
const service = (name) => link(at('services', name), name);
const party = (name) => (name.startsWith('process:') ? name.slice(8) : service(name));
const rates = [
  ['Calls/s', (r) => rate(r.rate), true], ['Failed/s', failed, true], ['p50', (r) => span(r.p50), true], ['p99', (r) => span(r.p99), true],
];

function health(s) {
  const parts = [];
  if (s.ejected) parts.push(`${s.ejected} ejected`);
  if (s.down) parts.push(`${s.down} down`);
  if (s.drained) parts.push(`${s.drained} drained`);
  if (s.stale) parts.push('the list is of ' + clock(s.stale));
  return parts.length ? el('span', { class: s.drained && parts.length === 1 ? 'dim' : 'bad' }, parts.join(', ')) : s.external ? el('span', { class: 'dim' }, 'not in the registry') : 'up';
}

export function overview(system) {
  const all = { rate: 0, failed: 0, worst: 0 };
  for (const s of system.services.values()) {
    if (s.external) continue;
    all.rate += s.rate; all.failed += s.failed; all.worst = Math.max(all.worst, s.p99);
  }
  const services = [...system.services.values()];
  return [
    tiles([['Calls/s', rate(all.rate)], ['Failed/s', failed(all)], ['Slowest p99', span(all.worst)], ['Services', services.filter((s) => !s.external).length],
      ['Instances', services.reduce((n, s) => n + s.instances, 0)], ['Processes read', `${system.processes.read} of ${system.processes.known}`]]),
    trouble(system), el('h2', {}, 'Who calls whom'), map(system), el('h2', {}, 'Latest changes'), changeTable(system.changes.slice(0, 10)),
  ];
}

function trouble(system) {
  const lines = [];
  for (const r of system.registries) if (!r.healthy) lines.push(`The registry ${r.name} does not answer${r.since ? ' since ' + clock(r.since) : ''}: ${r.trouble}`);
  for (const p of system.processes.failed.slice(0, 5)) lines.push(`${p.address}: ${p.error}`);
  return lines.map((l) => el('p', { class: 'bad' }, l));
}

// map draws the services in layers: callers to the left of what they call.
function map(system) {
  const edges = [...system.edges.values()], names = new Set(edges.flatMap((e) => [e.from, e.to]));
  for (const name of system.services.keys()) names.add(name);
  if (!names.size) return el('p', { class: 'empty' }, 'No service is in the registry yet.');
  const depth = new Map([...names].map((n) => [n, 0]));
  for (let round = 0; round < Math.min(names.size, 8); round++) {
    for (const e of edges) if (e.from !== e.to) depth.set(e.to, Math.min(Math.max(depth.get(e.to), depth.get(e.from) + 1), 8));
  }
  const layers = [];
  for (const n of [...names].sort()) (layers[depth.get(n)] ??= []).push(n);
  const box = { w: 170, h: 42 }, place = new Map();
  let tallest = 0, x = 4;
  for (const layer of layers.filter(Boolean)) {
    const columns = Math.ceil(layer.length / 14), per = Math.ceil(layer.length / columns);
    layer.forEach((n, i) => place.set(n, { x: x + Math.floor(i / per) * (box.w + 14), y: 6 + (i % per) * (box.h + 14) }));
    x += columns * (box.w + 14) + 66;
    tallest = Math.max(tallest, per);
  }
  const wide = x - 66, high = tallest * (box.h + 14) + 6 + box.h;
  const drawing = svg('svg', { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, class: 'live', role: 'group', 'aria-label': 'Services and their calls' });
  for (const e of edges) {
    const a = place.get(e.from), b = place.get(e.to), y1 = a.y + box.h / 2, y2 = b.y + box.h / 2, x1 = a.x + box.w, x2 = b.x, mid = Math.max((x2 - x1) / 2, 30);
    const skips = depth.get(e.to) - depth.get(e.from) > 1 ? box.h : 0; // around the services between
    drawing.append(svg('path', { class: e.failed > 0 ? 'bad' : undefined, 'stroke-width': (1 + Math.log10(1 + e.rate)).toFixed(1), opacity: e.rate ? 1 : 0.4,
      d: `M${x1} ${y1}C${x1 + mid} ${y1 + skips} ${x2 - mid} ${y2 + skips} ${x2} ${y2}` },
    svg('title', {}, `${e.from} calls ${e.to}: ${rate(e.rate)}/s, ${rate(e.failed)} failed/s, p99 ${span(e.p99)}`)));
  }
  for (const [n, p] of place) {
    const s = system.services.get(n), out = s && (s.ejected || s.down || s.failed > 0);
    const text = !s ? 'calls others' : `${rate(s.rate)}/s  p99 ${span(s.p99)}` + (s.failed > 0 ? `  ${rate(s.failed)} failed/s` : '');
    const parts = [
      svg('rect', { class: `node${out ? ' bad' : ''}${s?.stale ? ' stale' : ''}`, x: p.x, y: p.y, width: box.w, height: box.h, rx: 7 }),
      svg('text', { class: 'name', x: p.x + 9, y: p.y + 17 }, short(n.replace(/^process:/, ''), 24)), svg('text', { x: p.x + 9, y: p.y + 33 }, text), svg('title', {}, n),
    ];
    drawing.append(s ? svg('a', { href: at('services', n) }, parts) : svg('g', {}, parts));
  }
  return el('div', { class: 'map', tabindex: 0 }, drawing);
}

const short = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);

export function services(system, _, filter) {
  const list = [...system.services.values()].filter((s) => s.name.toLowerCase().includes(filter)).sort((a, b) => a.name.localeCompare(b.name));
  return [el('h2', {}, 'Services'), table([['Service', (s) => service(s.name)], ...rates, ['In flight', (s) => s.in_flight, true], ['Instances', (s) => s.instances, true],
    ['State', health], ['Zones', (s) => s.zones.join(', ')], ['Versions', (s) => s.versions.join(', ')], ['Rules', (s) => s.rules || '–', true]], list, (s) => s.stale && 'stale')];
}

export async function instances(_, __, filter) {
  const groups = new Map();
  for (const i of await get('instances')) if ((i.id + i.service).toLowerCase().includes(filter)) groups.set(i.service, [...(groups.get(i.service) ?? []), i]);
  const rows = [...groups].map(([name, list]) => {
    const mean = list.reduce((n, i) => n + i.p99, 0) / list.length;
    return el('div', { class: 'group' }, service(name), el('div', { class: 'grid' }, list.map((i) => {
      const state = i.stale ? 'hstale' : i.state !== 'up' ? 'hout' : i.health === 'ejected' || i.health === 'down' || i.failed > 0 ? 'hbad' : i.p99 > 2 * mean ? 'h3' : i.p99 > mean ? 'h2' : 'h1';
      const text = `${i.id}: ${i.state}, ${i.health}, ${rate(i.rate)}/s, p99 ${span(i.p99)}${i.stale ? ', not known since ' + clock(i.stale) : ''}`;
      return el('a', { class: state, href: at('services', name), title: text, 'aria-label': text });
    })));
  });
  return [el('h2', {}, 'All instances'), el('p', { class: 'note' }, 'Orange: more than twice the p99 of its service. Red: ejected, down, or with failures. Grey: drained. Hatched: its admin page does not answer.'),
    el('div', { class: 'live' }, rows.length ? rows : el('p', { class: 'empty' }, 'None.'))];
}

const instanceColumns = [
  ['Instance', (i) => i.id], ['Address', (i) => i.address], ['State', (i) => i.state],
  ['Health', (i) => (i.stale ? 'not known since ' + clock(i.stale) : el('span', { class: i.health === 'ok' ? undefined : i.health === 'unknown' ? 'dim' : 'bad' }, i.health))],
  ...rates, ['In flight', (i) => i.in_flight, true], ['CPU', (i) => (100 * i.cpu).toFixed(0) + ' %', true], ['Memory', (i) => bytes(i.memory), true],
  ['Zone', (i) => i.zone ?? ''], ['Version', (i) => i.version ?? ''], ['Weight', (i) => i.weight, true], ['Why', (i) => i.why ?? '', 'text'],
];

const edgeColumns = (title, of) => [[title, (e) => party(of(e))], ...rates, ['Retried/s', (e) => rate(e.retried), true]];

export async function serviceView(_, [name]) {
  const id = encodeURIComponent(name);
  const [d, series, hot, slow, bad] = await Promise.all([get('services/' + id), get('history' + query({ service: name })), get('history/heat' + query({ service: name })),
    get('calls' + query({ service: name, kind: 'slow' })), get('calls' + query({ service: name, kind: 'failed' }))]);
  const s = d.service;
  return [
    el('h2', {}, name), s.stale ? el('p', { class: 'bad' }, `The registry does not answer: the list of instances is of ${clock(s.stale)}.`) : null,
    d.rules.trouble ? el('p', { class: 'bad' }, d.rules.trouble) : null,
    tiles([['Calls/s', rate(s.rate)], ['Failed/s', failed(s)], ['p50', span(s.p50)], ['p99', span(s.p99)], ['In flight', s.in_flight], ['Instances', s.instances], ['Rules', s.rules ? 'version ' + s.rules : 'none']]),
    charts(series, hot, d.changes),
    el('h2', {}, 'Methods'), table([['Method', (m) => link(at('services', name, m.name), m.name)], ...rates, ['Queue', (m) => span(m.queue), true], ['Handler', (m) => span(m.handle), true],
      ['Refused/s', (m) => rate(m.refused), true], ['Runs', (m) => m.runs ?? ''], ['Kind', (m) => [m.stream ? 'stream' : m.oneway ? 'oneway' : 'unary', m.idempotent ? 'idempotent' : ''].filter(Boolean).join(', ')]], d.methods),
    el('h2', {}, 'Instances'), table(instanceColumns, d.instances, (i) => i.stale && 'stale'),
    el('h2', {}, 'Called by'), table(edgeColumns('Caller', (e) => e.from), d.callers), el('h2', {}, 'Calls'), table(edgeColumns('Service', (e) => e.to), d.callees),
    d.contracts.length > 1 ? el('p', { class: 'warn' }, 'The instances serve different contracts: ' + d.contracts.map((c) => `${c.fingerprint} (${c.instances})`).join(', ')) : null,
    el('h2', {}, 'Latest failures'), callTable(bad.slice(0, 10)), el('h2', {}, 'Latest slow calls'), callTable(slow.slice(0, 10)),
    el('h2', {}, 'Changes'), changeTable(d.changes.slice(0, 20)),
  ];
}

function charts(series, hot, changes = []) {
  return el('div', { class: 'charts' },
    chart('Calls per second', series, [['calls', 'a', series.rate], ['failed', 'bad', series.failed]], rate, changes),
    chart('Latency', series, [['p50', 'a', series.p50], ['p90', 'c', series.p90], ['p99', 'b', series.p99]], span, changes), heat(hot));
}

export async function methodView(_, [name, method]) {
  const of = { service: name, method };
  const [d, series, hot] = await Promise.all([get(`services/${encodeURIComponent(name)}/methods/${encodeURIComponent(method)}`), get('history' + query(of)), get('history/heat' + query(of))]);
  const m = d.method, cost = { duration: m.queue + m.decode + m.handle + m.encode, queue: m.queue, decode: m.decode, handle: m.handle, encode: m.encode };
  return [
    el('h2', {}, service(name), ' / ', method),
    tiles([['Calls/s', rate(m.rate)], ['Failed/s', failed(m)], ['p50', span(m.p50)], ['p90', span(m.p90)], ['p99', span(m.p99)], ['p99.9', span(m.p999)], ['Running', m.running], ['Waiting', m.waiting]]),
    el('p', { class: 'note' }, 'An average call on the server: ', costs(cost), ` queue ${span(m.queue)}, decode ${span(m.decode)}, handler ${span(m.handle)}, encode ${span(m.encode)}`),
    charts(series, hot),
    el('h2', {}, 'Results'), table([['Code', (c) => c.code], ['Calls/s', (c) => rate(c.rate), true]], m.codes),
    el('h2', {}, 'Attempts of the callers'), table([['Attempts', (a) => (a.attempts > 1 ? 'more than one' : 'one')], ['Calls/s', (a) => rate(a.rate), true]], d.attempts),
    el('h2', {}, 'Instances'), table([['Instance', (i) => i.instance], ...rates], d.instances, (i) => i.stale && 'stale'),
    el('h2', {}, 'Latest failures'), callTable(d.failures.slice(0, 20)), el('h2', {}, 'Latest slow calls'), callTable(d.slow.slice(0, 20)),
  ];
}

function callTable(list) {
  return table([['Ended', (c) => clock(c.time)], ['Process', (c) => c.process], ['Side', (c) => c.side], ['Service', (c) => (c.service ? service(c.service) : '')], ['Method', (c) => c.method],
    ['Result', (c) => (c.code === 'ok' ? 'ok' : el('span', { class: 'bad', title: c.message ?? '' }, c.code))], ['Duration', (c) => span(c.duration), true],
    ['Where the time went', (c) => (c.side === 'server' ? costs(c) : '')], ['Attempts', (c) => c.attempts?.length ?? '', true], ['Peer', (c) => c.peer ?? ''],
    ['Trace', (c) => (c.trace_id ? link(at('trace', c.trace_id), c.trace_id.slice(0, 8)) : '')]], list);
}

export async function calls() {
  const [bad, slow] = await Promise.all([get('calls?kind=failed'), get('calls?kind=slow')]);
  return [el('h2', {}, 'Latest failures'), callTable(bad), el('h2', {}, 'Latest slow calls'),
    el('p', { class: 'note' }, el('span', { class: 'key kb' }), 'queue', el('span', { class: 'key kc' }), 'decode', el('span', { class: 'key ka' }), 'handler', el('span', { class: 'key kd' }), 'encode', el('span', { class: 'key kr' }), 'rest'),
    callTable(slow)];
}

export async function trace(_, [id]) {
  const list = await get('trace' + query({ id }));
  return [el('h2', {}, 'Trace ', id), el('p', { class: 'note' }, 'The recorded calls with this id, in the order in which they began. Processes record calls that failed or were slow.'), callTable(list)];
}

function changeTable(list) {
  return table([['Time', (c) => clock(c.time)], ['What', (c) => c.kind], ['Service', (c) => (c.service ? service(c.service) : '')], ['Instance', (c) => c.instance ?? ''], ['Text', (c) => c.text, 'text'], ['By', (c) => c.by ?? '']], list);
}

export async function changes() {
  return [el('h2', {}, 'Changes'), changeTable(await get('changes'))];
}

export function registries(system) {
  return [el('h2', {}, 'Registries'), table([['Registry', (r) => r.name], ['Kind', (r) => r.kind], ['State', (r) => (r.healthy ? 'answers' : el('span', { class: 'bad' }, r.trouble)), 'text'],
    ['Since', (r) => (r.since ? clock(r.since) : '')], ['Latency', (r) => span(r.latency), true]], system.registries),
  el('h2', {}, 'Processes that do not answer'), table([['Admin page', (p) => p.address], ['Why', (p) => p.error, 'text']], system.processes.failed)];
}
