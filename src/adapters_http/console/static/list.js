// Lists: cells are renewed in place; new, gone and selected rows are counted. No row moves until the reader reloads.

import { _, refreshTimes } from "./app.js";
import { follow } from "./follow.js";

/** This page as it is now; a document without text turned into markup, so that it passes Trusted Types. *says* tells that the session is over. */
function fetched(says) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onloadend = () => {
      if (request.status === 401) says.textContent = _("Signed out: reload the page to sign in");
      done(request);
    };
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
  const { status, response: now } = await fetched(says);
  if (status !== 200) return status;
  const fresh = rows(now).filter((row) => !document.getElementById(row.id)).length;
  let gone = 0;
  for (const row of rows(document)) {
    const next = now.getElementById(row.id);
    row.classList.toggle("gone", !next);
    for (const box of row.querySelectorAll("input")) box.disabled = !next;
    renew(row, next);
    gone += !next;
  }
  const parts = (root) => [...root.querySelectorAll(".places,.pills,.renewed")];
  parts(document).forEach((part, at) => renew(part, parts(now)[at]));
  document.title = now.title;
  refreshTimes();
  dispatchEvent(new Event("renewed"));
  onpageshow?.();
  if (!fresh && !gone) return link.remove();
  link.href = "";
  link.textContent = fresh ? _("{fresh} new, show", { fresh }) : _("{gone} gone, show", { gone });
  if (!link.isConnected) says.replaceChildren(link); // else it stays under the pointer
}

if (says) follow(says.dataset.live, says.dataset.after, refresh);

function tally() {
  const count = chosen.querySelectorAll(":checked:enabled").length;
  document.getElementById("count").textContent = count ? _("{count} selected", { count }) : "";
  for (const button of chosen.querySelectorAll("button")) button.disabled = !count;
}
if (chosen) onchange = onpageshow = tally; // a browser that goes back ticks them again
