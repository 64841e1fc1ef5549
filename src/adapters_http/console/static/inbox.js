// The inbox: which approvals have a draft on this device, which are soon over, and notices of the browser.

import { local } from "./app.js";

function soon() {
  for (const mark of document.querySelectorAll("[data-draft]")) {
    const edits = JSON.parse(local?.getItem(mark.dataset.draft) ?? null)?.count;
    mark.hidden = !edits;
    mark.lastChild.textContent = edits;
  }
  for (const fact of document.querySelectorAll("[data-soon]")) fact.classList.toggle("soon", fact.dataset.soon - Date.now() < 36e5);
}
soon();
// rows are renewed in between
setInterval(soon, 999);
if (window.Notification) import("./tell.js");
