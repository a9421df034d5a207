// The timeline as a whole: labels, keys, buttons, and what is said of it.

const ZOOM = 1.5;
const PAN = 0.15; // of what is in sight

function startTimeline(data) {
  const view = new View(data);
  const picture = new Picture(view, byId("timeline-ruler"), byId("timeline-canvas"));
  const frame = byId("timeline-picture");
  const scroll = byId("timeline-scroll");
  const stack = byId("timeline-stack");
  const rows = byId("timeline-rows");
  const readout = byId("timeline-readout");
  const details = byId("timeline-details");

  // ---- drawing

  let isDue = false;
  function redraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      picture.draw(scroll.scrollTop);
    });
  }

  function resize() {
    stack.style.height = `${view.height}px`;
    picture.resize(scroll.clientWidth, scroll.clientHeight);
    for (const button of rows.children) button.style.width = `${picture.gutter}px`;
    redraw();
  }

  /** Labels of all lines; the one with the focus alone is in the order of the Tab key. */
  function label() {
    rows.replaceChildren(
      ...view.lines.map((line) => {
        const kind = line.row ? "row" : "group";
        const text = line.row ? line.row.label : line.group.label;
        const button = make("button", { type: "button", className: kind, title: text, tabIndex: -1 }, text);
        button.style.top = `${line.top}px`;
        button.style.height = `${line.height}px`;
        if (!line.row) button.setAttribute("aria-expanded", String(line.group.isOpen));
        button.addEventListener("click", () => (line.row ? chooseRow(line.row) : toggle(line.group)));
        button.addEventListener("focus", () => line.row && chooseRow(line.row));
        return button;
      }),
    );
    markRow();
  }

  function markRow() {
    let at = view.lines.findIndex((line) => line.row && line.row === view.row);
    if (at < 0) at = view.lines.findIndex((line) => line.row);
    [...rows.children].forEach((button, i) => {
      button.tabIndex = i === Math.max(at, 0) ? 0 : -1;
      if (view.row && i === at) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }

  function toggle(group) {
    group.isOpen = !group.isOpen;
    view.layOut();
    label();
    resize();
    const at = view.lines.findIndex((line) => line.group === group && !line.row);
    rows.children[at].focus();
  }

  function say(text) {
    readout.textContent = text;
  }

  // ---- choosing rows and blocks

  function chooseRow(row) {
    if (view.row === row) return;
    view.row = row;
    view.block = -1;
    markRow();
    say(`${row.label} of ${row.group.label}: ${counted(row.count, row.kind === "counter" ? "sample" : NOUNS[row.kind] ?? "range")}`);
    redraw();
  }

  function choose(row, block) {
    view.row = row;
    view.block = block;
    if (!row.group.isOpen) toggle(row.group);
    markRow();
    say(view.describe(row, block));
    const line = view.lineOf(row);
    if (line.top < scroll.scrollTop || line.top + line.height > scroll.scrollTop + scroll.clientHeight) {
      scroll.scrollTop = line.top - scroll.clientHeight / 2;
    }
    redraw();
  }

  function step(by) {
    const row = view.row ?? view.lines.find((line) => line.row && line.row.kind !== "counter")?.row;
    if (!row || row.kind === "counter" || !row.n) return;
    let next = view.block + by;
    if (view.row !== row || view.block < 0) next = Math.max(0, firstAbove(row.start, view.from) - (by < 0 ? 2 : 0));
    next = Math.min(row.n - 1, Math.max(0, next));
    choose(row, next);
    if (row.start[next] < view.from || row.end[next] > view.to) {
      const middle = (row.start[next] + row.end[next]) / 2;
      view.show(middle - view.span / 2, middle + view.span / 2);
    }
  }

  function moveRow(by) {
    const lines = view.lines;
    const focused = [...rows.children].indexOf(document.activeElement);
    const at = Math.min(lines.length - 1, Math.max(0, (focused < 0 ? -1 : focused) + by));
    rows.children[at].focus();
  }

  /** So that keys and the wheel act on the picture. */
  function focusRow(row) {
    rows.children[view.lines.findIndex((line) => line.row === row)]?.focus({ preventScroll: true });
  }

  function tell() {
    const { row, block } = view;
    if (!row || block < 0) return;
    const facts = [
      ["name", view.name(row, block)],
      ["on", `${row.group.label}, ${row.label}`],
      ["what", view.activity(row, block)],
      ["start", `${timeText(row.start[block], 6)}`],
      ["end", `${timeText(row.end[block], 6)}`],
      ["duration", timeText(row.end[block] - row.start[block], 3)],
    ];
    if (row.count[block] > 1) {
      facts[0][0] = "longest";
      facts.push(["holds", `${counted(row.count[block], NOUNS[row.kind] ?? "range")}, ${shareText(row.share[block])} busy`]);
    }
    const list = make("dl", {}, ...facts.flatMap(([term, said]) => [make("dt", {}, term), make("dd", {}, said)]));
    const close = make("button", { type: "button" }, "Close");
    const closer = make("button", { type: "button" }, "Zoom to it");
    close.addEventListener("click", () => (details.hidden = true));
    closer.addEventListener("click", zoomTo);
    details.replaceChildren(list, make("p", {}, closer, " ", close));
    details.hidden = false;
  }

  // ---- moving

  function zoomTo() {
    const { row, block, selection } = view;
    if (selection) view.show(...selection);
    else if (row && block >= 0) view.showAround(row.start[block], row.end[block]);
    view.selection = null;
    redraw();
  }

  function select(from, to) {
    view.selection = [Math.max(0, Math.min(from, to)), Math.min(data.length, Math.max(from, to))];
    const [begin, end] = view.selection;
    const length = end - begin;
    const all = data.groups.flatMap((group) => group.rows);
    const chosen = view.row && view.row.kind !== "counter" ? [view.row] : all.filter((row) => row.kind === "device");
    const busy = chosen.slice(0, 4).map((row) => {
      const share = length > 0 ? view.busyWithin(row, begin, end) / length : 0;
      return `${row.group.label} ${row.label === "busy" ? "" : `${row.label} `}busy ${shareText(share)}`;
    });
    say(`Selected ${timeText(length, 2)} from ${timeText(begin, 3)}${busy.length ? `: ${busy.join("; ")}` : ""}`);
    redraw();
  }

  function gap(by) {
    const gaps = data.groups.flatMap((group) => group.gaps).sort((a, b) => a[0] - b[0]);
    if (!gaps.length) return say("No gap between operations of a device is known.");
    const middle = view.selection ? view.selection[0] : (view.from + view.to) / 2;
    const next = by > 0 ? gaps.find(([from]) => from > middle) : gaps.findLast(([from]) => from < middle);
    const [from, to] = next ?? (by > 0 ? gaps[0] : gaps.at(-1));
    view.showAround(from - (to - from) / 2, to + (to - from) / 2);
    view.selection = [from, to];
    const group = data.groups.find((each) => each.gaps.some((other) => other[0] === from && other[1] === to));
    say(`Idle for ${timeText(to - from, 2)} from ${timeText(from, 3)}; ${group.label}`);
    return redraw();
  }

  let hit = -1;
  function search(word) {
    view.search(word);
    hit = -1;
    byId("timeline-found").textContent = view.found ? `${view.hits.length.toLocaleString("en")} found` : "";
    redraw();
  }

  function nextFound(by) {
    if (!view.found || !view.hits.length) return;
    hit = (hit + by + view.hits.length + (hit < 0 && by < 0 ? 1 : 0)) % view.hits.length;
    const { row, block } = view.hits[hit];
    byId("timeline-found").textContent = `${(hit + 1).toLocaleString("en")} of ${view.hits.length.toLocaleString("en")}`;
    if (row.start[block] < view.from || row.end[block] > view.to) {
      const middle = (row.start[block] + row.end[block]) / 2;
      view.show(middle - view.span / 2, middle + view.span / 2);
    }
    choose(row, block);
  }

  // ---- keys

  const DOES = {
    ArrowLeft: () => view.pan(-PAN * view.span),
    ArrowRight: () => view.pan(PAN * view.span),
    ArrowUp: () => moveRow(-1),
    ArrowDown: () => moveRow(1),
    "+": () => view.zoom(1 / ZOOM),
    "=": () => view.zoom(1 / ZOOM),
    "-": () => view.zoom(ZOOM),
    0: () => view.show(0, data.length),
    Home: () => view.show(0, view.span),
    End: () => view.show(data.length - view.span, data.length),
    ",": () => step(-1),
    ".": () => step(1),
    z: zoomTo,
    n: () => gap(1),
    p: () => gap(-1),
    "/": () => byId("timeline-search").focus(),
    Escape: () => {
      view.selection = null;
      details.hidden = true;
    },
  };

  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && view.block >= 0) {
      event.preventDefault();
      tell();
    } else if (Object.hasOwn(DOES, event.key)) {
      event.preventDefault();
      DOES[event.key]();
      redraw();
    }
  });

  listenToPointer({ view, picture, scroll, frame, redraw, chooseRow, choose, tell, select, zoomTo, focusRow });

  // ---- buttons

  const BUTTONS = {
    "zoom-in": DOES["+"],
    "zoom-out": DOES["-"],
    "zoom-all": DOES[0],
    "gap-next": DOES.n,
    "gap-previous": DOES.p,
    "found-next": () => nextFound(1),
    "found-previous": () => nextFound(-1),
  };
  for (const [id, act] of Object.entries(BUTTONS)) {
    byId(id).addEventListener("click", () => {
      act();
      redraw();
    });
  }
  const word = byId("timeline-search");
  word.addEventListener("input", () => search(word.value));
  word.form.addEventListener("submit", (event) => {
    event.preventDefault();
    nextFound(1);
  });

  for (const button of document.querySelectorAll("button.place")) {
    button.addEventListener("click", () => {
      const [from, to] = [Number(button.dataset.from), Number(button.dataset.to)];
      const group = data.groups.find((each) => each.device && each.device === button.dataset.device);
      if (group && !group.isOpen) toggle(group);
      if (group) chooseRow(group.rows[0]);
      view.showAround(from, to);
      select(from, to);
      byId("timeline").scrollIntoView();
      focusRow(group ? group.rows[0] : view.lines.find((line) => line.row).row);
    });
  }

  scroll.addEventListener("scroll", redraw);
  new ResizeObserver(resize).observe(scroll);
  themed.push(() => {
    picture.recolor();
    redraw();
  });
  label();
  resize();
}

{
  const data = byId("timeline-data");
  if (data) startTimeline(decodeTimeline(JSON.parse(data.textContent)));
}
