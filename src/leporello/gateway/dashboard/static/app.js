// The dashboard's script: opens parts of a page in place, keeps it up to date, and listens to a few keys.
// Without it every link still leads to a page that shows the same.
"use strict";

const PART = { "X-Leporello-Part": "1" };
const MOST_ROWS = 200;
const $ = (query, within = document) => within.querySelector(query);
const $$ = (query, within = document) => [...within.querySelectorAll(query)];

async function part(address, options = {}) {
  const reply = await fetch(address, { headers: PART, credentials: "same-origin", ...options });
  if (reply.status === 401) location.reload();
  return { ok: reply.ok, html: await reply.text() };
}

function parsed(html) {
  const box = document.createElement("template");
  box.innerHTML = html; // Ours, and escaped on the server; the page's policy runs no script that is not a file of ours.
  return box.content;
}

// -- words from below

let silence = 0;
function say(content) {
  const place = $("#notices");
  place.replaceChildren(...(content instanceof Node ? content.childNodes : [content]));
  clearTimeout(silence);
  silence = setTimeout(() => place.replaceChildren(), 12000);
}

// -- times in the reader's own zone

const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const yearly = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
function localise(within) {
  const now = new Date();
  for (const time of $$("time[datetime]", within)) {
    const moment = new Date(time.dateTime);
    if (isNaN(moment)) continue;
    const format = moment.toDateString() === now.toDateString() ? today : moment.getFullYear() === now.getFullYear() ? dated : yearly;
    time.title = moment.toLocaleString();
    time.textContent = format.format(moment);
  }
}

// -- opening

async function open(row) {
  if (row.dataset.src === undefined || row.dataset.state) return;
  row.dataset.state = "loading";
  row.setAttribute("aria-busy", "true");
  const body = $(":scope > .body", row);
  try {
    const { ok, html } = await part(row.dataset.src);
    body.replaceChildren(parsed(html));
    row.dataset.state = ok ? "loaded" : "";
    prepare(body);
    const list = $(".msgs", body);
    if (list && row.dataset.end !== undefined) list.scrollTop = list.scrollHeight;
  } catch {
    row.dataset.state = "";
    body.textContent = "This could not be loaded. Close it and open it again.";
  }
  row.removeAttribute("aria-busy");
}

// -- following: whoever reads the end goes on seeing the end, whoever reads elsewhere is not moved

// What the reader sees of a list: its end, or else the first row in sight and how far below the edge it stands.
function placeIn(list) {
  const rows = $$(":scope > .msg", list);
  const box = list.getBoundingClientRect();
  const top = Math.max(box.top, 0);
  const end = rows.at(-1)?.getBoundingClientRect().bottom ?? 0;
  const atEnd = !$(":scope > .more.down", list) && end <= Math.min(box.bottom, innerHeight) + 40 && end > top;
  const inList = scrolls(list) ? !$(":scope > .more.down", list) && list.scrollHeight - list.scrollTop - list.clientHeight < 40 : atEnd;
  const first = rows.find((row) => row.getBoundingClientRect().bottom > top);
  return { atEnd, inList, number: first?.dataset.number, below: first ? first.getBoundingClientRect().top : 0 };
}

function scrolls(list) {
  return list.scrollHeight > list.clientHeight + 1 && list.classList.contains("many");
}

function putBack(list, place) {
  if (place.inList) list.scrollTop = list.scrollHeight;
  if (place.atEnd) $$(":scope > .msg", list).at(-1)?.scrollIntoView({ block: "nearest" });
  if (place.inList || place.atEnd) return;
  const row = $(`:scope > .msg[data-number="${CSS.escape(place.number ?? "")}"]`, list);
  if (!row) return;
  const moved = row.getBoundingClientRect().top - place.below;
  if (scrolls(list)) list.scrollTop += moved; else scrollBy(0, moved);
}

// An open list of messages after something happened: the same view only grew at its end, another view is drawn anew.
async function update(row, sameView) {
  const body = $(":scope > .body", row);
  const list = $(".msgs", body);
  if (!list || row.dataset.state === "loading") { delete row.dataset.state; return open(row); }
  row.setAttribute("aria-busy", "true");
  try {
    let { ok, html } = await part(row.dataset.src);
    if (!ok) return;
    let place = placeIn(list);
    let fresh = parsed(html);
    if (sameView && grow(list, fresh, new URL(row.dataset.src, location.href).searchParams.get("last"), place)) { putBack(list, place); return; }
    if (!place.inList && !place.atEnd && place.number && !$(`.msg[data-number="${CSS.escape(place.number)}"]`, fresh)) {
      // What the reader looks at is not among the newest rows: fetch the rows around it instead.
      const address = new URL(row.dataset.src, location.href);
      address.searchParams.set("from", Math.max(1, Math.floor(Number(place.number)) - 8));
      ({ ok, html } = await part(address));
      if (!ok) return;
      place = placeIn(list);
      fresh = parsed(html);
    }
    body.replaceChildren(fresh);
    prepare(body);
    const made = $(".msgs", body);
    if (made) putBack(made, place);
  } finally { row.removeAttribute("aria-busy"); }
}

