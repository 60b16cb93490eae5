// Keeps an open page up to date. The server says over an event stream that jobs have changed; the script then asks for
// this very page again and exchanges the elements that say something new. What a person is busy with stays as it is.
"use strict";

(() => {
  const body = document.body;
  const address = body.dataset.liveUrl;
  const toggle = document.getElementById("live");
  if (!address || !toggle || !window.EventSource || !window.DOMParser) return;

  const main = document.getElementById("content");
  const pace = Number(main.dataset.livePace) || 500; // least milliseconds between two looks
  const SLOW = 10000; // workers and clocks make no events: look at least this often
  const language = document.documentElement.lang;
  let cursor = body.dataset.cursor;
  let source = null;
  let looking = false;
  let again = false;
  let lookedAt = Date.now();
  let timer = 0;
  let paused = read("jobbko.paused") === "1";

  function read(key) {
    try { return window.sessionStorage.getItem(key); } catch { return null; }
  }

  function write(key, value) {
    try { window.sessionStorage.setItem(key, value); } catch { /* a page without storage forgets */ }
  }

  // ---- what a person is busy with

  function isHeld(element) {
    const active = document.activeElement;
    if (active && active !== body && element.contains(active)) return true;
    if (element.matches("details[open]") || element.querySelector("details[open]")) return true;
    for (const field of element.querySelectorAll("input, textarea, select")) {
      if (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
        : field.tagName !== "SELECT" && field.value !== field.defaultValue) return true;
    }
    for (const media of element.querySelectorAll("audio, video")) if (!media.paused) return true;
    const chosen = document.getSelection();
    return Boolean(chosen && !chosen.isCollapsed && chosen.containsNode(element, true));
  }

  // ---- exchanging what has changed

  let isStale = false; // something was held back: look again as soon as a person lets go

  function keep(element) {
    const held = isHeld(element);
    isStale = isStale || held;
    return held;
  }

  function exchange(fresh) {
    isStale = false;
    for (const list of document.querySelectorAll("[data-live-list]")) {
      const other = fresh.getElementById(list.id);
      if (other) exchangeList(list, other);
    }
    for (const old of document.querySelectorAll("[data-live]")) {
      if (old.parentElement.closest("[data-live], [data-live-list]")) continue;
      const other = fresh.getElementById(old.id);
      if (other && !old.isEqualNode(other) && !keep(old)) old.replaceWith(document.importNode(other, true));
    }
    for (const other of fresh.querySelectorAll("[data-live]")) bringIn(other, fresh);
  }

  // An element that was not there before goes where it stands in the new page, behind its neighbour.
  function bringIn(other, fresh) {
    if (!other.id || document.getElementById(other.id) || other.parentElement.closest("[data-live], [data-live-list]")) return;
    const before = other.previousElementSibling;
    const place = before && before.id && document.getElementById(before.id);
    if (place) place.after(document.importNode(other, true));
  }

  // Rows by id, in the new order. A row that is held is never moved: that would take its focus away.
  function exchangeList(list, other) {
    let place = list.firstElementChild;
    for (const wanted of other.children) {
      const old = wanted.id ? document.getElementById(wanted.id) : null;
      if (old && old.parentElement === list && keep(old)) {
        while (place && place !== old && !isHeld(place)) place = drop(place);
        if (place === old) place = place.nextElementSibling;
        continue;
      }
      const row = old && old.parentElement === list && old.isEqualNode(wanted) ? old : document.importNode(wanted, true);
      if (row === place) { place = place.nextElementSibling; continue; }
      if (old && old !== row && old.parentElement === list) { if (old === place) place = place.nextElementSibling; old.remove(); }
      list.insertBefore(row, place);
    }
    while (place) place = isHeld(place) ? place.nextElementSibling : drop(place);
  }

  function drop(element) {
    const next = element.nextElementSibling;
    element.remove();
    return next;
  }

  // ---- looking again

  function soon() {
    again = true;
    if (looking || timer) return;
    timer = window.setTimeout(look, Math.max(0, lookedAt + pace - Date.now()));
  }

  async function look() {
    timer = 0;
    again = false;
    looking = true;
    try {
      const answer = await fetch(window.location.href, { headers: { "X-Live": "1" }, cache: "no-store" });
      if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname.endsWith("/login"))) return end();
      if (answer.ok && !answer.redirected) exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server is away: the stream comes back by itself, and then we look again */ }
    finally {
      looking = false;
      lookedAt = Date.now();
    }
    if (again && source) soon();
  }

  function concerns(jobs) {
    const own = main.dataset.job;
    return !own || jobs.some((job) => job.id === own);
  }

  function show(job) {
    for (const element of document.querySelectorAll(`[data-progress="${job.id}"]`)) {
      const bar = element.querySelector("progress");
      const say = (part, text) => {
        const place = element.querySelector(`[data-part="${part}"]`);
        if (place && place.textContent !== text) place.textContent = text;
      };
      bar.hidden = job.progress === null;
      if (job.progress !== null) bar.value = job.progress;
      say("share", job.progress === null ? "" : `${Math.round(job.progress * 100)}\u202f%`);
      say("text", job.text[language] || job.text.en);
      say("note", job.note);
      say("left", job.left[language] || job.left.en);
    }
  }

  // ---- the stream: one for each tab that can be seen

  function open() {
    if (source || paused || document.hidden) return;
    source = new EventSource(`${address}?after=${encodeURIComponent(cursor)}`);
    source.addEventListener("open", () => tell("on"));
    source.addEventListener("job", (event) => { if (concerns(JSON.parse(event.data))) soon(); });
    source.addEventListener("progress", (event) => JSON.parse(event.data).forEach(show));
    source.addEventListener("reset", soon);
    source.addEventListener("cursor", (event) => { cursor = event.lastEventId; });
    source.addEventListener("error", () => {
      tell("lost");
      if (source && source.readyState === EventSource.CLOSED) { // refused: too many streams, or no session any more
        close();
        window.setTimeout(() => { open(); soon(); }, 15000);
      }
    });
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  function end() {
    close();
    window.location.reload();
  }

  function tell(state) {
    toggle.textContent = toggle.dataset[state];
    toggle.dataset.state = state;
    toggle.setAttribute("aria-pressed", String(!paused));
  }

  toggle.hidden = false;
  tell(paused ? "off" : "lost");
  toggle.addEventListener("click", () => {
    paused = !paused;
    write("jobbko.paused", paused ? "1" : "0");
    if (paused) close(); else { open(); soon(); }
    tell(paused ? "off" : "lost");
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (!paused) { open(); soon(); }
  });
  for (const kind of ["focusout", "toggle", "selectionchange", "change", "pause"]) {
    document.addEventListener(kind, () => { if (isStale && source) soon(); }, true);
  }
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted && !paused) { open(); soon(); } });
  window.setInterval(() => { if (source && Date.now() - lookedAt >= SLOW) soon(); }, 1000);
  open();
})();
