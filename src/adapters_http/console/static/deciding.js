// Deciding: the sheets before it, and what the server said to it. Loaded by the first click that needs it.

import { _, local } from "./app.js";
import { DRAFT, ask, banner, brief, button, comment, desk, focusCell, make, nameOf, place, plain, say } from "./desk.js";
import { restore } from "./editing.js";
import { valueOf } from "./table.js";
import { decided, refused } from "./told.js";
import { difference, read, same, seen, shown } from "./values.js";

export { look } from "./told.js";

/** A dialog with one deed; Escape and "back" leave all as it is. */
export function sheet(title, parts, deed, look, act) {
  const dialog = make("dialog", {});
  const heading = make("h2", { id: "sheet-title" }, title);
  dialog.setAttribute("aria-labelledby", "sheet-title");
  const back = button(_("Back to the rows"), () => dialog.close());
  const go = make("button", { className: look }, deed);
  const form = make("form", {}, heading, ...parts, make("div", { className: "actions" }, back, go));
  form.addEventListener("submit", (event) => { event.preventDefault(); act(go); });
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

function commentField() {
  const field = make("textarea", { rows: 2, maxLength: 4000, value: comment.value, id: "sheet-comment" });
  field.addEventListener("input", () => { comment.value = field.value; comment.dispatchEvent(new Event("input", { bubbles: true })); });
  return [make("label", { htmlFor: "sheet-comment" }, _("Comment"), " ", make("span", { className: "quiet" }, _("(optional, for the history)"))), field];
}

/** The row as it is sent: with a key only what changed, else all of it. */
function sent(row) {
  const { columns, rowKey, fixed } = row.group;
  const changed = columns.filter((column) => row.edits.has(column.key)).map((column) => [column.key, row.cell(column).value]);
  const now = Object.fromEntries(changed.filter(([key, value]) => !same(value, row.base[key])));
  if (row.added) return now;
  return rowKey !== null && !fixed ? { [rowKey]: row.base[rowKey], ...now } : { ...row.base, ...now };
}

const includedOf = (group) => group.rows.filter((row) => row.included);

/** What `editedItems` are to be; undefined: the rows as they stand. */
function editedItems({ rows, groups }) {
  if (!rows.some((row) => row.touched)) return undefined;
  return Object.fromEntries(groups.map((group) => [group.name, includedOf(group).map(sent)]));
}

/** Every difference to what was proposed: rows that are left out or added, and cells. */
function changesOf({ rows }) {
  return rows.filter((row) => row.included || !row.added).flatMap((row) => {
    if (!row.included) return [{ row, out: true }];
    return row.group.columns.filter((column) => row.differs(column)).map((column) => ({
      row, column, was: row.proposed[column.key], now: row.cell(column).value,
    }));
  });
}

/** A value in a sentence; where a line ends is marked, and what is text instead of a number or yes and no. */
function said(column, value) {
  if (typeof value === "boolean") return value ? _("yes") : _("no");
  const isOdd = typeof value === "string" && ["number", "boolean"].includes(column.type);
  return (isOdd ? JSON.stringify(value) : seen(column, value)).replaceAll("\n", "⏎\n") || _("empty");
}

/** What stands open first, a required field too; with nothing open, the sheet with everything that is about to be done. */
export function toReview() {
  document.activeElement?.dispatchEvent(new Event("blur")); // of a date that is typed in half only this tells
  const open = desk.review.rows.find((row) => row.wrong || row.clashes);
  if (open) return focusCell(open, open.group.columns.find((column) => open.error(column) || open.edits.get(column.key)?.theirs !== undefined));
  const unfit = desk.review.fields.filter(toldWrong);
  if (unfit.length) return fieldOf(unfit[0]).focus();
  if (!plain.checkValidity()) return [...plain.elements].find((one) => !one.validity.valid).focus();
  const inside = desk.review.rows.filter((row) => row.included).length;
  const totals = desk.review.groups.flatMap((group) => desk.review.totals(group)).map(([column, was, now]) => {
    const changes = was === now ? [shown(now)] : [make("s", {}, shown(was)), " ", shown(now), ` (${shown(difference(was, now), { signDisplay: "exceptZero" })})`];
    return make("p", {}, make("bdi", {}, column.title), ": ", ...changes);
  });
  const changes = changesOf(desk.review).map(({ row, column, was, now, out }) => {
    const name = make("b", {}, nameOf(row));
    if (out) return make("li", { className: "left" }, name, " ", row.choice === undefined && row.by ? _("left out by {who}", { who: row.by }) : _("left out"));
    return make("li", {}, name, " ", make("bdi", {}, column.title), " ", make("s", {}, brief(said(column, was))), " ", make("ins", {}, said(column, now)));
  });
  const list = changes.length ? [make("ul", { className: "changes", tabIndex: 0, ariaLabel: _("Changes") }, ...changes)] : [make("p", { className: "quiet" }, _("Nothing was changed."))];
  const given = desk.review.fields.map((field) => [field, answerOf(field).value ?? null]);
  const answered = given.filter(([, value]) => value !== null).map(([field, value]) => make("p", {}, make("bdi", {}, field.title), ": ", make("ins", {}, said(field, value))));
  const answers = given.length ? Object.fromEntries(given.map(([field, value]) => [field.key, value])) : undefined;
  const others = place.required > 1 ? [make("p", { className: "quiet" }, _("{required} people must agree to the same rows before the workflow goes on. Changing rows starts the count anew.", { required: place.required }))] : [];
  const deed = inside === 1 ? _("Approve 1 row") : _("Approve {inside} rows", { inside });
  const dialog = sheet(`${deed}?`, [...totals, ...list, ...answered, ...others, ...commentField()], deed, "approve", (go) =>
    decide(dialog, go, "/approve", { editedItems: editedItems(desk.review), expectedItemsHash: desk.review.itemsHash, answers, comment: comment.value || undefined }));
  dialog.querySelector("textarea").focus();
}

const fieldOf = (field) => plain.elements.namedItem(`answers.${field.key}`);

/** What is wrong with an answer, which is said below its field until it is mended; null: nothing. */
function toldWrong(field) {
  const one = fieldOf(field);
  const id = `${one.id}-wrong`;
  const error = answerOf(field).error ?? null;
  document.getElementById(id)?.remove();
  one.ariaInvalid = String(Boolean(error));
  if (!error) return one.removeAttribute("aria-describedby") ?? null;
  one.after(make("small", { className: "wrong", id }, error));
  one.setAttribute("aria-describedby", id);
  one.addEventListener("input", () => toldWrong(field), { once: true });
  return error;
}

/** What an answer says; one that nobody touched is that which stands, however its field shows it. */
function answerOf(field) {
  const one = fieldOf(field);
  const standing = desk.review.answers[field.key] ?? null;
  const untouched = one.defaultValue === undefined ? one.selectedOptions[0]?.defaultSelected : one.value === one.defaultValue;
  return untouched && standing !== null && !one.validity.badInput ? { value: standing } : read(field, valueOf(one), null);
}

export function askRevise() {
  const says = make("p", {}, _("The steps before run again with your comment, and you are asked anew. Nothing is released."));
  const [label, field] = commentField();
  label.replaceChildren(_("What is to be changed?"));
  field.required = true;
  const dialog = sheet(_("Ask for changes?"), [says, label, field], _("Ask for changes"), "primary", (go) =>
    decide(dialog, go, "/revise", { comment: comment.value }));
  field.focus();
}

export function askReject() {
  const says = make("p", {}, _("The execution ends here: no step after this one runs, and no row is released."));
  const dialog = sheet(_("Reject all of it?"), [says, ...commentField()], _("Reject"), "danger", (go) =>
    decide(dialog, go, "/reject", { comment: comment.value || undefined }));
  dialog.querySelector("textarea").focus();
}

async function decide(dialog, go, path, body) {
  go.disabled = true;
  const { status, said, retry } = await ask(path, body);
  dialog.close();
  if (status === 200) {
    local?.removeItem(DRAFT);
    location.reload();
  } else if (status === 409) await desk.merge();
  else if (status === 400 && pointAt(said.error)) return;
  else if (status !== 400) refused(status, said, retry);
  if (!banner.hidden) banner.focus();
}

/** `editedItems.g[3].amount: is required` leads to the cell that it is about, and stands there; false: it is about none. */
function pointAt(error = "") {
  const asked = /^answers\.([^:]*): (.*)$/s.exec(error);
  const field = asked && desk.review.fields.find((one) => one.key === asked[1]);
  if (field) {
    say(_("Nothing was decided. {row}: {error}", { row: field.title, error: asked[2] }), true);
    const one = fieldOf(field);
    one.ariaInvalid = "true";
    one.setAttribute("aria-describedby", "banner");
    one.addEventListener("input", () => toldWrong(field), { once: true });
    one.focus();
    return true;
  }
  const found = /^editedItems\.(.+)\[(\d+)\](?:\.([^:]*))?: (.*)$/s.exec(error);
  const group = found && desk.review.groups.find(({ name }) => name === found[1]);
  const row = group && includedOf(group)[Number(found[2])];
  if (!row) {
    say(_("Nothing was decided: {error}", { error }), true);
    return false;
  }
  const column = row.group.columns.find((one) => one.key === found[3]);
  say(_("Nothing was decided. {row}: {error}", { row: nameOf(row), error: `${column?.title ?? found[3] ?? ""} ${found[4]}` }), true);
  focusCell(row, column);
  const { fields, notes } = desk.views.find((one) => one.group === group).drawn.get(row);
  if (!notes.has(column)) return true;
  fields.get(column).ariaInvalid = "true";
  notes.get(column).replaceChildren(make("small", { className: "wrong" }, found[4]));
  return true;
}

/** Somebody was there before: take the new rows, and carry over what was typed. */
desk.merge = async () => {
  const draft = desk.review.draft();
  const { status, said } = await ask("/rows");
  if (status !== 200) return refused(status, said);
  if (said.status !== "PENDING") return decided(said);
  if (said.itemsHash === desk.review.itemsHash) return location.reload();
  desk.load(said);
  const kept = restore(desk.review, draft);
  desk.redraw();
  const discard = button(_("Discard my edits"), () => { desk.load(said); banner.hidden = true; desk.redraw(); });
  const changed = kept.clashes
    ? _("The rows have changed since you began. Your edits remain on top of the new ones; cells to settle: {clashes}. Nothing was decided.", kept)
    : _("The rows have changed since you began. Your edits remain on top of the new ones. Nothing was decided.");
  say(changed, false, ...(kept.rows ? [discard] : []));
};