// New rows go to the end, rows that changed are exchanged, everything else stays where it is.
function grow(list, part, last, place) {
  const fresh = $(".msgs", part);
  const [jump, newJump] = [$(".jump", list.parentElement), $(".jump", part)];
  if (!fresh || list.classList.contains("many") !== fresh.classList.contains("many") || !jump !== !newJump) return false;
  const rows = $$(":scope > .msg", fresh);
  jump?.replaceWith(newJump);
  for (const link of $$(":scope > .more", list)) {
    const address = new URL(link.href);
    address.searchParams.set("last", last);
    link.href = address;
  }
  const known = new Map($$(":scope > .msg", list).map((row) => [row.dataset.number, row]));
  const newest = $$(":scope > .msg", list).at(-1);
  const complete = !$(":scope > .more.down", list);
  // Between what is here and what is new there must be no gap.
  if (complete && newest && !rows.some((row) => Number(row.dataset.number) <= Number(newest.dataset.number))) return false;
  for (const row of rows) {
    const old = known.get(row.dataset.number);
    if (old && old.dataset.version !== row.dataset.version) { old.replaceWith(row); prepare(row); }
    else if (!old && complete && (!newest || Number(row.dataset.number) > Number(newest.dataset.number))) { list.append(row); prepare(row); }
  }
  if (complete) thin(list, place.inList || place.atEnd);
  watch(list);
  return true;
}

async function load(place) {
  const { html } = await part(place.dataset.load);
  place.replaceChildren(parsed(html));
  prepare(place);
}

// More rows of a window of messages; those far away go, and are fetched again when one comes back.
const nearing = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) more(entry.target);
}, { rootMargin: "300px" });

async function more(link) {
  if (link.dataset.state) return;
  link.dataset.state = "loading";
  nearing.unobserve(link);
  const list = link.parentElement;
  const down = link.classList.contains("down");
  const { ok, html } = await part(link.href);
  if (!ok || !list.isConnected) { link.dataset.state = ""; return; }
  const fresh = parsed(html);
  const known = new Set($$(".msg", list).map((row) => row.dataset.number));
  const rows = $$(".msg", fresh).filter((row) => !known.has(row.dataset.number));
  const next = $(down ? ".more.down" : ".more.up", fresh);
  const before = list.scrollHeight - list.scrollTop;
  if (down) link.before(...rows); else link.after(...rows);
  link.remove();
  if (next) { if (down) list.append(next); else list.prepend(next); }
  if (!down) list.scrollTop = list.scrollHeight - before;
  thin(list, down);
  for (const row of rows) prepare(row);
  watch(list);
}

function thin(list, fromTop) {
  const rows = $$(".msg", list);
  if (rows.length <= MOST_ROWS) return;
  const gone = fromTop ? rows.slice(0, rows.length - MOST_ROWS) : rows.slice(MOST_ROWS);
  const height = list.scrollHeight;
  let link = $(fromTop ? ".more.up" : ".more.down", list);
  if (!link) {
    link = document.createElement("a");
    link.className = fromTop ? "more up" : "more down";
    if (fromTop) list.prepend(link); else list.append(link);
  }
  const address = new URL($(".jump", list.parentElement)?.action ?? $(".more", list).href);
  const span = $(".jump", list.parentElement);
  if (span) { address.searchParams.set("first", span.elements.first.value); address.searchParams.set("last", span.elements.last.value); }
  const edge = Number((fromTop ? gone.at(-1) : gone[0]).dataset.number);
  const start = fromTop ? Math.max(1, edge - 39) : edge;
  address.searchParams.set("from", start);
  link.href = address;
  link.textContent = fromTop ? `Earlier: from m${start}` : `Later: from m${start}`;
  for (const row of gone) row.remove();
  if (fromTop) list.scrollTop -= height - list.scrollHeight;
}

function watch(list) {
  for (const link of $$(":scope > .more", list)) if (list.classList.contains("many")) nearing.observe(link);
}

function prepare(within) {
  localise(within);
  for (const list of within.matches?.(".msgs") ? [within] : $$(".msgs", within)) watch(list);
  for (const place of $$("[data-load]", within)) load(place);
  for (const row of $$("details[open][data-src]", within)) open(row);
}

