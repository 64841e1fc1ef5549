// The inbox: which approvals have a draft on this device, and which are soon over.

import { _, local } from "./app.js";

for (const mark of document.querySelectorAll("[data-draft]")) {
  const edits = JSON.parse(local?.getItem(`wfcore:draft:${mark.dataset.draft}:${mark.dataset.person}`) ?? null)?.count;
  if (edits) {
    mark.textContent = edits === 1 ? _("your draft: 1 edit") : _("your draft: {edits} edits", { edits });
    mark.hidden = false;
  }
}

function soon() {
  for (const fact of document.querySelectorAll("[data-soon]")) fact.classList.toggle("soon", fact.dataset.soon - Date.now() < 3_600_000);
}
soon();
setInterval(soon, 60_000);
