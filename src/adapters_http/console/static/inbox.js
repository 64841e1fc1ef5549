// The inbox: which approvals have a draft on this device, and which are soon over.

import { _ } from "./app.js";

for (const mark of document.querySelectorAll("[data-draft]")) {
  const draft = localStorage.getItem(`wfcore:draft:${mark.dataset.draft}:${mark.dataset.person}`);
  const edits = draft ? JSON.parse(draft).count : 0;
  if (edits) {
    mark.textContent = edits === 1 ? _("your draft: 1 edit") : _("your draft: {edits} edits", { edits });
    mark.hidden = false;
  }
}

function soon() {
  for (const fact of document.querySelectorAll("[data-soon]")) fact.classList.toggle("soon", Number(fact.dataset.soon) - Date.now() < 3_600_000);
}
soon();
setInterval(soon, 60_000);
