// Every page: texts in the reader's language, times that stay true, keys, and drafts that signing out deletes.
// Every text that a script shows goes through `_`, so that one catalogue has them all.

/** How the reader writes numbers and dates. */
export const LANG = document.documentElement.lang;

/** The storage of the browser for this site; undefined if it is blocked. */
export let local, session;
try { [local, session] = [localStorage, sessionStorage]; } catch {}

const catalogue = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

/** The text in the reader's language, with each {name} replaced by that fact. */
export function _(text, facts = {}) {
  return (catalogue[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);
}

const UNITS = [[864e5, "{count} d"], [36e5, "{count} h"], [6e4, "{count} min"], [1e3, "{count} s"]];

/** `in 23 h`, `35 s ago`: like `formats.py`. */
function relative(at) {
  const left = at - Date.now();
  const away = Math.abs(left);
  const [size, text] = UNITS.find(([size]) => away >= size) ?? UNITS[3];
  const length = _(text, { count: Math.floor(away / size) });
  return left > 0 ? _("in {length}", { length }) : _("{length} ago", { length });
}

/** Renew every <time>, with the instant in local time and in UTC. */
export function refreshTimes() {
  const inUtc = document.documentElement.dataset.times === "utc";
  const now = new Date().toDateString();
  for (const time of document.querySelectorAll("time:not(.at)")) {
    const at = new Date(time.dateTime);
    const clock = "clock" in time.dataset;
    if (!clock) {
      time.textContent = relative(at);
      time.tabIndex = 0;
    }
    // The rest takes long, and is the same all day.
    if (time.done === (time.done = time.dateTime + now)) continue;
    const local = (dateStyle, timeStyle) => at.toLocaleString(LANG, { dateStyle, timeStyle });
    const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (clock) time.textContent = inUtc ? utc : local(at.toDateString() === now ? undefined : "short", "medium");
    time.title = inUtc ? utc : `${local("medium", "long")} (${utc})`;
  }
}

refreshTimes();
setInterval(refreshTimes, 6e4);

document.querySelector("form.leave")?.addEventListener("submit", () => {
  for (const key in local) if (key.startsWith("wfcore:draft:")) local.removeItem(key);
  session?.clear();
});

const menu = document.querySelector(".menu");
onclick = ({ target }) => menu?.contains(target) || close();
const close = () => menu?.removeAttribute("open");

const keysOn = document.getElementById("keys-on");
keysOn.checked = local?.getItem("wfcore:keys") !== "off";
keysOn.onchange = () => local?.setItem("wfcore:keys", keysOn.checked ? "on" : "off");

let going = false;
let loading; // what a key does, until it is done: Enter waits for it
document.addEventListener("keydown", (event) => {
  const { key } = event;
  if (key === "Escape") close();
  const held = event.ctrlKey || event.metaKey;
  if (event.altKey || (held ? key !== "k" : event.target.closest("input, select, textarea, dialog[open]")) || (key !== "?" && !keysOn.checked)) return;
  const place = going && document.querySelector(`.places [data-go=${CSS.escape(key)}]`);
  going = key === "g" && !going;
  const entered = key === "Enter" && loading;
  if (!place && !held && !entered && !"?/jkax".includes(key)) return;
  event.preventDefault();
  if (place) place.click();
  else if (entered) loading.then(() => document.activeElement.click());
  else loading = import("./keys.js").then(({ KEYS }) => (loading = KEYS[held ? "find" : key]?.(_)));
});
