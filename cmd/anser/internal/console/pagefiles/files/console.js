// Follows the system by server-sent events, and shows the page of the address.
import { el, clock } from './draw.js';
import * as views from './views.js';

const main = document.getElementById('main'), state = document.getElementById('state'), search = document.getElementById('search');
let system = null, alive = 0, lost = true, drawing = false;

const routes = { '': views.overview, services: views.services, instances: views.instances, calls: views.calls, trace: views.trace, changes: views.changes, registries: views.registries };

function route() {
  const [name = '', ...rest] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/').map(decodeURIComponent);
  if (name === 'services' && rest.length === 1) return [views.serviceView, rest];
  if (name === 'services' && rest.length === 2) return [views.methodView, rest];
  return [routes[name] ?? views.overview, rest];
}

// draw shows the page again, and keeps where the viewer is.
async function draw() {
  if (!system || drawing || getSelection()?.toString()) return;
  drawing = true;
  const address = location.hash;
  try {
    const [view, rest] = route();
    const parts = (await view(system, rest, search.value.toLowerCase())).flat(Infinity).filter(Boolean);
    if (address === location.hash) keep(() => main.replaceChildren(...parts));
  } catch (error) {
    if (address === location.hash) main.replaceChildren(el('p', { class: 'bad' }, error.message));
  }
  drawing = false;
  if (address !== location.hash) draw();
}

// keep keeps the scroll positions and the focus while the content is replaced.
function keep(replace) {
  const boxes = () => [...main.querySelectorAll('.scroll, .map')];
  const before = boxes().map((b) => [b.scrollLeft, b.scrollTop]);
  const focusable = () => [...main.querySelectorAll('a, [tabindex]')];
  const focused = focusable().indexOf(document.activeElement);
  const [x, y] = [scrollX, scrollY];
  replace();
  boxes().forEach((b, i) => { if (before[i]) [b.scrollLeft, b.scrollTop] = before[i]; });
  if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
  scrollTo(x, y);
}

function navigate() {
  const here = location.hash.split('/')[1] ?? '';
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash.split('/')[1] === here) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  scrollTo(0, 0);
  draw();
}

function index(list, key) { return new Map(list.map((v) => [key(v), v])); }
const edgeKey = (e) => e.from + '>' + e.to;

function follow() {
  const source = new EventSource('api/events');
  const heard = () => { alive = Date.now(); show(false); };
  source.addEventListener('system', (e) => {
    const v = JSON.parse(e.data);
    system = { ...v, services: index(v.services, (s) => s.name), edges: index(v.edges, edgeKey) };
    heard();
    draw();
  });
  source.addEventListener('update', (e) => {
    const u = JSON.parse(e.data);
    if (!system) return;
    for (const s of u.services) system.services.set(s.name, s);
    for (const s of u.edges) system.edges.set(edgeKey(s), s);
    for (const name of u.gone.services) system.services.delete(name);
    for (const [from, to] of u.gone.edges) system.edges.delete(edgeKey({ from, to }));
    Object.assign(system, { time: u.time, processes: u.processes, registries: u.registries, changes: [...u.changes, ...system.changes].slice(0, 50) });
    heard();
    draw();
  });
  source.addEventListener('ping', heard);
  source.onerror = () => show(true);
}

// show says whether the page is current. What is not current says so within two seconds.
function show(isLost) {
  lost = isLost;
  main.classList.toggle('lost', lost);
  state.classList.toggle('bad', lost);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!system) state.textContent = lost ? 'The console does not answer.' : '';
  else state.textContent = lost ? `Connection lost: this is of ${clock(system.time)}` : `${clock(system.time)} ${zone}`;
}

setInterval(() => { if (!lost && Date.now() - alive > 2500) show(true); }, 500);
addEventListener('hashchange', navigate);
addEventListener('keydown', (e) => {
  if ((e.key === '/' && document.activeElement !== search) || (e.key === 'k' && (e.metaKey || e.ctrlKey))) {
    e.preventDefault();
    search.focus();
    search.select();
  }
});

const found = document.getElementById('found');
let urls = new Map();
search.addEventListener('input', async () => {
  const chosen = urls.get(search.value);
  if (chosen) {
    search.value = '';
    location.hash = chosen;
    return;
  }
  draw();
  if (!search.value) return found.replaceChildren();
  const list = await views.get('search?q=' + encodeURIComponent(search.value));
  urls = new Map(list.map((f) => [`${f.kind} ${f.name}`, hashOf(f.url)]));
  found.replaceChildren(...[...urls.keys()].map((value) => el('option', { value })));
});

// hashOf returns the address of a result within this page.
function hashOf(url) { return '#' + url.split('?')[0].replace('/methods/', '/'); }

show(false);
follow();
navigate();
