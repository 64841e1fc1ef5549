// Texts and times. Every text that a script shows goes through `_`, so that one catalogue has them all.

const catalogue = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

/** The text in the reader's language, with {name} replaced by what *facts* say. */
export function _(text, facts = {}) {
  return (catalogue[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);
}

const UNITS = [[86_400_000, "{count} d"], [3_600_000, "{count} h"], [60_000, "{count} min"], [1_000, "{count} s"]];

/** `in 23 h`, `35 s ago`: as `words.py` says it. */
export function relative(at, now = Date.now()) {
  const away = Math.abs(at - now);
  const [size, text] = UNITS.find(([size]) => away >= size) ?? UNITS[3];
  const length = _(text, { count: Math.floor(away / size) });
  return at > now ? _("in {length}", { length }) : _("{length} ago", { length });
}

/** Say every <time> anew, with the instant in local time and in UTC. */
export function refreshTimes(root = document) {
  const inUtc = document.documentElement.dataset.times === "utc";
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const local = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
    const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    const today = at.toDateString() === new Date().toDateString();
    const clock = inUtc ? utc : at.toLocaleString(undefined, { dateStyle: today ? undefined : "short", timeStyle: "medium" });
    time.textContent = "clock" in time.dataset ? clock : relative(at.getTime());
    time.title = inUtc ? utc : `${local} (${utc})`;
  }
  for (const fact of root.querySelectorAll("[data-soon]")) {
    fact.classList.toggle("soon", Number(fact.dataset.soon) - Date.now() < 3_600_000);
  }
}
