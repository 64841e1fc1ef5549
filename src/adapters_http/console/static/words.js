// Texts and times. Every text that a script shows goes through `_`, so that one catalogue has them all.

/** How the reader writes numbers and dates. */
export const LANG = document.documentElement.lang;

const catalogue = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

/** The text in the reader's language, with {name} replaced by what *facts* say. */
export function _(text, facts = {}) {
  return (catalogue[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);
}

const UNITS = [[86_400_000, "{count} d"], [3_600_000, "{count} h"], [60_000, "{count} min"], [1_000, "{count} s"]];

/** `in 23 h`, `35 s ago`: as `words.py` says it. */
function relative(at) {
  const left = at - Date.now();
  const away = Math.abs(left);
  const [size, text] = UNITS.find(([size]) => away >= size) ?? UNITS[3];
  const length = _(text, { count: Math.floor(away / size) });
  return left > 0 ? _("in {length}", { length }) : _("{length} ago", { length });
}

/** Say every <time> anew, with the instant in local time and in UTC. */
export function refreshTimes() {
  const inUtc = document.documentElement.dataset.times === "utc";
  const now = new Date().toDateString();
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const clock = "clock" in time.dataset;
    if (!clock) {
      time.textContent = relative(at);
      time.tabIndex = 0;
    }
    // The rest takes long, and is the same all day.
    if (time.said === (time.said = time.dateTime + now)) continue;
    const local = (dateStyle, timeStyle) => at.toLocaleString(LANG, { dateStyle, timeStyle });
    const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    if (clock) time.textContent = inUtc ? utc : local(at.toDateString() === now ? undefined : "short", "medium");
    time.title = inUtc ? utc : `${local("medium", "long")} (${utc})`;
  }
}
