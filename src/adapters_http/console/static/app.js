// What every page does: times that stay true, keys, drafts that are forgotten.

import { refreshTimes } from "./words.js";

refreshTimes();
setInterval(refreshTimes, 60_000);

document.querySelector("form.leave")?.addEventListener("submit", () => {
  for (const key of Object.keys(localStorage)) key.startsWith("wfcore:draft:") && localStorage.removeItem(key);
  sessionStorage.clear();
});

document.addEventListener("click", (event) => {
  const menu = document.querySelector("details.menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

const help = document.getElementById("keys");
const keysOn = document.getElementById("keys-on");
keysOn.checked = localStorage.getItem("wfcore:keys") !== "off";
keysOn.addEventListener("change", () => localStorage.setItem("wfcore:keys", keysOn.checked ? "on" : "off"));

let going = false;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelector("details.menu")?.removeAttribute("open");
  const typing = event.target.closest("input, select, textarea, dialog[open]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "?" && !keysOn.checked) return;
  const places = going ? [...document.querySelectorAll(".places a")] : [];
  const place = places.find((one) => one.dataset.go === event.key);
  going = event.key === "g" && !going;
  const act = place ? () => place.click() : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const KEYS = {
  "?": () => help.showModal(),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  a: () => document.querySelector("[data-key=a]")?.click(),
  x: () => document.activeElement.closest("li, tr")?.querySelector("input[type=checkbox]")?.click(),
};

function move(by) {
  const links = [...document.querySelectorAll(".list h2 a, .runs th a")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, at + by)]?.focus();
}
