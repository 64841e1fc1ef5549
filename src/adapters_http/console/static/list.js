// Lists: how many rows are new, and how many are selected. Nothing moves until the reader asks for it.

import { fetched, follow } from "./follow.js";
import { _ } from "./words.js";

const says = document.getElementById("new");
const rows = (root) => [...root.querySelectorAll(".runs tbody tr, .list > li[id]")];

async function look() {
  const now = await fetched();
  if (!now.title) return;
  const news = rows(now);
  const fresh = news.filter((row) => !document.getElementById(row.id));
  for (const row of news) document.getElementById(row.id)?.cells?.[2].replaceChildren(...row.cells[2].childNodes);
  for (const place of [".pills", ".places"]) document.querySelector(place).replaceChildren(...now.querySelector(place).childNodes);
  document.title = now.title;
  if (!fresh.length || location.search.includes("after=")) return;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = _("{count} new, show", { count: fresh.length });
  says.replaceChildren(link);
}

if (says) follow(says.dataset.live, "", look, undefined, says.dataset.on);

document.getElementById("chosen")?.addEventListener("change", (event) => {
  const count = event.currentTarget.querySelectorAll(":checked").length;
  document.getElementById("count").textContent = count ? _("{count} selected", { count }) : "";
});
