// The inbox: which approvals have a draft on this device.

import { _ } from "./words.js";

for (const mark of document.querySelectorAll("[data-draft]")) {
  const draft = localStorage.getItem(`wfcore:draft:${mark.dataset.draft}:${mark.dataset.person}`);
  const edits = draft ? JSON.parse(draft).count : 0;
  if (edits) {
    mark.textContent = edits === 1 ? _("your draft: 1 edit") : _("your draft: {edits} edits", { edits });
    mark.hidden = false;
  }
}
