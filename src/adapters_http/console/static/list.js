// Lists: how many rows are new, and how many are selected. Nothing moves until the reader asks for it.

import { _ } from "./app.js";
import { fetched } from "./fetched.js";
import { follow } from "./follow.js";

const says = document.getElementById("new");
const link = document.createElement("a");
const rows = (root) => [...root.querySelectorAll(".runs tbody tr, .list > li[id]")];

async function look() {
  const { status, response: now } = await fetched(says);
  if (status !== 200) return status;
  const news = rows(now);
  const fresh = news.filter((row) => !document.getElementById(row.id));
  for (const row of news) document.getElementById(row.id)?.cells?.[2].replaceChildren(...row.cells[2].childNodes);
  for (const place of [".pills", ".places"]) {
    const [old, next] = [document, now].map((root) => root.querySelector(place));
    if (!old.isEqualNode(next)) old.replaceChildren(...next.childNodes);
  }
  document.title = now.title;
  if (!fresh.length || location.search.includes("after=")) return;
  link.href = location.href;
  link.textContent = _("{count} new, show", { count: fresh.length });
  if (!link.isConnected) says.replaceChildren(link); // else it stays under the pointer
}

if (says) follow(says.dataset.live, says.dataset.after, look, undefined, says.dataset.on);

const chosen = document.getElementById("chosen");
function tally() {
  const count = chosen.querySelectorAll(":checked").length;
  document.getElementById("count").textContent = count ? _("{count} selected", { count }) : "";
  for (const button of chosen.querySelectorAll("button")) button.disabled = !count;
}
if (chosen) onchange = onpageshow = tally; // a browser that goes back ticks them again
