// Instants in lists: `06:15` today, `Sat 09:12` within six days, otherwise `23 Nov`, as in `formats.py`, which writes UTC.

import { LANG } from "./app.js";

function refresh() {
  for (const time of document.querySelectorAll("time.at")) {
    const at = new Date(time.dateTime);
    const weekday = at.toDateString() === new Date().toDateString() ? undefined : "short";
    time.textContent = at.toLocaleString(LANG, Math.abs(at - Date.now()) < 5184e5 ? { weekday, hour: "2-digit", minute: "2-digit", hour12: false } : { day: "numeric", month: "short" });
  }
}
if (!document.documentElement.dataset.times) {
  window.onrenewed = refresh;
  refresh();
}
