// The approval page: rows become fields, and what is typed is shown against what was proposed.

import { _, refreshTimes } from "./app.js";
import { LOST, ask, button, composes, desk, focusCell, keep, kept, make, place, plain, say } from "./desk.js";
import { follow } from "./follow.js";
import { Review } from "./review.js";
import { GroupView } from "./table.js";
import { shown } from "./values.js";

/** What is seldom done, by its name: loaded when it is, and the connection may be gone then; no matter for what is merely hinted at. */
async function late(deed, ...facts) {
  const known = await import("./deciding.js").catch(() => deed === "look" || say(LOST, true));
  return known?.[deed]?.(...facts);
}
desk.late = late;

function changed() {
  keep(desk.review.draft());
  for (const view of desk.views) view.mark();
  paintBar();
}

function paintBar() {
  const all = desk.review.count("all");
  const inside = all - desk.review.count("out");
  const [edited, out, wrong, clashes] = ["edited", "out", "wrong", "clashes"].map((kind) => desk.review.count(kind));
  const facts = [];
  if (edited) facts.push(_("{edited} edited", { edited }));
  if (out) facts.push(_("{out} left out", { out }));
  const totals = desk.review.groups.flatMap((group) => desk.review.totals(group)).map(([column, was, now]) => make("span", { className: "totals" }, make("bdi", {}, column.title), " ", ...(was === now ? [] : [make("s", {}, shown(was)), " "]), shown(now)));
  desk.bar.facts.replaceChildren(make("b", {}, _("{inside} of {all} rows", { inside, all })), facts.length ? ` · ${facts.join(" · ")} ` : " ", ...totals);
  desk.bar.undo.disabled = !desk.review.done.length;
  const open = wrong || clashes;
  desk.bar.approve.textContent = wrong ? _("{wrong} to correct", { wrong }) : clashes ? _("{clashes} to settle", { clashes }) : _("Review and approve {inside}", { inside });
  desk.bar.approve.className = open ? "primary" : "approve";
}

function makeBar() {
  const facts = make("div");
  const undo = button(_("Undo"), () => step("undo"), { className: "undo" });
  const reject = button(_("Reject…"), () => late("askReject"), { className: "danger" });
  const revise = Number(place.revisions) ? [button(_("Ask for changes…"), () => late("askRevise"))] : [];
  const approve = button("", () => late("toReview"));
  desk.bar = make("div", { className: "card bar" }, facts, make("div", { className: "actions" }, undo, reject, ...revise, approve));
  Object.assign(desk.bar, { facts, undo, approve, paint: paintBar });
  plain.hidden = true;
  plain.after(desk.bar);
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
  // what is no cell has an undo of its own
  const other = event.target.matches("input:not([type=checkbox]), textarea, select") && !event.target.closest("td");
  if (event.key === "Enter") late("toReview");
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
if (first.status === 200 && first.said.status === "PENDING") {
  desk.load(first.said);
  if (kept?.count) {
    const { rows, clashes } = await late("restore", desk.review, kept);
    if (clashes) say(_("The rows have changed since you typed your draft; cells to settle: {clashes}.", { clashes }));
    else if (rows) say(_("Your draft is back; rows with edits: {rows}.", { rows }));
  }
  makeBar();
  Object.assign(desk, { changed, taken: () => late("taken") });
  for (const section of document.querySelectorAll(".group")) desk.views.push(new GroupView(section, desk.review.groups[section.dataset.group]));
  desk.redraw();
  refreshTimes();
  addEventListener("beforeprint", () => desk.views.forEach((view) => view.print()));
  addEventListener("afterprint", () => desk.views.forEach((view) => view.draw()));
  const look = () => late("look");
  follow(`${place.url}/live`, desk.review.version, look);
  // not needed yet, but the connection may be gone when it is
  for (const touch of ["focusin", "pointerdown"]) document.addEventListener(touch, look, { once: true });
} else if (first.status === -1) {
  say(_("This browser is too old to edit rows. You can approve what is shown, or reject."));
}
