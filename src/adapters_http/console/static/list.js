// The list of executions: how many are new, and how many are selected.

import { fetched, follow } from "./follow.js";
import { _ } from "./words.js";

const says = document.getElementById("new");

follow(says.dataset.live, "", async () => {
  const now = await fetched();
  const news = [...(now.querySelectorAll?.(".runs tbody tr") ?? [])];
  const fresh = news.filter((row) => !document.getElementById(row.id));
  for (const row of news) document.getElementById(row.id)?.cells[2].replaceChildren(...row.cells[2].childNodes);
  const places = now.querySelector?.(".pills");
  if (places) document.querySelector(".pills").replaceChildren(...places.childNodes);
  if (!fresh.length || location.search.includes("after=")) return;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = _("{count} new, show", { count: fresh.length });
  says.replaceChildren(link);
});

document.getElementById("chosen")?.addEventListener("change", (event) => {
  const count = event.currentTarget.querySelectorAll(":checked").length;
  document.getElementById("count").textContent = count ? _("{count} selected", { count }) : "";
});
