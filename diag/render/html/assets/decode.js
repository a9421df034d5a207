// The way back from timeline_json.py and encoding.py: rows as typed arrays.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Reads `n` numbers of seven bits a byte at a time; beyond 2^31, so that shifts would not do. */
function columnReader(bytes) {
  let at = 0;
  return (n) => {
    const column = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let factor = 1;
      let value = 0;
      let byte;
      do {
        byte = bytes[at++];
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      column[i] = value;
    }
    return column;
  };
}

function decodeSlices(row, activities) {
  const next = columnReader(bytesOf(row.data));
  const n = row.n;
  const [start, length, idle, packed, name] = [next(n), next(n), next(n), next(n), next(n)];
  const end = new Float64Array(n);
  const reach = new Float64Array(n); // the latest end so far
  const share = new Float64Array(n); // of the block that is busy
  const count = new Float64Array(n);
  const activity = new Uint8Array(n);
  let time = 0;
  let latest = 0;
  for (let i = 0; i < n; i++) {
    time += start[i];
    start[i] = time;
    end[i] = time + length[i];
    latest = Math.max(latest, end[i]);
    reach[i] = latest;
    share[i] = length[i] > 0 ? 1 - idle[i] / length[i] : 1;
    activity[i] = packed[i] % activities;
    count[i] = Math.floor(packed[i] / activities);
  }
  return { n, start, end, reach, share, count, activity, name };
}

const UNKNOWN_LEVEL = 255;
const MOST_LEVEL = 254;

/** The value of a counter that a byte stands for. */
const levelOf = (row, code) => row.low + ((row.high - row.low) * code) / MOST_LEVEL;

function decodeLevels(row) {
  const bytes = bytesOf(row.data);
  return { n: row.n, least: bytes.subarray(0, row.n), most: bytes.subarray(row.n) };
}

function decodeTimeline(said) {
  const groups = said.groups.map((group) => {
    const made = { label: group.label, device: group.device, gaps: group.gaps ?? [], isOpen: true };
    made.rows = group.rows.map((row) => {
      const data = row.kind === "counter" ? decodeLevels(row) : decodeSlices(row, said.activities.length);
      return { ...row, ...data, group: made };
    });
    return made;
  });
  return { ...said, groups };
}
