// What pages do besides showing: they follow what happens, find things, scroll on, and tail requests.
"use strict";

// Theme

const root = document.documentElement;
try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* storage is off */ }
document.getElementById("theme")?.addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.theme = root.dataset.theme; } catch { /* storage is off */ }
});

// Refreshing: the page is fetched again, and only what differs is changed, so that nothing flickers and nothing is lost.

function become(old, wanted) {
  if (old.nodeType !== wanted.nodeType || old.nodeName !== wanted.nodeName) { old.replaceWith(wanted.cloneNode(true)); return; }
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== wanted.data) old.data = wanted.data; return; }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  if (old === document.activeElement || old.nodeName === "INPUT" || old.nodeName === "DETAILS") return;
  const ours = ["style", "data-extra"];
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name) && !ours.includes(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const kept = Number(old.dataset?.extra || 0);
  const before = [...old.childNodes], after = [...wanted.childNodes];
  after.forEach((child, place) => before[place] ? become(before[place], child) : old.append(child.cloneNode(true)));
  if (!kept) before.slice(after.length).forEach((child) => child.remove());
}

let isFetching = false;
async function refresh() {
  if (isFetching || document.hidden) return;
  isFetching = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const wanted = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-part]")) {
      const other = wanted.getElementById(part.id);
      if (other) become(part, other);
    }
    place();
  } catch { /* the next event tries again */ } finally { isFetching = false; }
}

const every = Number(document.body.dataset.refresh || 0);
let turn = 0;
function follow() {
  const events = new EventSource("/api/v1/stream?kinds=traffic,revision");
  events.addEventListener("traffic", () => { if (++turn % every === 0) refresh(); });
  events.addEventListener("revision", () => {
    const river = document.querySelector(".river");
    if (river) { river.classList.remove("moving"); void river.offsetWidth; river.classList.add("moving"); }
    refresh();
  });
  addEventListener("pagehide", () => events.close());
}
if (every) follow();

function place() {
  for (const tick of document.querySelectorAll("[data-left]")) tick.style.left = `${tick.dataset.left}%`;
}
place();

// Scrolling on: rows come as they are needed.

const long = document.querySelector("table[data-rows]");
if (long) {
  const body = long.tBodies[0], total = Number(long.dataset.total);
  const first = body.rows.length;
  let loading = false;
  const end = document.createElement("div");
  document.getElementById("main").after(end);
  const isNear = () => end.getBoundingClientRect().top < innerHeight + 1200;
  async function more() {
    if (loading || body.rows.length >= total || !isNear()) return;
    loading = true;
    const answer = await fetch(`${long.dataset.rows}&after=${body.rows.length}`);
    if (answer.ok) {
      const made = document.createElement("template");
      made.innerHTML = `<table><tbody>${await answer.text()}</tbody></table>`;
      body.append(...made.content.querySelectorAll("tr"));
      body.dataset.extra = body.rows.length - first;
    }
    loading = false;
    if (answer.ok) more();
  }
  addEventListener("scroll", more, { passive: true });
  more();
}

// Finding

const palette = document.getElementById("palette"), text = document.getElementById("palette-text"), found = document.getElementById("palette-found");
let chosen = 0, asked = 0;
function pageOf(item) {
  const name = encodeURIComponent(item.name);
  return { host: `/routes?by=host&q=${name}`, route: `/route?name=${name}`, upstream: `/endpoints?all=true&upstream=${name}`,
    revision: `/changes/diff?to=${name}`, url: `/why?request=${name}`, object: `/object?object=${name}`, request: `/live?request_id=${name}` }[item.kind];
}
function guesses(value) {
  const items = [];
  if (/^https?:\/\//.test(value) || value.startsWith("curl ")) items.push({ kind: "url", name: value });
  if (/^(\d+\.)?\d+$|^HEAD/.test(value)) items.push({ kind: "revision", name: value });
  if (/^[a-z]+\/[^/ ]+(\/[^/ ]+)?$/i.test(value)) items.push({ kind: "object", name: value });
  if (/^[0-9a-f-]{16,}$/i.test(value)) items.push({ kind: "request", name: value });
  return items;
}
function show(items) {
  found.replaceChildren(...items.map((item, index) => {
    const row = document.createElement("li"), link = document.createElement("a"), kind = document.createElement("small");
    kind.textContent = ` ${item.kind}`;
    link.href = pageOf(item); link.textContent = item.name; link.append(kind);
    if (index === chosen) link.className = "chosen";
    row.append(link);
    return row;
  }));
}
function open() { chosen = 0; palette.showModal(); text.select(); }
document.getElementById("find")?.addEventListener("click", open);
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
});
text?.addEventListener("input", async () => {
  const value = text.value.trim(), number = ++asked;
  chosen = 0;
  const own = value ? guesses(value) : [];
  show(own);
  if (!value) return;
  const answer = await fetch(`/api/v1/search?q=${encodeURIComponent(value)}`);
  if (number === asked && answer.ok) show([...own, ...(await answer.json()).items]);
});
text?.addEventListener("keydown", (event) => {
  const links = [...found.querySelectorAll("a")];
  if (event.key === "Enter" && links[chosen]) { event.preventDefault(); location.href = links[chosen].href; }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !links.length) return;
  event.preventDefault();
  links[chosen].className = "";
  chosen = (chosen + step + links.length) % links.length;
  links[chosen].className = "chosen";
  links[chosen].scrollIntoView({ block: "nearest" });
});

// Live requests

const tail = document.getElementById("tail");
if (tail) {
  const rows = document.getElementById("tail-rows").tBodies[0], state = document.getElementById("tail-state"), pause = document.getElementById("pause");
  const query = new URLSearchParams([...new FormData(tail)].filter(([, value]) => value));
  let isPaused = false, count = 0;
  pause.addEventListener("click", () => { isPaused = !isPaused; pause.setAttribute("aria-pressed", isPaused); pause.textContent = isPaused ? "Go on" : "Pause"; });
  const events = new EventSource(`/api/v1/tail?${query}`);
  events.addEventListener("request", (event) => {
    const one = JSON.parse(event.data);
    state.textContent = `${++count} requests`;
    if (isPaused) return;
    const row = rows.insertRow(0);
    const cells = [new Date(one.at * 1000).toISOString().slice(11, 23), one.status || "none", `${one.method} ${one.host}${one.path}`,
      `${(one.seconds * 1000).toFixed(1)} ms`, one.client, one.endpoint, one.reason];
    cells.forEach((value, index) => {
      const cell = row.insertCell();
      cell.textContent = value;
      if (index === 1 || index === 3) cell.className = one.status >= 500 && index === 1 ? "n bad" : "n";
    });
    row.title = `${one.route}  ${one.request_id}`;
    while (rows.rows.length > 500) rows.deleteRow(-1);
  });
  events.addEventListener("trouble", (event) => { state.textContent = JSON.parse(event.data).detail; events.close(); });
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) state.textContent = "The filter cannot be used: a status is a number, a share is from 0 to 1."; };
  addEventListener("pagehide", () => events.close());
}

// Manifests that are dropped in

for (const form of document.querySelectorAll("form.drop")) {
  const field = form.querySelector("textarea");
  form.addEventListener("dragover", (event) => { event.preventDefault(); field.classList.add("over"); });
  form.addEventListener("dragleave", () => field.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    field.classList.remove("over");
    const texts = await Promise.all([...event.dataTransfer.files].map((file) => file.text()));
    if (texts.length) field.value = texts.join("\n---\n");
  });
  form.addEventListener("submit", () => { form.querySelector("button").textContent = "Asking…"; });
}
