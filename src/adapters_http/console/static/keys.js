// What keys do, loaded with the first of them; and ⌘K: a dialog with the results of the search, as one types.

const address = document.getElementById("find")?.href;
const dialog = document.createElement("dialog");
const input = document.createElement("input");
const list = document.createElement("div");
let asked = 0;
let waits;

function prepare(_) {
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("finder.css", import.meta.url);
  document.head.append(style);
  dialog.className = "finder";
  dialog.ariaLabel = input.ariaLabel = input.placeholder = _("Search or do");
  input.type = "search";
  input.autocomplete = "off";
  dialog.append(input, list);
  document.body.append(dialog);
  input.addEventListener("input", () => {
    clearTimeout(waits);
    waits = setTimeout(look, 150, _);
  });
}

function look(_) {
  const mine = ++asked;
  const request = new XMLHttpRequest();
  request.open("GET", `${address}?q=${encodeURIComponent(input.value)}`);
  request.responseType = "document";
  request.onloadend = () => {
    if (mine !== asked) return; // an older answer came late
    list.replaceChildren(request.response?.getElementById("found") ?? _("No answer from the server"));
  };
  request.send();
}

dialog.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = [...list.querySelectorAll("a")];
  if (by) {
    event.preventDefault();
    (all[all.indexOf(document.activeElement) + by] ?? input).focus();
  } else if (event.key === "Enter" && event.target === input) {
    event.preventDefault();
    all[0]?.click();
  }
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

function find(_) {
  if (!address || dialog.open) return; // without an account there is nothing to find
  if (!dialog.isConnected) prepare(_);
  input.value = "";
  dialog.showModal();
  look(_);
}

function move(by) {
  const links = [...document.querySelectorAll(".list h2 a, tbody th a")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, at + by)]?.focus();
}

/** Each gets `_`, the function for texts in the reader's language. */
export const KEYS = {
  find,
  "?": () => document.getElementById("keys").showModal(),
  "/": (_) => {
    const field = document.querySelector("main [type=search]");
    field ? field.focus() : find(_);
  },
  j: () => move(1),
  k: () => move(-1),
  a: () => document.querySelector("[data-key=a]")?.click(),
  x: () => document.activeElement.closest("li, tr")?.querySelector("input")?.click(),
};
