// Elements, formats and charts. Every text becomes a text node: names come from other processes.
const space = 'http://www.w3.org/2000/svg';

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(space, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined && v !== false) node.setAttribute(k, v);
  for (const c of children.flat(Infinity)) if (c !== undefined && c !== null) node.append(c);
  return node;
}

export const link = (href, text) => el('a', { href }, text);
export const at = (...parts) => '#/' + parts.map(encodeURIComponent).join('/');

export function rate(x) {
  if (!x) return '0';
  if (x >= 10000) return (x / 1000).toFixed(1) + ' k';
  return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
}

export function span(ns) {
  if (!ns) return '–';
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (ns >= size) return (ns / size >= 100 ? (ns / size).toFixed(0) : (ns / size).toPrecision(3)) + ' ' + unit;
  }
  return ns + ' ns';
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  for (; n >= 1024 && i < 3; i++) n /= 1024;
  return n.toFixed(i && n < 10 ? 1 : 0) + ' ' + units[i];
}

export function clock(text) {
  const t = new Date(text);
  return t.getTime() <= 0 ? 'never' : t.toLocaleTimeString(undefined, { hour12: false });
}

export function failed(f) {
  return f.failed > 0 ? el('span', { class: 'bad' }, rate(f.failed)) : '0';
}

// table makes a table. A column is [title, cell, true if it has numbers or "text" if its lines wrap].
export function table(columns, rows, className = () => '') {
  if (!rows.length) return el('p', { class: 'empty' }, 'None.');
  const side = (c) => (c[2] ? { class: c[2] === 'text' ? 'text' : 'n' } : {});
  return el('div', { class: 'scroll live', tabindex: 0 },
    el('table', {},
      el('thead', {}, el('tr', {}, columns.map((c) => el('th', { scope: 'col', ...side(c) }, c[0])))),
      el('tbody', {}, rows.map((r) => el('tr', { class: className(r) || undefined }, columns.map((c) => el('td', side(c), c[1](r) ?? '')))))));
}

export function tiles(list) {
  return el('dl', { class: 'tiles live' }, list.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

const wide = 600, high = 130, left = 52, low = 18;

// chart draws lines over time; a line is [name, class, values]. Unknown values are gaps.
export function chart(title, series, lines, format, marks = []) {
  const n = Math.max(series.rate.length - 1, 1);
  const most = Math.max(...lines.flatMap((l) => l[2].map((v) => v ?? 0)), 0) || 1;
  const x = (i) => left + ((wide - left) * i) / n;
  const y = (v) => high - low - ((high - low - 8) * v) / most;
  const drawing = svg('svg', { viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': title });
  for (const part of [0, 0.5, 1]) {
    drawing.append(svg('line', { class: 'axis', x1: left, x2: wide, y1: y(most * part), y2: y(most * part) }));
    drawing.append(svg('text', { x: left - 6, y: y(most * part) + 4, 'text-anchor': 'end' }, part ? format(most * part) : '0'));
  }
  const from = new Date(series.from).getTime(), step = series.step / 1e6;
  for (const part of [0, 0.5, 1]) {
    const anchor = ['start', 'middle', 'end'][part * 2];
    drawing.append(svg('text', { x: x(n * part), y: high - 3, 'text-anchor': anchor }, clock(from + n * part * step)));
  }
  for (const m of marks) {
    const i = (new Date(m.time).getTime() - from) / step;
    if (i >= 0 && i <= n) drawing.append(svg('line', { class: 'mark', x1: x(i), x2: x(i), y1: 4, y2: high - low }, svg('title', {}, m.text)));
  }
  for (const [, kind, values] of lines) {
    let path = '', open = false;
    values.forEach((v, i) => {
      if (v !== null && v !== undefined) path += (open ? 'L' : 'M') + x(i).toFixed(1) + ' ' + y(v).toFixed(1);
      open = v !== null && v !== undefined;
    });
    drawing.append(svg('path', { class: 'line l' + kind, d: path }));
  }
  const keys = lines.map(([name, kind]) => [el('span', { class: 'key k' + kind }), name]);
  return el('figure', { class: 'chart live' }, el('h3', {}, title, keys), drawing);
}

// heat draws durations over time.
export function heat(h) {
  const used = Math.max(8, ...h.counts.map((c) => (c ? c.findLastIndex((k) => k > 0) + 2 : 0)));
  const rows = Math.min(used, h.bounds.length), n = h.counts.length, size = (high - low) / rows;
  const most = Math.max(...h.counts.flatMap((c) => c ?? []), 1);
  const drawing = svg('svg', { viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': 'Calls by time and duration' });
  const w = (wide - left) / n;
  h.counts.forEach((c, i) => c?.forEach((k, j) => {
    if (!k) return;
    const opacity = (0.15 + (0.85 * Math.log(1 + k)) / Math.log(1 + most)).toFixed(2);
    drawing.append(svg('rect', { class: 'fa', x: (left + i * w).toFixed(1), y: ((rows - 1 - j) * size).toFixed(1), width: (w + 0.3).toFixed(1), height: (size - 0.6).toFixed(1), opacity },
      svg('title', {}, `${k} calls up to ${span(h.bounds[j])}`)));
  }));
  h.bounds.forEach((b, j) => {
    if (j < rows && j % 4 === 1) drawing.append(svg('text', { x: left - 6, y: (rows - j) * size - 2, 'text-anchor': 'end' }, span(b)));
  });
  const from = new Date(h.from).getTime();
  drawing.append(svg('text', { x: left, y: high - 3 }, clock(from)));
  drawing.append(svg('text', { x: wide, y: high - 3, 'text-anchor': 'end' }, clock(from + (n * h.step) / 1e6)));
  return el('figure', { class: 'chart live' }, el('h3', {}, 'Durations of the calls'), drawing);
}

// costs draws where the time of a call went.
export function costs(c) {
  const all = c.duration || 1;
  let x = 0;
  const parts = [['queue', 'b', c.queue], ['decode', 'c', c.decode], ['handler', 'a', c.handle], ['encode', 'd', c.encode]];
  const drawing = svg('svg', { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img' });
  drawing.setAttribute('aria-label', parts.map(([name, , v]) => `${name} ${span(v)}`).join(', '));
  drawing.append(svg('rect', { class: 'fr', width: 100, height: 10 }));
  for (const [name, kind, v] of parts) {
    if (!v) continue;
    drawing.append(svg('rect', { class: 'f' + kind, x, width: (100 * v) / all, height: 10 }, svg('title', {}, `${name} ${span(v)}`)));
    x += (100 * v) / all;
  }
  return drawing;
}