document.addEventListener("toggle", (event) => {
  const row = event.target;
  if (row.matches?.("details[data-src]") && row.open) open(row);
}, true);

function unfold(key) {
  const row = $(`details[data-key="${CSS.escape(key)}"]`);
  if (!row) return false;
  row.open = true;
  row.scrollIntoView({ block: "nearest" });
  $("summary", row).focus();
  return true;
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a, button");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.dataset.goto !== undefined) {
    if (unfold(link.dataset.goto)) event.preventDefault();
  } else if (link.dataset.peek !== undefined) {
    event.preventDefault();
    const { html } = await part(link.href);
    const body = $("#peek .peek-body");
    body.replaceChildren(parsed(html));
    prepare(body);
    if (!$("#peek").open) $("#peek").showModal();
  } else if (link.classList.contains("rest-of")) {
    event.preventDefault();
    if (link.dataset.state) return;
    link.dataset.state = "loading";
    const { ok, html } = await part(link.href);
    if (ok) link.replaceWith(parsed(html)); else link.dataset.state = "";
  } else if (link.classList.contains("more") && link.closest(".msgs")) {
    event.preventDefault();
    more(link);
  } else if (link.dataset.dialog !== undefined) {
    $(`#${link.dataset.dialog}`).showModal();
  } else if (link.dataset.close !== undefined) {
    link.closest("dialog").close();
  } else if (link.id === "help") {
    $("#keys").showModal();
  } else if (link.id === "theme") {
    turn();
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.matches(".jump")) {
    event.preventDefault();
    const address = new URL(form.action);
    address.search = new URLSearchParams(new FormData(form));
    const { ok, html } = await part(address);
    const place = form.closest(".window");
    if (ok) { const fresh = parsed(html); const made = $(".window", fresh); place.replaceWith(made); prepare(made); }
  } else if (form.dataset.act !== undefined) {
    event.preventDefault();
    const button = $("button:not([data-close])", form);
    if (button.disabled) return;
    button.disabled = true;
    form.setAttribute("aria-busy", "true");
    try {
      const reply = await part(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      say(parsed(reply.html));
      const dialog = form.closest("dialog");
      if (dialog?.id !== "peek") dialog?.close();
      if (form.closest(".msg")) await redraw(form.closest(".msg"));
      await refresh();
    } catch {
      say("The server can't be reached.");
    }
    button.disabled = false;
    form.removeAttribute("aria-busy");
  }
});

// A row whose pin was set or taken off; a button that was just used keeps the focus.
async function redraw(row) {
  const address = $(".no", row).getAttribute("href");
  const seen = row.dataset.place ? address.replace(/\/m\/(\d+)$/, "/shown?first=$1&last=$1") : `${address}?alone=1`;
  const { ok, html } = await part(seen);
  const fresh = ok && $(".msg", parsed(html));
  if (!fresh) return;
  row.replaceWith(fresh);
  prepare(fresh);
  $("form button", fresh)?.focus({ preventScroll: true });
}

// -- light and dark

function turn() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("leporello-theme", root.dataset.theme); } catch { /* It holds for this page. */ }
}

// -- keys

