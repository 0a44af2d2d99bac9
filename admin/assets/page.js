// Renews the page in place while it is visible, and follows calls.
"use strict";
const body = document.body;
const every = Number(body.dataset.refresh || 0);
if (every) {
  const button = document.getElementById("pause");
  let paused = false;
  button.hidden = false;
  button.onclick = () => {
    paused = !paused;
    button.textContent = paused ? "Continue" : "Pause";
  };
  const renew = async () => {
    if (!paused && !document.hidden && !String(getSelection())) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (!answer.ok) throw new Error(await answer.text());
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        const places = [...document.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
        const focused = document.activeElement?.getAttribute?.("href");
        document.querySelector("main").replaceWith(document.adoptNode(next.querySelector("main")));
        document.querySelectorAll(".scroll").forEach((e, i) => (e.scrollLeft = places[i] || 0));
        if (focused) document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus();
        document.querySelector("header p").textContent = next.querySelector("header p").textContent;
        body.classList.remove("lost");
      } catch {
        body.classList.add("lost");
        document.getElementById("state").textContent = "The process does not answer. What is shown is from its last answer.";
      }
    }
    setTimeout(renew, every);
  };
  setTimeout(renew, every);
}
const filter = document.getElementById("filter");
if (filter) {
  const said = document.getElementById("said");
  const list = document.getElementById("live");
  const stop = document.getElementById("stop");
  let source;
  let skipped = 0;
  const end = (text) => {
    source?.close();
    source = undefined;
    stop.disabled = true;
    said.textContent = text;
  };
  const span = (ns) => (ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toPrecision(3) + " µs" : ns < 1e9 ? (ns / 1e6).toPrecision(3) + " ms" : (ns / 1e9).toPrecision(3) + " s");
  const add = (c) => {
    const row = document.createElement("tr");
    const put = (text, kind) => {
      const cell = document.createElement("td");
      cell.textContent = text || "";
      if (kind) cell.className = kind;
      row.append(cell);
    };
    put(new Date(c.time).toLocaleTimeString() + "." + c.time.slice(20, 23));
    put(c.side);
    put(c.method);
    put(c.code + (c.code !== "ok" && c.outcome ? ", " + c.outcome : ""), c.code === "ok" ? "" : "bad");
    put(span(c.duration), "number");
    put(c.peer);
    put(c.trace_id, "dim");
    list.prepend(row);
    while (list.children.length > 200) list.lastChild.remove();
  };
  filter.onsubmit = (e) => {
    e.preventDefault();
    source?.close();
    skipped = 0;
    const query = new URLSearchParams(new FormData(filter));
    for (const [k, v] of [...query]) if (!v) query.delete(k);
    query.set("rate", "20");
    source = new EventSource("calls.events?" + query);
    stop.disabled = false;
    said.textContent = "Waiting for calls";
    let shown = 0;
    source.addEventListener("call", (m) => {
      add(JSON.parse(m.data));
      said.textContent = ++shown + " calls shown, " + skipped + " left out";
    });
    source.addEventListener("skipped", (m) => (skipped = JSON.parse(m.data).skipped));
    source.addEventListener("end", (m) => end(JSON.parse(m.data).why));
    source.onerror = () => end("The process has ended the list, or the filter is not valid.");
  };
  stop.onclick = () => end("Stopped.");
}
