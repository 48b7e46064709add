"use strict";
(() => {
  const cards = [...document.querySelectorAll(".card")];
  const form = document.getElementById("filters");
  const theme = document.getElementById("theme");
  const seen = () => cards.filter((card) => !card.hidden && card.getClientRects().length > 0);

  // Without script a style sheet does this, which costs a browser a moment at every change of the focus.
  const filter = () => {
    const wanted = [...form.querySelectorAll("select")].filter((one) => one.value);
    let shown = 0;
    for (const card of cards) {
      card.hidden = !wanted.every((one) => card.dataset[one.id.slice(3)].split(" ").includes(one.value));
      shown += !card.hidden;
    }
    document.getElementById("count").textContent = `${shown} of ${cards.length} shown`;
    document.getElementById("none").hidden = shown > 0 || cards.length === 0;
  };
  const step = (by) => {
    const list = seen();
    const at = list.indexOf(document.activeElement?.closest(".card"));
    const middle = list.findIndex((card) => card.getBoundingClientRect().bottom > 80);
    const next = at < 0 ? (by > 0 ? middle : middle - 1) : at + by;
    const card = list[Math.min(Math.max(next, 0), list.length - 1)];
    if (card) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "start" });
    }
  };
  // A link to something that a filter hides, or that is folded, shows it.
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden && form) {
      form.reset();
      filter();
    }
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
  };

  if (form) {
    form.addEventListener("change", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.querySelector(".keys").hidden = cards.length < 2;
    filter();
  }
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      step(event.key === "j" ? 1 : -1);
    }
  });
  addEventListener("hashchange", follow);
  if (location.hash) follow();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));

  // Where storage is refused, as for some pages opened from a disk, the choice holds for this visit.
  try {
    theme.value = localStorage.getItem("codemod-colours") || "auto";
    theme.addEventListener("change", () => localStorage.setItem("codemod-colours", theme.value));
  } catch {}
})();
