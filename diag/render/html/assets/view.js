// What of the timeline is in sight, how its rows lie, and what is found on them. Nothing here draws.

const GROUP_HEIGHT = 22;
const ROW_HEIGHT = 19;
const COUNTER_HEIGHT = 30;
const LEAST_SPAN = 20; // ns
const ROWS_AT_FIRST = 28; // of more, only the devices and the busiest group are open

const NOUNS = { device: "operation", stream: "operation", calls: "call", os_calls: "call", marks: "mark" };
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];

/** As the report writes times, with `digits` of the unit that fits `scale`. */
function timeText(ns, digits = 1, scale = Math.abs(ns)) {
  const [factor, unit] = UNITS.find(([least]) => scale >= least) ?? UNITS[3];
  return `${(ns / factor).toFixed(factor === 1 ? 0 : digits)} ${unit}`;
}

const shareText = (share) => `${(100 * share).toFixed(1)} %`;
const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

/** Index of the first element above a value. */
function firstAbove(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

class View {
  constructor(data) {
    this.data = data;
    this.from = 0;
    this.to = Math.max(data.length, LEAST_SPAN);
    this.row = null; // that has the focus
    this.block = -1; // on that row
    this.selection = null; // [from, to]
    this.found = null; // by name: 1 where it is searched for
    const rows = data.groups.reduce((sum, group) => sum + group.rows.length, 0);
    if (rows > ROWS_AT_FIRST) {
      const host = data.groups.find((group) => !group.device);
      for (const group of data.groups) group.isOpen = Boolean(group.device) || group === host;
    }
    this.layOut();
  }

  /** Lines of the picture from top to bottom: a group's name, then its rows if it is open. */
  layOut() {
    this.lines = [];
    let top = 0;
    const add = (line, height) => {
      this.lines.push({ ...line, top, height });
      top += height;
    };
    for (const group of this.data.groups) {
      add({ group, row: null }, GROUP_HEIGHT);
      for (const row of group.isOpen ? group.rows : []) {
        add({ group, row }, row.kind === "counter" ? COUNTER_HEIGHT : ROW_HEIGHT);
      }
    }
    this.height = top;
  }

  get span() {
    return this.to - this.from;
  }

  show(from, to) {
    const length = Math.max(this.data.length, LEAST_SPAN);
    const span = Math.min(Math.max(to - from, LEAST_SPAN), length);
    this.from = Math.min(Math.max(from, 0), length - span);
    this.to = this.from + span;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(Math.max(this.span * factor, LEAST_SPAN), Math.max(this.data.length, LEAST_SPAN));
    const part = (around - this.from) / this.span;
    this.show(around - part * span, around + (1 - part) * span);
  }

  pan(ns) {
    this.show(this.from + ns, this.to + ns);
  }

  /** A stretch with as much room on both sides as leaves it in the middle half. */
  showAround(from, to) {
    const margin = (to - from) / 2;
    this.show(from - margin, to + margin);
  }

  lineAt(y) {
    return this.lines.find((line) => y >= line.top && y < line.top + line.height) ?? null;
  }

  lineOf(row) {
    return this.lines.find((line) => line.row === row) ?? null;
  }

  /** Of the blocks at a time the last that began, else the nearest one within `margin`; -1 where there is none. */
  blockAt(row, time, margin) {
    let nearest = -1;
    let distance = margin;
    for (let i = firstAbove(row.reach, time - margin); i < row.n && row.start[i] <= time + margin; i++) {
      const off = Math.max(row.start[i] - time, time - row.end[i], 0);
      if (off <= distance) {
        nearest = i;
        distance = off;
      }
    }
    return nearest;
  }

  /** How much of a stretch a row is busy; blocks of several slices count by their share. */
  busyWithin(row, from, to) {
    let busy = 0;
    let done = from;
    for (let i = firstAbove(row.reach, from); i < row.n && row.start[i] < to; i++) {
      const begin = Math.max(row.start[i], done);
      const end = Math.min(row.end[i], to);
      if (end > begin) {
        busy += (end - begin) * row.share[i];
        done = end;
      }
    }
    return busy;
  }

  search(word) {
    const wanted = word.trim().toLowerCase();
    this.found = wanted ? [0, ...this.data.names.map((name) => Number(name.toLowerCase().includes(wanted)))] : null;
    this.hits = [];
    if (!this.found) return;
    for (const group of this.data.groups) {
      for (const row of group.rows) {
        for (let i = 0; row.kind !== "counter" && i < row.n; i++) {
          if (this.found[row.name[i]]) this.hits.push({ row, block: i });
        }
      }
    }
    this.hits.sort((a, b) => a.row.start[a.block] - b.row.start[b.block]);
  }

  name(row, i) {
    return this.data.names[row.name[i] - 1] ?? this.activity(row, i); // copies have none
  }

  activity(row, i) {
    return this.data.activities[row.activity[i]].replace("_", " ");
  }

  /** What a block is, in a line. */
  describe(row, i) {
    const length = row.end[i] - row.start[i];
    const when = `at ${timeText(row.start[i], 3)}, ${timeText(length, 2)}`;
    if (row.count[i] > 1) {
      const several = counted(row.count[i], NOUNS[row.kind] ?? "range");
      return `${several}, ${shareText(row.share[i])} busy, longest ${this.name(row, i)}; ${when}; ${row.label}`;
    }
    return `${this.name(row, i)}; ${when}; ${row.label}`;
  }

  describeLevel(row, time) {
    const bin = Math.min(row.n - 1, Math.max(0, Math.floor((time / Math.max(this.data.length, 1)) * row.n)));
    if (row.least[bin] === UNKNOWN_LEVEL) return `${row.label}: not known at ${timeText(time, 3)}`;
    const value = (code) => levelOf(row, code).toPrecision(4);
    const [least, most] = [value(row.least[bin]), value(row.most[bin])];
    return `${row.label}: ${least === most ? most : `${least} to ${most}`} ${row.unit}; at ${timeText(time, 3)}`;
  }
}
