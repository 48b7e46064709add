(() => {
  const cards = [...document.querySelectorAll(".card")];
  const form = document.getElementById("filters");
  const theme = document.getElementById("theme");
  const search = document.getElementById("search");
  const told = document.getElementById("edits")?.dataset.edits;
  const edits = told ? JSON.parse(told) : { files: [], hunks: [], fixes: [] };
  const seen = () => cards.filter((card) => !card.hidden);
  const element = (tag, properties) => Object.assign(document.createElement(tag), properties);

  // Where storage is refused, as for some pages opened from a disk, what is chosen holds for this visit.
  const kept = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch {}
    return null;
  };

  // ------------------------------------------------------------------------------------------------- what is shown

  const texts = new Map();
  const holds = (card, words) => {
    if (!texts.has(card)) texts.set(card, `${card.dataset.path} ${card.textContent}`.toLowerCase());
    return words.every((word) => texts.get(card).includes(word));
  };
  // Without script a style sheet does this, which costs a browser a moment at every change of the focus.
  const filter = () => {
    const wanted = [...form.querySelectorAll("select")].filter((one) => one.value);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const fits = wanted.every((one) => card.dataset[one.id.slice(3)].split(" ").includes(one.value));
      card.hidden = !(fits && (words.length === 0 || holds(card, words)));
      shown += !card.hidden;
    }
    document.getElementById("count").textContent = `${shown} of ${cards.length} shown`;
    document.getElementById("none").hidden = shown > 0 || cards.length === 0;
  };
  const current = () => document.activeElement?.closest(".card");
  const go = (card) => {
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "start" });
  };
  const step = (by) => {
    const list = seen();
    const at = list.indexOf(current());
    const middle = list.findIndex((card) => card.getBoundingClientRect().bottom > 80);
    const next = at < 0 ? (by > 0 ? middle : middle - 1) : at + by;
    const card = list[Math.min(Math.max(next, 0), list.length - 1)];
    if (card) go(card);
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
    if (target.classList.contains("card")) fold(target, false);
    target.scrollIntoView({ block: "start" });
  };

  // ------------------------------------------------------------------------------------------------- answers

  // What was answered belongs to this very page: another run has other changes under the same names.
  const mark = [...(told || cards.map((card) => card.id).join())].reduce((sum, one) => (sum * 31 + one.codePointAt(0)) | 0, 7);
  const name = `codemod-review-${(mark >>> 0).toString(36)}`;
  const state = { answers: {}, viewed: {}, ...JSON.parse(kept(name) || "{}") };
  const byCard = new Map();
  edits.fixes.forEach((fix, number) => {
    for (const id of fix.cards) byCard.set(id, [...(byCard.get(id) || []), number]);
  });
  const fold = (card, folded) => {
    card.classList.toggle("folded", folded);
    card.querySelector(".fold")?.setAttribute("aria-expanded", String(!folded));
  };
  const show = (card) => {
    const own = (byCard.get(card.id) || []).map((number) => state.answers[number]);
    const all = (answer) => own.length > 0 && own.every((one) => one === answer);
    card.classList.toggle("accepted", all("a"));
    card.classList.toggle("declined", all("x"));
    for (const button of card.querySelectorAll(".accept, .leave")) {
      const answer = button.classList.contains("accept") ? "a" : "x";
      const pressed = button.dataset.fix ? state.answers[button.dataset.fix] === answer : all(answer);
      button.setAttribute("aria-pressed", String(pressed));
    }
  };
  const save = () => kept(name, JSON.stringify(state));
  const fixesOf = (chosen) => [...new Set(chosen.flatMap((card) => byCard.get(card.id) || []))];
  const answer = (numbers, value) => {
    const touched = new Set();
    for (const number of numbers) {
      if (value) state.answers[number] = value;
      else delete state.answers[number];
      for (const id of edits.fixes[number].cards) touched.add(document.getElementById(id));
    }
    for (const card of touched) show(card);
    save();
    tell();
  };
  // The same answer once more takes it back.
  const turn = (numbers, value) => answer(numbers, numbers.every((one) => state.answers[one] === value) ? "" : value);
  const view = (card, viewed) => {
    if (viewed) state.viewed[card.id] = 1;
    else delete state.viewed[card.id];
    card.querySelector(".viewed").checked = viewed;
    fold(card, viewed);
    save();
  };
  const controls = (card) => {
    const acts = element("div", { className: "acts" });
    if (byCard.has(card.id)) {
      acts.append(
        element("button", { type: "button", className: "accept", textContent: "accept" }),
        element("button", { type: "button", className: "leave", textContent: "leave" }),
      );
    }
    if (byCard.get(card.id)?.length > 1) {
      for (const part of card.querySelectorAll(".part")) {
        const number = byCard.get(card.id).find((one) => edits.fixes[one].changes.includes(part.dataset.change));
        if (number === undefined) continue;
        const own = element("span", { className: "acts" });
        for (const word of ["accept", "leave"]) {
          const button = element("button", { type: "button", className: `${word} one`, textContent: word });
          button.setAttribute("aria-label", `${word} ${part.dataset.change}`);
          button.dataset.fix = number;
          own.append(button);
        }
        part.querySelector("h4").append(own);
      }
    }
    const label = element("label", { textContent: " viewed" });
    label.prepend(element("input", { type: "checkbox", className: "viewed", checked: card.id in state.viewed }));
    const button = element("button", { type: "button", className: "fold", textContent: "fold" });
    acts.append(label, button);
    for (const one of acts.querySelectorAll("button")) one.setAttribute("aria-label", `${one.textContent} ${card.querySelector("h3").textContent}`);
    card.prepend(acts);
    fold(card, card.id in state.viewed);
    show(card);
  };

  // ------------------------------------------------------------------------------------------------- what is accepted

  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  let address = "";
  let writing = 0;
  const tell = () => {
    if (!told) return;
    const chosen = edits.fixes.filter((_, number) => state.answers[number] === "a");
    const answered = Object.keys(state.answers).length;
    const rest = `${answered} of ${edits.fixes.length} answered`;
    document.getElementById("decided").textContent = chosen.length ? `${chosen.length} (${rest})` : answered ? `none (${rest})` : "none yet";
    // A long patch takes a moment to be shown: not at each of many answers.
    clearTimeout(writing);
    writing = setTimeout(() => write(chosen), 300);
  };
  const write = (chosen) => {
    if (!document.getElementById("taken").open) return;
    const unfit = chosen.filter((fix) => !fix.hunks).length;
    const note = document.getElementById("unfit");
    note.hidden = unfit === 0;
    note.textContent = `${unfit} of them cannot be in the patch: they are in notebooks, or in files that are not UTF-8. The command makes them too.`;
    const patch = unified(edits, chosen.flatMap((fix) => fix.hunks || []));
    const places = [...new Set(chosen.flatMap((fix) => fix.at))];
    document.getElementById("patch").value = patch;
    const all = chosen.length === edits.fixes.length;
    document.getElementById("command").value = places.length
      ? [edits.command, ...(all ? [] : places.map((place) => `--at ${quoted(place)}`))].join(" ")
      : "";
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(new Blob([patch], { type: "text/x-diff" }));
    document.getElementById("save").href = patch ? address : "#taken";
  };

  // ------------------------------------------------------------------------------------------------- what is done

  cards.forEach(controls);
  document.querySelectorAll(".scripted").forEach((one) => (one.hidden = false));
  tell();
  if (form) {
    let timer = 0;
    form.addEventListener("change", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(filter));
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(filter, 120);
    });
    // The bar stays at the top, with as many rows as its filters take: what is gone to stands below it.
    new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${form.offsetHeight}px`)).observe(form);
    form.querySelector(".keys").hidden = cards.length < 2;
    filter();
  }
  document.addEventListener("click", (event) => {
    const one = event.target;
    const card = one.closest?.(".card");
    if (one.id === "take-all") answer(fixesOf(seen()), "a");
    else if (one.id === "leave-all") answer(fixesOf(seen()), "x");
    else if (one.id === "forget") answer(fixesOf(cards), "");
    else if (!card) return;
    else if (one.matches(".accept, .leave")) {
      turn(one.dataset.fix ? [Number(one.dataset.fix)] : fixesOf([card]), one.matches(".accept") ? "a" : "x");
    }
    else if (one.classList.contains("viewed")) view(card, one.checked);
    else if (one.classList.contains("fold")) fold(card, !card.classList.contains("folded"));
  });
  document.getElementById("taken")?.addEventListener("toggle", tell);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target === search) search.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input:not(.viewed), select, textarea")) return;
    const card = current();
    const does = {
      j: () => step(1),
      k: () => step(-1),
      "/": () => search?.focus(),
      a: () => card && (turn(fixesOf([card]), "a"), step(1)),
      x: () => card && (turn(fixesOf([card]), "x"), step(1)),
      v: () => card && view(card, !(card.id in state.viewed)),
      o: () => card && fold(card, !card.classList.contains("folded")),
    }[event.key];
    if (does) {
      event.preventDefault();
      does();
    }
  });
  addEventListener("hashchange", follow);
  if (location.hash) follow();
  addEventListener("beforeprint", () => document.querySelectorAll("details:not(.taken)").forEach((one) => (one.open = true)));

  theme.value = kept("codemod-colours") || "auto";
  theme.addEventListener("change", () => kept("codemod-colours", theme.value));
})();
