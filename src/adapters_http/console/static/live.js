// The page of an execution, which follows it.

import { fetched, follow } from "./follow.js";
import { _, refreshTimes } from "./words.js";

const KEPT = ["open", "hidden"];

/** Make *old* what *now* is, node by node; what is the same stays, with its focus, scroll and open details. */
function morph(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeName !== now.nodeName || old.id !== now.id) return old.replaceWith(now);
  if (old.nodeType !== 1) return (old.data = now.data);
  for (const { name } of [...old.attributes]) now.hasAttribute(name) || KEPT.includes(name) || old.removeAttribute(name);
  for (const { name, value } of now.attributes) KEPT.includes(name) || old.setAttribute(name, value);
  if (old.nodeName === "INPUT") return;
  let at = old.firstChild;
  for (const one of [...now.childNodes]) {
    const known = one.id && old.ownerDocument.getElementById(one.id);
    if (known?.parentNode === old && known !== at) old.insertBefore(known, at);
    const here = known?.parentNode === old ? known : at;
    at = here?.nextSibling;
    here ? morph(here, one) : old.append(one);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
document.addEventListener("click", (event) => {
  const copied = event.target.dataset?.copy;
  if (copied) navigator.clipboard.writeText(document.getElementById(copied).textContent);
});

const place = document.getElementById("live");
const says = document.getElementById("says");
let lost = 0;

function tell(fine) {
  lost = fine ? 0 : lost || new Date();
  says.classList.toggle("lost", fine === false);
  says.textContent = fine === null ? "" : fine ? says.dataset.fine : _("Not live since {since}, trying again", { since: lost.toLocaleTimeString() });
}

async function renew() {
  const now = await fetched();
  if (now.status === 401) says.textContent = _("Signed out: reload the page to sign in");
  if (!now.title) return;
  document.title = now.title;
  morph(place, now.getElementById("live"));
  refreshTimes();
}

if (place.dataset.live) follow(place.dataset.live, place.dataset.after, renew, tell);
