// The page as a whole: elements without markup, the theme, findings that open, printing.

const byId = (id) => document.getElementById(id);

/** An element with properties and children; text stays text. */
function make(kind, properties = {}, ...children) {
  const made = document.createElement(kind);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

document.documentElement.classList.add("scripted");

const themed = []; // called when the colours have changed

{
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null; // until then as the system has it
  const isDark = () => (chosen === null ? system.matches : chosen);
  const show = () => {
    if (chosen !== null) document.documentElement.dataset.theme = chosen ? "dark" : "light";
    button.setAttribute("aria-pressed", String(isDark()));
    for (const changed of themed) changed();
  };
  button.addEventListener("click", () => {
    chosen = !isDark();
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** Opens what a link or an address points to. */
function openTarget() {
  const target = location.hash && byId(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();

{
  let opened = []; // for the print, to be closed again
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".finding:not([open])")].slice(0, 12);
    for (const finding of opened) finding.open = true;
  });
  addEventListener("afterprint", () => {
    for (const finding of opened) finding.open = false;
  });
}

{
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) seen.add(entry.target.id);
      else seen.delete(entry.target.id);
    }
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) {
      if (id === first) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  });
  for (const id of links.keys()) watcher.observe(byId(id));
}

/** One note beside the pointer or the focus. */
const tip = (() => {
  const note = make("div", { className: "tip", hidden: true });
  note.setAttribute("aria-hidden", "true");
  document.body.append(note);
  return {
    show(text, x, y) {
      note.textContent = text;
      note.hidden = false;
      const { width, height } = note.getBoundingClientRect();
      note.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
      note.style.top = `${y + 16 + height > innerHeight ? Math.max(4, y - height - 8) : y + 16}px`;
    },
    hide() {
      note.hidden = true;
    },
  };
})();
