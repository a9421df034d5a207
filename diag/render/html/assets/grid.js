// Tables that are sorted by a click on a header and filtered by a word.

const PREFIXES = { n: 1e-9, "\u00b5": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

/** The number that a cell says, with its prefix: "1.5 TB/s" is 1.5e12. NaN where it says none. */
function quantity(text) {
  const found = /(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)\s?([n\u00b5mkMGTP](?=[A-Za-z]))?/.exec(text);
  return found ? Number(found[1].replaceAll(",", "")) * (PREFIXES[found[2]] ?? 1) : NaN;
}

function sortKey(cell, isName) {
  if (isName) return cell.textContent.toLowerCase();
  return cell.dataset.key === undefined ? quantity(cell.textContent) : Number(cell.dataset.key);
}

/** Unknown numbers come last, whichever way. */
function compared(a, b, sign) {
  if (typeof a === "string") return sign * (a < b ? -1 : a > b ? 1 : 0);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return sign * (a - b);
}

function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const isName = head.classList.contains("name");
  const first = isName ? "ascending" : "descending";
  const other = isName ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  for (const cell of table.tHead.rows[0].cells) cell.setAttribute("aria-sort", cell === head ? order : "none");
  const sign = order === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [sortKey(row.cells[column], isName), row]);
  rows.sort((a, b) => compared(a[0], b[0], sign));
  body.append(...rows.map(([, row]) => row));
}

function filterBy(table, word, count) {
  const wanted = word.trim().toLowerCase();
  const rows = [...table.tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
    shown += !row.hidden;
  }
  count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
}

const FEWEST_TO_FILTER = 8;

for (const table of document.querySelectorAll("table.grid")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = make("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(table, column));
  });
  if (table.tBodies[0].rows.length < FEWEST_TO_FILTER) continue;
  const word = make("input", { type: "search", autocomplete: "off" });
  const count = make("output");
  const label = make("label", {}, "Filter ", word);
  table.parentElement.before(make("div", { className: "filter" }, label, count));
  word.addEventListener("input", () => filterBy(table, word.value, count));
}
