// Renews the page in place while it is visible. What a viewer looks at stays: only the parts that
// differ change, so scrolling, focus and the order of rows that the viewer has chosen are kept, and
// while text is selected nothing changes.
"use strict";
const every = Number(document.body.dataset.refresh);
const pause = document.getElementById("pause");
const find = document.getElementById("find");
const held = document.getElementById("held");

const stored = (name) => {
  try {
    return JSON.parse(sessionStorage.getItem(name)) || {};
  } catch {
    return {}; // the browser keeps nothing
  }
};
const store = (name, value) => {
  try {
    sessionStorage.setItem(name, JSON.stringify(value));
  } catch {} // it is kept while the page is open
};

// morph makes a node like another one, and keeps every node that has not changed.
const morph = (old, next) => {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const keyed = new Map([...old.children].filter((e) => e.dataset.key).map((e) => [e.dataset.key, e]));
  let at = old.firstChild;
  for (const n of [...next.childNodes]) {
    const key = n.dataset?.key;
    const match = key ? keyed.get(key) : at && !at.dataset?.key && at.nodeName === n.nodeName ? at : undefined;
    keyed.delete(key);
    if (match) {
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      morph(match, n);
    } else old.insertBefore(document.adoptNode(n), at);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
};

// The order of rows, by the title of a table: the column and whether it is descending.
const place = "order " + location.pathname;
const orders = stored(place);
const units = { "%": 1, "": 1, ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, k: 1e3, M: 1e6, B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };

// amount returns the number in a cell such as "1.25 ms" or "1m2s"; a dash is less than all.
const amount = (text) => {
  let sum = 0;
  let found = false;
  for (const [, n, unit] of text.matchAll(/([\d.]+) ?([a-zµ%]*)/gi)) {
    if (units[unit] === undefined) break;
    sum += Number(n) * units[unit];
    found = true;
  }
  return found ? sum : -1;
};

// arrange gives the headers of the tables buttons, and orders and filters the rows.
const arrange = (root) => {
  const wanted = find.value.trim().toLowerCase();
  for (const section of root.querySelectorAll("section")) {
    const order = orders[section.dataset.key];
    const heads = [...section.querySelectorAll("th")];
    heads.forEach((th) => {
      const button = th.querySelector("button") || document.createElement("button");
      if (!button.parentNode && th.textContent) {
        button.type = "button";
        button.append(...th.childNodes);
        th.append(button);
      }
      if (order?.[0] === th.textContent) th.setAttribute("aria-sort", order[1] ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    const body = section.querySelector("tbody");
    if (!body) continue;
    const column = order ? heads.findIndex((th) => th.textContent === order[0]) : -1;
    if (column >= 0) {
      const number = heads[column].className === "number";
      const value = (row) => (number ? amount(row.cells[column].textContent) : row.cells[column].textContent);
      const rows = [...body.rows].map((row) => [row, value(row)]);
      rows.sort(([, a], [, b]) => (number ? a - b : a.localeCompare(b)) * (order[1] ? -1 : 1));
      body.append(...rows.map(([row]) => row));
    }
    for (const row of body.rows) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
  }
};

// The lines of the tiles show the time in which the page was open, up to the last three minutes.
const past = "past " + document.body.dataset.process;
const remembered = 180_000;
const draw = (root) => {
  const all = stored(past);
  const now = Date.now();
  for (const svg of root.querySelectorAll(".spark")) {
    const name = svg.closest("[data-key]").dataset.key;
    const points = (all[name] || []).filter(([t]) => now - t < remembered);
    points.push([now, Number(svg.dataset.value)]);
    all[name] = points;
    const span = Math.max(now - points[0][0], 1);
    const top = Math.max(...points.map(([, v]) => v)) * 1.1 || 1;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("points", points.map(([t, v]) => `${(100 - ((now - t) / span) * 100).toFixed(2)},${(23 - (v / top) * 22).toFixed(2)}`).join(" "));
    svg.replaceChildren(line);
  }
  store(past, all);
};

// rearrange applies a choice of the viewer to the page that is shown.
const rearrange = () => {
  const focused = document.activeElement;
  arrange(document);
  focused.focus({ preventScroll: true });
};
document.addEventListener("click", (e) => {
  const th = e.target.closest?.("th");
  if (!th || !e.target.closest("button")) return;
  const title = th.closest("section").dataset.key;
  const first = th.className === "number"; // the largest number is on top first
  const [column, descending] = orders[title] || [];
  if (column !== th.textContent) orders[title] = [th.textContent, first];
  else if (descending === first) orders[title] = [column, !first];
  else delete orders[title]; // in the order of the process again, at the next answer
  store(place, orders);
  rearrange();
  if (!orders[title]) renew();
});
find.oninput = rearrange;
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.nodeName)) {
    e.preventDefault();
    find.focus();
  } else if (e.key === "Escape" && e.target === find) {
    find.value = "";
    rearrange();
  }
});

let paused = false;
let timer = 0;
const selected = () => {
  const s = getSelection();
  return s && !s.isCollapsed && document.querySelector("main").contains(s.anchorNode);
};
const renew = async () => {
  clearTimeout(timer);
  const wait = paused ? "" : selected() ? "Waits while text is selected" : "";
  if (held.textContent !== wait) held.textContent = wait;
  if (!paused && !wait && !document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(await answer.text());
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!selected() && !paused) {
        const main = next.querySelector("main");
        arrange(main);
        draw(main);
        const focused = document.activeElement;
        morph(document.querySelector("main"), main);
        if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
        document.getElementById("place").textContent = next.getElementById("place").textContent;
      }
      document.body.classList.remove("lost");
    } catch {
      document.body.classList.add("lost");
      document.getElementById("state").textContent = "The process does not answer. What is shown is from its last answer.";
    }
  }
  clearTimeout(timer);
  timer = setTimeout(renew, every);
};
pause.onclick = () => {
  paused = !paused;
  pause.textContent = paused ? "Continue" : "Pause";
  pause.setAttribute("aria-pressed", paused);
  if (!paused) renew();
};
document.addEventListener("visibilitychange", () => document.hidden || renew());
document.querySelector(".tools").hidden = false;
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
arrange(document);
draw(document);
timer = setTimeout(renew, every);