function walk(step) {
  const items = $$(".item").filter((item) => item.offsetParent !== null);
  const place = items.indexOf(document.activeElement?.closest?.(".item"));
  const next = items[place < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, place + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function escape() {
  const active = document.activeElement;
  if (active?.matches("input, textarea")) { active.blur(); return; }
  const row = active?.closest?.("details[open]");
  if (row) { row.open = false; $("summary", row).focus(); return; }
  $("#notices").replaceChildren();
}

const KEYS = {
  "/": () => $("#find")?.focus(),
  "?": () => $("#keys").showModal(),
  j: () => walk(1),
  k: () => walk(-1),
  ArrowDown: () => walk(1),
  ArrowUp: () => walk(-1),
  t: turn,
  u: () => { location.href = "/"; },
  c: () => $("#compress")?.showModal(),
  Escape: escape,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("dialog[open]")) return;
  const typing = event.target.matches("input, textarea, select");
  if (typing && event.key !== "Escape") return;
  // Arrows scroll, except from line to line of a list.
  if (event.key.startsWith("Arrow") && !event.target.matches(".item")) {
    const seg = event.target.closest?.("a.seg");
    if (!seg || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const all = $$("a.seg", seg.closest("svg"));
    all[all.indexOf(seg) + (event.key === "ArrowRight" ? 1 : -1)]?.focus();
    event.preventDefault();
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// -- live

const main = $("#main");
const drawn = new Map();
let stream = null;
let polling = 0;
let failures = 0;
let busy = false;
let again = false;

function remember() {
  for (const place of $$("[data-key]", main)) if (!place.closest("details")) drawn.set(place.dataset.key, place.outerHTML);
}

// Replace what changed; rows that stand open and are still there stay where they are, so that nothing in them moves.
function exchange(old, fresh) {
  const kept = $$(":scope > details[data-key][open]", old).filter((row) => $(`:scope > details[data-key="${CSS.escape(row.dataset.key)}"]`, fresh));
  if (kept.length) patch(old, fresh, kept);
  else {
    const focused = document.activeElement?.closest?.("[href], button");
    const again = focused && old.contains(focused) && focused.getAttribute("href");
    old.replaceWith(fresh);
    if (again) $(`[href="${CSS.escape(again)}"]`, fresh)?.focus();
    prepare(fresh);
    if (fresh.dataset.load) load(fresh);
  }
  follow(following);
}

function patch(old, fresh, kept) {
  for (const child of [...old.children]) if (!kept.includes(child)) child.remove();
  let next = old.firstElementChild;
  for (const child of [...fresh.children]) {
    const same = kept.find((row) => row.dataset.key === child.dataset.key);
    if (!same) { old.insertBefore(child, next); prepare(child); if (child.open) open(child); continue; }
    if (same !== next) old.insertBefore(same, next);
    next = same.nextElementSibling;
    $(":scope > summary", same).replaceChildren(...$(":scope > summary", child).childNodes);
    const sameView = same.dataset.generation === child.dataset.generation;
    if (same.dataset.src === child.dataset.src && sameView) continue;
    same.dataset.src = child.dataset.src;
    if (child.dataset.generation) same.dataset.generation = child.dataset.generation;
    update(same, sameView);
  }
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    do {
      again = false;
      const { ok, html } = await part(location.href);
      if (!ok) return;
      const fresh = parsed(html);
      const places = $$("[data-key]", fresh).filter((place) => !place.closest("details") && !place.parentElement?.closest("[data-key]"));
      for (const place of places) {
        const key = place.dataset.key;
        const old = $$(`[data-key="${CSS.escape(key)}"]`, main).find((one) => !one.closest("details"));
        if (!old) { main.append(place); continue; }
        const changed = drawn.get(key) !== place.outerHTML;
        drawn.set(key, place.outerHTML);
        if (key === "compress") continue;
        if (place.dataset.load && old.dataset.load) load(old);
        else if (changed) exchange(old, place);
      }
      if ($("[data-stamp]", main)) main.dataset.stamp = $("[data-stamp]", main).dataset.stamp;
    } while (again);
  } finally { busy = false; }
  goOn();
}

// A page that says it is not complete yet is asked for again.
function goOn() {
  if ($("[data-again]", main)) setTimeout(refresh, 1500);
}

function heard(stamp) {
  if (stamp === main.dataset.stamp) return;
  main.dataset.stamp = stamp;
  refresh();
}

function listen() {
  if (!main.dataset.live || stream || document.hidden) return;
  stream = new EventSource(`${main.dataset.live}?seen=${encodeURIComponent(main.dataset.stamp)}`);
  stream.onopen = () => { failures = 0; follow(true); };
  stream.onmessage = (event) => heard(JSON.parse(event.data).stamp);
  stream.onerror = () => {
    // A stream that ends is opened again by the browser; one that never opens is given up.
    failures += 1;
    if (stream?.readyState === EventSource.CLOSED || failures >= 3) { hush(); poll(); }
  };
}

let following = false;
function follow(now) {
  following = now;
  const sign = $(".live", main);
  if (sign) sign.hidden = !now;
}

function hush() {
  stream?.close();
  stream = null;
}

// Where streams do not get through.
async function poll() {
  if (document.hidden || stream) return;
  try {
    const reply = await fetch(`${main.dataset.live}?once`, { credentials: "same-origin" });
    follow(reply.ok);
    if (reply.ok) heard((await reply.json()).stamp);
  } catch { follow(false); }
  polling = setTimeout(poll, 2500);
}

// A hidden page holds no connection: browsers have few of them for one server.
document.addEventListener("visibilitychange", () => {
  clearTimeout(polling);
  if (document.hidden) hush(); else listen();
});
addEventListener("pagehide", hush);

remember();
goOn();
prepare(document);
listen();
if (location.hash.startsWith("#m")) $(location.hash)?.scrollIntoView({ block: "center" });
$(".msg.wanted")?.scrollIntoView({ block: "center" });
