// Instants in lists: `06:15` today, `Sat 09:12` within six days, otherwise `23 Nov`, as in `formats.py`, which writes UTC.

import { LANG } from "./app.js";

function refresh() {
  const now = new Date();
  for (const time of document.querySelectorAll("time.at")) {
    const at = new Date(time.dateTime);
    const weekday = at.toDateString() === now.toDateString() ? undefined : "short";
    const near = Math.abs(at - now) < 6 * 864e5;
    time.textContent = at.toLocaleString(LANG, near ? { weekday, hour: "2-digit", minute: "2-digit", hour12: false } : { day: "numeric", month: "short" });
  }
}
if (!document.documentElement.dataset.times) {
  addEventListener("renewed", refresh);
  refresh();
}
