// A transcript and its audio: a line that is clicked, or whose time is chosen by Enter, is played and marked.
// Without this script a time leads to the audio itself, at that place.
"use strict";

(() => {
  const audio = document.getElementById("audio");
  const list = document.getElementById("lines");
  if (!audio || !list) return;
  const lines = [...list.children].map((element) => ({
    element, start: Number(element.dataset.start), end: Number(element.dataset.end),
  }));
  let current = null;

  function seek(seconds, plays) {
    const go = () => {
      audio.currentTime = seconds;
      mark();
      if (plays) audio.play().catch(() => { /* the browser wants another click first: the controls are there */ });
    };
    if (audio.readyState >= 1) go();
    else { audio.addEventListener("loadedmetadata", go, { once: true }); audio.load(); }
  }

  // The last line that has begun; lines are sorted by their start.
  function lineAt(seconds) {
    let low = 0, high = lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lines[middle].start <= seconds + 0.01) low = middle + 1; else high = middle;
    }
    const found = lines[low - 1];
    return found && seconds < found.end + 1 ? found.element : null;
  }

  function mark() {
    const found = lineAt(audio.currentTime);
    if (found === current) return;
    if (current) current.removeAttribute("aria-current");
    if (found) {
      found.setAttribute("aria-current", "true");
      if (!audio.paused && !list.contains(document.activeElement)) found.scrollIntoView({ block: "nearest" });
    }
    current = found;
  }

  list.addEventListener("click", (event) => {
    const line = event.target.closest("li");
    const isSelecting = event.detail > 1 || !document.getSelection().isCollapsed;
    if (!line || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("a.seek")) event.preventDefault();
    else if (isSelecting) return; // words are marked, to be copied
    seek(Number(line.dataset.start), true);
  });
  audio.addEventListener("timeupdate", mark);
  audio.addEventListener("seeked", mark);
  const asked = /^#t=([0-9.]+)$/.exec(window.location.hash);
  if (asked) {
    seek(Number(asked[1]), false);
    const line = lineAt(Number(asked[1]));
    if (line) line.scrollIntoView({ block: "center" });
  }
})();
