// Follows calls as they happen.
"use strict";
const filter = document.getElementById("filter");
const said = document.getElementById("said");
const list = document.getElementById("live");
const stop = document.getElementById("stop");
const most = 200; // rows
let source;
let shown = 0;
let skipped = 0;

const end = (text) => {
  source?.close();
  source = undefined;
  stop.disabled = true;
  said.textContent = text;
};

const digits = (n, unit) => n.toPrecision(3) + " " + unit;
const span = (ns) => (ns < 1e3 ? ns + " ns" : ns < 999_500 ? digits(ns / 1e3, "µs") : ns < 999_500_000 ? digits(ns / 1e6, "ms") : digits(ns / 1e9, "s"));
const two = (n) => String(n).padStart(2, "0");
const clock = (t) => [t.getHours(), t.getMinutes(), t.getSeconds()].map(two).join(":") + "." + String(t.getMilliseconds()).padStart(3, "0");

const add = (c) => {
  const row = document.createElement("tr");
  const put = (text, kind) => {
    const cell = document.createElement("td");
    cell.textContent = text || "";
    if (kind) cell.className = kind;
    row.append(cell);
  };
  put(clock(new Date(c.time)));
  put(c.side);
  put(c.method);
  put(c.code + (c.code !== "ok" && c.outcome ? ", " + c.outcome : ""), c.code === "ok" ? "" : "bad");
  put(span(c.duration), "number");
  put(c.peer);
  put(c.trace_id, "trace");
  list.prepend(row);
  while (list.children.length > most) list.lastChild.remove();
};

filter.onsubmit = (e) => {
  e.preventDefault();
  source?.close();
  shown = skipped = 0;
  list.replaceChildren();
  const query = new URLSearchParams(new FormData(filter));
  for (const [k, v] of [...query]) if (!v) query.delete(k);
  query.set("rate", "20");
  source = new EventSource("calls.events?" + query);
  stop.disabled = false;
  said.textContent = "Waiting for calls";
  const count = () => (said.textContent = `${shown} calls shown, ${skipped} left out`);
  source.addEventListener("call", (m) => {
    add(JSON.parse(m.data));
    shown++;
    count();
  });
  source.addEventListener("skipped", (m) => {
    skipped = JSON.parse(m.data).skipped;
    count();
  });
  source.addEventListener("end", (m) => end(JSON.parse(m.data).why));
  source.onerror = () => end("The process has ended the list, or the filter is not valid.");
};
stop.onclick = () => end(`Stopped: ${shown} calls shown, ${skipped} left out`);
