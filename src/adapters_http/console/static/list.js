// Lists: cells are renewed in place; new, gone and selected rows are counted. No row moves until the reader reloads.

import { _, refreshTimes } from "./app.js";
import { follow } from "./follow.js";

/** This page as it is now; a document without text turned into markup, so that it passes Trusted Types. */
export function fetched() {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onloadend = () => done(request);
    request.send();
  });
}

const says = document.getElementById("new");
const link = document.createElement("a");
const chosen = document.getElementById("chosen");
const rows = (root) => [...root.querySelectorAll("tr[id],li[id]")];

/** Replace the parts of *old* by those of *now*, but not checkboxes, the focused part and open details. */
function renew(old, now) {
  if (old && now) [...now.children].forEach((part, at) => old.children[at]?.matches(":not(input,.pick,:focus-within,[open],:has([open]))") && old.children[at].replaceWith(part));
}

async function refresh() {
  const { status, response: now } = await fetched();
  if (status === 401) says.textContent = _("Signed out: reload the page to sign in");
  if (status !== 200) return status;
  const fresh = rows(now).filter(({ id }) => !document.getElementById(id)).length;
  let gone = 0;
  for (const row of rows(document)) {
    const next = now.getElementById(row.id);
    row.classList.toggle("gone", !next);
    for (const box of row.querySelectorAll("input")) box.disabled = !next;
    renew(row, next);
    gone += !next;
  }
  const parts = ".places,.pills,.renewed";
  document.querySelectorAll(parts).forEach((part, at) => renew(part, now.querySelectorAll(parts)[at]));
  document.title = now.title;
  refreshTimes();
  window.onrenewed?.();
  onpageshow?.();
  if (!(fresh || gone)) return link.remove();
  link.href = "";
  link.textContent = fresh ? _("{fresh} new, show", { fresh }) : _("{gone} gone, show", { gone });
  // else it stays under the pointer
  link.isConnected || says.replaceChildren(link);
}

if (says) follow(says.dataset.live, says.dataset.after, refresh);

function tally() {
  const count = chosen.querySelectorAll(":checked:enabled").length;
  document.getElementById("count").textContent = count ? _("{count} selected", { count }) : "";
  for (const button of chosen.querySelectorAll("button")) button.disabled = !count;
}
if (chosen) {
  let last;
  // a browser that goes back ticks them again
  onchange = onpageshow = tally;
  chosen.onclick = ({ target, shiftKey }) => {
    const boxes = [...chosen.querySelectorAll("input")];
    const at = boxes.indexOf(target);
    if (shiftKey) for (const box of boxes.slice(...[at, last].sort((a, b) => a - b))) box.checked = target.checked;
    last = at;
  };
}
