// The page of an execution, which follows it.

import { LANG, _, refreshTimes, session } from "./app.js";
import { follow } from "./follow.js";

// the form that led here was sent
session?.clear();

/** Turn *old* into *now*, node by node, by ids; equal nodes keep focus, scroll position, typed text and open details. */
function morph(old, now) {
  if (old.isEqualNode(now) || (old.nodeName === "TIME" && old.dateTime === now.dateTime)) return;
  if (old.nodeName !== now.nodeName || old.id !== now.id) return old.replaceWith(now);
  if (old.nodeType !== 1) return (old.data = now.data);
  for (const { name } of [...old.attributes]) now.hasAttribute(name) || name === "open" || old.removeAttribute(name);
  for (const { name, value } of now.attributes) name === "open" || old.setAttribute(name, value);
  const ids = new Set([...now.children].map((one) => one.id));
  const stays = (node) => node?.id && ids.has(node.id);
  let at = old.firstChild;
  const drop = (gone) => ((at = gone.nextSibling), gone.remove());
  for (const one of [...now.childNodes]) {
    const known = one.id && document.getElementById(one.id);
    const kept = known?.parentNode === old && known;
    // Nodes that stay are not moved over nodes that go: they would lose the focus.
    while (kept && at && at !== kept && !stays(at)) drop(at);
    if (kept && at !== kept) old.insertBefore(kept, at);
    // what stays waits for its equal, whatever comes before it
    const here = kept || (!stays(at) && at);
    if (here) at = here.nextSibling;
    here ? morph(here, one) : old.insertBefore(one, at);
  }
  while (at) drop(at);
}

const place = document.getElementById("live");
const says = document.getElementById("says");
const top = (one) => one.getBoundingClientRect().top;
let lost;

function tell(fine) {
  lost = fine ? 0 : lost || new Date();
  says.classList.toggle("lost", fine === false);
  says.textContent = fine === null ? "" : fine ? says.dataset.fine : _("Not live since {since}, trying again", { since: lost.toLocaleTimeString(LANG) });
}

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

async function renew() {
  const { status, response: now } = await fetched(says);
  if (status !== 200) return status;
  document.title = now.title;
  // The part in view stays in place when parts above it come or go.
  const seen = place.querySelector(":focus") ?? [...place.querySelectorAll("[id]")].find((one) => top(one) >= 0);
  const stood = seen && top(seen);
  morph(place, now.getElementById("live"));
  refreshTimes();
  if (seen?.isConnected) scrollBy(0, top(seen) - stood);
  if (document.querySelector(".newest:checked")) document.querySelector(".lines").scrollTop = 1e9;
}

// a part of this page that was chosen: it changes in place
document.addEventListener("click", (event) => {
  const link = event.target.closest("#live a[href*='?']");
  const url = link && new URL(link.getAttribute("href"), location);
  const here = url?.pathname === location.pathname && !(event.ctrlKey || event.metaKey || event.shiftKey);
  if (here) event.preventDefault();
  import("./run.js").then(({ act }) => act(event.target, here && url, renew));
});
onpopstate = () => renew();
const now = document.querySelector(".flow .now");
if (now) now.closest(".scroll").scrollLeft = now.getBoundingClientRect().left - innerWidth / 2;

if (place.dataset.live) follow(place.dataset.live, place.dataset.after, renew, tell);
