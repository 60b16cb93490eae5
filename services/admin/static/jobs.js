// The list of jobs: one box ticks them all. Without this script each is ticked by hand.
"use strict";

(() => {
  const all = document.getElementById("tick-all");
  if (!all) return;
  const boxes = () => [...document.querySelectorAll('input[name="job"]')];
  all.hidden = false;
  all.addEventListener("change", () => { for (const box of boxes()) box.checked = all.checked; });
  document.addEventListener("change", (event) => {
    if (event.target.name !== "job") return;
    const ticked = boxes().filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && ticked < boxes().length;
  });
})();
