// The picture: a ruler, and rows of blocks. Blocks narrower than two pixels are summed up by pixel, so that a column's
// height is how much of it is busy at any zoom.

const NARROW = 2; // pixels
const LABEL_FROM = 44;
const LETTER = 6.1; // pixels, about, of the font
const FONT = "11px system-ui, sans-serif";
const TINTS = [1, 0.84, 0.68]; // tell neighbours of one colour apart
const RULER_HEIGHT = 22;

/** Colours as the page has them now, from elements that wear them. */
function colorsOf(activities) {
  const probe = make("i", { className: "unseen" });
  document.body.append(probe);
  const styles = getComputedStyle(probe);
  const color = (className, property = "color") => {
    probe.className = className;
    return styles[property];
  };
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return styles.color;
  };
  const fills = activities.flatMap((each) => {
    const [r, g, b] = color(each).match(/[\d.]+/g).map(Number);
    return TINTS.map((tint) => `rgb(${[r, g, b].map((part) => Math.round(255 - (255 - part) * tint)).join(" ")})`);
  });
  const counter = color("counter");
  const made = { fills, counter };
  for (const name of ["ink", "paper", "faint", "line", "panel", "accent", "idle"]) made[name] = read(name);
  probe.remove();
  return made;
}

class Picture {
  constructor(view, ruler, canvas) {
    this.view = view;
    this.ruler = ruler;
    this.canvas = canvas;
    this.gutter = 0; // pixels to the left, for the labels
    this.busy = new Float64Array(0);
    this.most = new Float64Array(0);
    this.fill = new Int16Array(0);
    this.recolor();
  }

  recolor() {
    this.colors = colorsOf(this.view.data.activities);
    this.faded = this.colors.fills.length; // what is not searched for
  }

