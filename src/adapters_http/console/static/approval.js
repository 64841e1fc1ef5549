// The approval page: rows become fields, and edits are shown against the proposal.

import { _, refreshTimes } from "./app.js";
import { LOST, ask, composes, desk, focusCell, keep, kept, make, place, plain, say } from "./desk.js";
import { follow } from "./follow.js";
import { Review } from "./review.js";
import { GroupView } from "./table.js";
import { format } from "./values.js";

/** Call a rare action of `deciding.js`, loaded on demand. A lost connection is reported, unless a mere hint called it. */
async function rare(deed, ...facts) {
  const known = await import("./deciding.js").catch(() => deed === "refresh" || say(LOST, true));
  return known?.[deed]?.(...facts);
}
desk.rare = rare;

function changed() {
  keep(desk.review.draft());
  for (const view of desk.views) view.mark();
  paintBar();
}

const bar = document.getElementById("bar");
const [sum, undo, approve] = [".sum", "[data-act=undo]", ".approve"].map((one) => bar.querySelector(one));
bar.onclick = ({ target }) => {
  const { act } = target.dataset;
  if (target === undo) step(act);
  else if (act) rare(act);
};

function paintBar() {
  const all = desk.review.count("all");
  const inside = all - desk.review.count("out");
  const [edited, out, wrong, clashes] = ["edited", "out", "wrong", "clashes"].map((kind) => desk.review.count(kind));
  const facts = [edited && _("{edited} edited", { edited }), out && _("{out} left out", { out })].filter(Boolean);
  const totals = desk.review.groups.flatMap((group) => desk.review.totals(group)).map(([column, was, now]) => make("span", { className: "totals" }, make("bdi", {}, column.title), " ", ...(was === now ? [] : [make("s", {}, format(was)), " "]), make("b", {}, format(now))));
  sum.replaceChildren(make("b", {}, _("{inside} of {all} rows", { inside, all })), ...facts.map((one) => ` · ${one}`), " ", ...totals);
  undo.disabled = !desk.review.done.length;
  const open = wrong || clashes;
  approve.textContent = wrong ? _("{wrong} to correct", { wrong }) : clashes ? _("{clashes} to settle", { clashes }) : "signs" in plain.dataset ? _("Review and sign {inside}", { inside }) : _("Review and approve {inside}", { inside });
  approve.className = open ? "primary" : "approve";
}

function step(way) {
  const made = desk.review[way]();
  if (!made) return;
  desk.changed();
  for (const view of desk.views) view.draw();
  focusCell(made.row, made.column);
}

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || composes(event) || !desk.review || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  // other fields have their own undo
  const other = event.target.matches("input:not([type=checkbox]), textarea, select") && !event.target.closest("td");
  if (event.key === "Enter") rare("toReview");
  else if (other) return;
  else if (key === "z") step(event.shiftKey ? "redo" : "undo");
  else if (key === "y") step("redo");
  else return;
  event.preventDefault();
});

desk.load = (data) => {
  desk.review = new Review(data);
};

desk.redraw = () => {
  desk.review.groups.forEach((group, at) => Object.assign(desk.views[at], { group }).draw());
  desk.changed();
};

const first = typeof JSON.rawJSON === "function" ? await ask("/rows") : { status: -1 };
if (first.status === 200 && first.reply.status === "PENDING") {
  desk.load(first.reply);
  if (kept?.count) await rare("resume");
  bar.hidden = !(plain.hidden = true);
  Object.assign(desk, { changed, paint: paintBar, redraft: () => rare("redraft") });
  for (const section of document.querySelectorAll(".group")) desk.views.push(new GroupView(section, desk.review.groups[section.dataset.group]));
  desk.redraw();
  refreshTimes();
  addEventListener("beforeprint", () => desk.views.forEach((view) => view.print()));
  addEventListener("afterprint", () => desk.views.forEach((view) => view.draw()));
  const refresh = () => rare("refresh");
  follow(`${place.url}/live`, desk.review.version, refresh);
  // load early: the connection may be gone later
  for (const touch of ["focusin", "pointerdown"]) document.addEventListener(touch, refresh, { once: true });
} else if (first.status === -1) {
  say(_("This browser is too old to edit rows. You can approve what is shown, or reject."));
}
