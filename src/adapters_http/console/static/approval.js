// The approval page: rows become fields, and what is typed is shown against what was proposed.

import { DRAFT, ask, button, comment, desk, focusCell, make, plain, required, revisions, say } from "./desk.js";
import { Review } from "./review.js";
import { GroupView } from "./table.js";
import { shown } from "./values.js";
import { _, refreshTimes } from "./words.js";

desk.changed = function changed() {
  const draft = desk.review.draft();
  try {
    if (draft.count || comment.value) localStorage.setItem(DRAFT, JSON.stringify({ ...draft, comment: comment.value }));
    else localStorage.removeItem(DRAFT);
  } catch {
    say(_("This browser keeps no drafts: what you type is lost when the page is closed."));
  }
  for (const view of desk.views) view.mark();
  paintBar();
};

function paintBar() {
  const all = desk.review.rows.length;
  const inside = all - desk.review.count("out");
  const [edited, out, wrong, clashes] = ["edited", "out", "wrong", "clashes"].map((kind) => desk.review.count(kind));
  const facts = [];
  if (edited) facts.push(_("{edited} edited", { edited }));
  if (out) facts.push(_("{out} left out", { out }));
  const totals = desk.review.groups.flatMap((group) => desk.review.totals(group)).map(([column, was, now]) => make("span", { className: "totals" }, `${column.title} `, ...(was === now ? [] : [make("s", {}, shown(was)), " "]), shown(now)));
  desk.bar.facts.replaceChildren(make("b", {}, _("{inside} of {all} rows", { inside, all })), facts.length ? ` · ${facts.join(" · ")} ` : " ", ...totals);
  desk.bar.undo.disabled = desk.review.done.length === 0;
  const open = wrong || clashes;
  desk.bar.approve.textContent = wrong ? _("{wrong} to correct", { wrong }) : clashes ? _("{clashes} to settle", { clashes }) : _("Review and approve {inside}", { inside });
  desk.bar.approve.className = open ? "primary" : "approve";
}

function makeBar() {
  const facts = make("div", { ariaLive: "off" });
  const undo = button(_("Undo"), () => step("undo"), { className: "undo" });
  const reject = button(_("Reject…"), () => deciding("askReject"), { className: "danger" });
  const revise = revisions ? [button(_("Ask for changes…"), () => deciding("askRevise"))] : [];
  const approve = button("", toReview);
  desk.bar = make("div", { className: "card bar" }, facts, make("div", { className: "actions" }, undo, reject, ...revise, approve));
  Object.assign(desk.bar, { facts, undo, approve });
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
  if (!(event.ctrlKey || event.metaKey) || !desk.review || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  if (event.key === "Enter") toReview();
  else if (key === "z") step(event.shiftKey ? "redo" : "undo");
  else if (key === "y") step("redo");
  else return;
  event.preventDefault();
});

/** What stands open first, a required field too; with nothing open, the sheet with everything that is about to be done. */
function toReview() {
  const open = desk.review.rows.find((row) => row.wrong || row.clashes);
  if (!open) return plain.checkValidity() ? deciding("toReview") : plain.elements[[...plain.elements].findIndex((one) => !one.validity.valid)].focus();
  const isOpen = (column) => open.error(column) || open.edits.get(column.key)?.theirs !== undefined;
  return focusCell(open, open.group.columns.find(isOpen));
}

async function deciding(deed, ...facts) {
  return (await import("./deciding.js"))[deed](...facts);
}

// Following

async function follow() {
  if (document.hidden || desk.review.status !== "PENDING" || document.querySelector("dialog[open]")) return;
  const { status, said } = await ask("/state");
  if (status === 401) return deciding("refused", status, said);
  if (status !== 200 || said.version === desk.review.version) return;
  desk.review.version = said.version;
  if (said.status !== "PENDING") return deciding("decided", said);
  if (said.itemsHash !== desk.review.hash) {
    const take = button(_("Show the new rows"), () => deciding("merge"));
    say(_("Somebody has changed rows. Your edits are kept."), false, take);
  } else say(_("{who} agreed: {given} of {required}.", { who: said.approvedBy.at(-1), given: said.approvedBy.length, required }));
}

// The beginning

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
  const kept = JSON.parse(localStorage.getItem(DRAFT) ?? "null");
  if (kept) {
    comment.value = kept.comment ?? "";
    const { rows, clashes } = desk.review.restore(kept);
    if (clashes) say(_("The rows have changed since you typed your draft; cells to settle: {clashes}.", { clashes }));
    else if (rows) say(_("Your draft is back; rows with edits: {rows}.", { rows }));
  }
  makeBar();
  for (const section of document.querySelectorAll(".group")) desk.views.push(new GroupView(section, desk.review.groups[section.dataset.group]));
  desk.redraw();
  refreshTimes();
  setInterval(follow, 5_000);
  document.addEventListener("visibilitychange", follow);
  import("./deciding.js"); // not needed yet, but the connection may be gone when it is
} else if (first.status === -1) {
  say(_("This browser is too old to edit rows without rounding large numbers. You can approve what is shown, or reject."));
}