  resize(width, height) {
    const dense = window.devicePixelRatio || 1;
    for (const [canvas, tall] of [[this.ruler, RULER_HEIGHT], [this.canvas, height]]) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(tall * dense);
      canvas.style.height = `${tall}px`;
      canvas.getContext("2d").setTransform(dense, 0, 0, dense, 0, 0);
    }
    this.width = width;
    this.height = height;
    this.gutter = Math.round(Math.min(190, width * 0.3));
    const columns = Math.max(1, width - this.gutter) + 1;
    this.busy = new Float64Array(columns);
    this.most = new Float64Array(columns);
    this.fill = new Int16Array(columns);
  }

  x(time) {
    return this.gutter + ((time - this.view.from) / this.view.span) * (this.width - this.gutter);
  }

  time(x) {
    return this.view.from + ((x - this.gutter) / (this.width - this.gutter)) * this.view.span;
  }

  get nsPerPixel() {
    return this.view.span / (this.width - this.gutter);
  }

  draw(scrollTop) {
    const ink = this.canvas.getContext("2d");
    ink.clearRect(0, 0, this.width, this.height);
    ink.font = FONT;
    ink.textBaseline = "middle";
    const ticks = this.drawRuler();
    ink.fillStyle = this.colors.line;
    for (const tick of ticks) ink.fillRect(Math.round(this.x(tick)), 0, 1, this.height);
    for (const line of this.view.lines) {
      const top = line.top - scrollTop;
      if (top + line.height < 0 || top > this.height) continue;
      if (!line.row) this.drawGroup(ink, line, top);
      else if (line.row.kind === "counter") this.drawLevels(ink, line.row, top + 2, line.height - 4);
      else this.drawRow(ink, line, top + 2, line.height - 4);
    }
    this.drawSelection(ink);
  }

  drawRuler() {
    const ink = this.ruler.getContext("2d");
    ink.clearRect(0, 0, this.width, RULER_HEIGHT);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.fillStyle = this.colors.faint;
    const rough = this.view.span / Math.max(1, (this.width - this.gutter) / 90);
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = decade * ([1, 2, 5, 10].find((factor) => factor * decade >= rough) ?? 10);
    const [factor] = UNITS.find(([least]) => this.view.to >= least) ?? UNITS[3];
    const digits = Math.max(0, Math.ceil(Math.log10(factor / step)));
    const ticks = [];
    for (let k = Math.ceil(this.view.from / step); k * step <= this.view.to; k++) {
      ticks.push(k * step);
      const x = this.x(k * step);
      if (x + 50 < this.width) ink.fillText(timeText(k * step, digits, this.view.to), x + 3, RULER_HEIGHT / 2);
      ink.fillRect(Math.round(x), RULER_HEIGHT - 6, 1, 6);
    }
    ink.fillText(`${timeText(this.view.span, 2)} in sight`, 8, RULER_HEIGHT / 2, this.gutter - 12);
    return ticks;
  }

  drawGroup(ink, line, top) {
    ink.fillStyle = this.colors.panel;
    ink.fillRect(0, top, this.width, line.height);
  }

  drawRow(ink, line, top, height) {
    const { row, group } = line;
    if (row.kind === "device") this.drawGaps(ink, group, top, height);
    const { busy, most, fill, view } = this;
    busy.fill(0);
    most.fill(0);
    const scale = (this.width - this.gutter) / view.span;
    const columns = busy.length - 1;
    const wide = [];
    for (let i = firstAbove(row.reach, view.from); i < row.n && row.start[i] < view.to; i++) {
      const left = (row.start[i] - view.from) * scale;
      const right = (row.end[i] - view.from) * scale;
      if (right - left >= NARROW) {
        wide.push(i);
        continue;
      }
      if (right < 0) continue;
      const column = Math.max(0, Math.floor(left));
      const first = Math.min(right, column + 1) - Math.max(left, 0);
      const part = Math.max(right - left, 1e-3) * row.share[i];
      busy[column] += row.kind === "marks" ? 1 : first * row.share[i]; // a mark takes no time
      if (right > column + 1 && column < columns) busy[column + 1] += (right - column - 1) * row.share[i];
      if (part > most[column]) {
        most[column] = part;
        fill[column] = this.fillOf(row, i);
      }
    }
    this.drawColumns(ink, top, height);
    for (const i of wide) this.drawBlock(ink, row, i, top, height);
    if (row === view.row && view.block >= 0) this.outline(ink, row, view.block, top, height);
  }

  fillOf(row, i) {
    if (this.view.found && !this.view.found[row.name[i]]) return this.faded;
    return row.activity[i] * TINTS.length + (row.name[i] % TINTS.length);
  }

  colorOf(fill) {
    return fill === this.faded ? this.colors.idle : this.colors.fills[fill];
  }

  /** Neighbours of one colour and height at once. */
  drawColumns(ink, top, height) {
    const { most, busy, fill } = this;
    const tall = (c) => (most[c] ? Math.max(2, Math.round(Math.min(1, busy[c]) * height)) : 0);
    for (let first = 0; first < most.length; ) {
      const here = tall(first);
      let stop = first + 1;
      while (stop < most.length && tall(stop) === here && (!here || fill[stop] === fill[first])) stop++;
      if (here) {
        ink.fillStyle = this.colorOf(fill[first]);
        ink.fillRect(this.gutter + first, top + height - here, stop - first, here);
      }
      first = stop;
    }
  }

  drawBlock(ink, row, i, top, height) {
    const left = Math.max(this.x(row.start[i]), this.gutter);
    const right = Math.min(this.x(row.end[i]), this.width);
    const tall = row.count[i] > 1 ? Math.max(2, height * row.share[i]) : height;
    const fill = this.fillOf(row, i);
    ink.fillStyle = this.colorOf(fill);
    ink.fillRect(left, top + height - tall, Math.max(1, right - left - 0.5), tall);
    if (right - left < LABEL_FROM || tall < 11) return;
    const letters = Math.floor((right - left - 8) / LETTER);
    const said = row.count[i] > 1 ? counted(row.count[i], NOUNS[row.kind] ?? "range") : this.view.name(row, i);
    ink.fillStyle = isDark(ink.fillStyle) ? "#ffffff" : "#14171a";
    ink.fillText(said.length > letters ? `${said.slice(0, letters - 1)}\u2026` : said, left + 4, top + height / 2 + 1);
  }

  outline(ink, row, i, top, height) {
    const left = Math.max(this.x(row.start[i]), this.gutter) - 1;
    const right = Math.min(this.x(row.end[i]), this.width) + 1;
    if (right < this.gutter || left > this.width) return;
    ink.strokeStyle = this.colors.ink;
    ink.lineWidth = 2;
    ink.strokeRect(left, top, Math.max(3, right - left), height);
  }

  drawGaps(ink, group, top, height) {
    for (const [from, to] of group.gaps) {
      const left = Math.max(this.x(from), this.gutter);
      const right = Math.min(this.x(to), this.width);
      if (right - left < 3) continue;
      ink.fillStyle = this.colors.idle;
      ink.fillRect(left, top + height - 3, right - left, 3);
      ink.fillStyle = this.colors.faint;
      const said = `idle ${timeText(to - from)}`;
      if (right - left > said.length * LETTER + 6) ink.fillText(said, left + 3, top + height / 2 - 1);
    }
  }

  drawLevels(ink, row, top, height) {
    const { view } = this;
    const base = Math.min(row.low, 0);
    const tall = (code) => (height * (levelOf(row, code) - base)) / (row.high - base || 1);
    ink.fillStyle = this.colors.counter;
    for (let x = this.gutter; x < this.width; x++) {
      const bin = Math.floor((this.time(x) / Math.max(view.data.length, 1)) * row.n);
      if (bin < 0 || bin >= row.n || row.least[bin] === UNKNOWN_LEVEL) continue;
      const [low, high] = [tall(row.least[bin]), Math.max(1, tall(row.most[bin]))];
      ink.globalAlpha = 0.35;
      ink.fillRect(x, top + height - low, 1, low);
      ink.globalAlpha = 1;
      ink.fillRect(x, top + height - high, 1, Math.max(1.5, high - low));
    }
  }

  drawSelection(ink) {
    if (!this.view.selection) return;
    const [from, to] = this.view.selection.map((time) => this.x(time));
    const left = Math.max(from, this.gutter);
    ink.fillStyle = this.colors.accent;
    ink.globalAlpha = 0.14;
    ink.fillRect(left, 0, Math.min(to, this.width) - left, this.height);
    ink.globalAlpha = 1;
    for (const x of [from, to]) if (x >= this.gutter) ink.fillRect(x, 0, 1, this.height);
  }
}

/** Whether white is read better than black on a colour '#rrggbb'. */
function isDark(color) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(color.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.179;
}
