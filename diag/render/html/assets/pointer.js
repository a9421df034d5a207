// Mouse, pen and fingers on the timeline.

const CLICK = 4; // pixels that a click may move
const NEAR = 4; // pixels beside a block that still hit it

/** `tool` is the view, the picture and what can be done with them. */
function listenToPointer(tool) {
  const { view, picture, scroll, frame, redraw, chooseRow, choose, tell, select, zoomTo, focusRow } = tool;
  const canvas = picture.canvas;
  const fingers = new Map(); // pointers that are down, by id
  let drag = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  function under(event) {
    const { x, y } = place(event);
    if (x < picture.gutter) return null;
    const line = view.lineAt(y + scroll.scrollTop);
    if (!line?.row) return null;
    const time = picture.time(x);
    if (line.row.kind === "counter") return { row: line.row, block: -1, time };
    return { row: line.row, block: view.blockAt(line.row, time, NEAR * picture.nsPerPixel), time };
  }

  function hover(event) {
    const here = under(event);
    if (!here || (here.row.kind !== "counter" && here.block < 0)) return tip.hide();
    const said = here.block < 0 ? view.describeLevel(here.row, here.time) : view.describe(here.row, here.block);
    return tip.show(said, event.clientX, event.clientY);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    const { x } = place(event);
    const pans = event.shiftKey || event.pointerType === "touch";
    drag = fingers.size === 1 ? { x, from: view.from, to: view.to, time: picture.time(x), pans, moved: false } : null;
    tip.hide();
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return hover(event);
    const before = [...fingers.values()];
    fingers.set(event.pointerId, place(event));
    const now = [...fingers.values()];
    if (now.length === 2) return pinch(before, now);
    if (!drag) return undefined;
    const { x } = place(event);
    drag.moved ||= Math.abs(x - drag.x) > CLICK;
    if (!drag.moved) return undefined;
    const shift = (x - drag.x) * picture.nsPerPixel;
    if (drag.pans) view.show(drag.from - shift, drag.to - shift);
    else select(drag.time, picture.time(Math.max(x, picture.gutter)));
    return redraw();
  });

  function pinch(before, now) {
    const [was, is] = [before, now].map(([a, b]) => Math.max(10, Math.abs(a.x - b.x)));
    const [from, to] = [before, now].map(([a, b]) => (a.x + b.x) / 2);
    view.pan((from - to) * picture.nsPerPixel);
    view.zoom(was / is, picture.time(to));
    redraw();
  }

  function release(event) {
    const isClick = drag && !drag.moved && event.type === "pointerup";
    fingers.delete(event.pointerId);
    drag = null;
    if (!isClick) return;
    view.selection = null;
    const here = under(event);
    if (here) {
      chooseRow(here.row);
      if (here.block >= 0) {
        choose(here.row, here.block);
        tell();
      }
      focusRow(here.row);
    }
    redraw();
  }

  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("dblclick", zoomTo);

  frame.addEventListener(
    "wheel",
    (event) => {
      const hasFocus = frame.contains(document.activeElement);
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!isSideways && !event.ctrlKey && !event.metaKey && !hasFocus) return;
      event.preventDefault();
      if (isSideways || event.shiftKey) view.pan((event.deltaX || event.deltaY) * picture.nsPerPixel);
      else view.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 300), picture.time(place(event).x));
      tip.hide();
      redraw();
    },
    { passive: false },
  );
}
