// Rare actions, loaded by the first click that needs one: decisions with their sheets and the answers of the server;
// below that edits of more than one cell, and drafts on changed rows.

import { _, local } from "./app.js";
import { DRAFT, ask, banner, brief, button, comment, desk, focusCell, kept, make, nameOf, place, plain, say } from "./desk.js";
import { control, valueOf } from "./table.js";
import { sayDecision, sayRefusal } from "./notices.js";
import { difference, read, same, asText, format, textOf, unmarked } from "./values.js";

export { refresh } from "./notices.js";

/** A dialog with one action; Escape and "back" change nothing. */
function sheet(title, parts, deed, style, act) {
  const dialog = make("dialog", {});
  const heading = make("h2", { id: "sheet-title" }, title);
  dialog.setAttribute("aria-labelledby", "sheet-title");
  const back = button(_("Back to the rows"), () => dialog.close());
  const go = make("button", { className: style }, deed);
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

/** The row for the server: its key and the changed cells; without a key the whole row. */
function toSend(row) {
  const { columns, rowKey, fixed } = row.group;
  const changed = columns.filter((column) => row.edits.has(column.key)).map((column) => [column.key, row.cell(column).value]);
  const now = Object.fromEntries(changed.filter(([key, value]) => !same(value, row.base[key])));
  if (row.added) return now;
  return rowKey !== null && !fixed ? { [rowKey]: row.base[rowKey], ...now } : { ...row.base, ...now };
}

const includedOf = (group) => group.rows.filter((row) => row.included);

/** The value of `editedItems`; undefined: the rows as they stand. */
function editedItems({ rows, groups }) {
  if (!rows.some((row) => row.touched)) return undefined;
  return Object.fromEntries(groups.map((group) => [group.name, includedOf(group).map(toSend)]));
}

/** All differences from the proposal: rows that are left out or added, and cells. */
function changesOf({ rows }) {
  return rows.filter((row) => row.included || !row.added).flatMap((row) => {
    if (!row.included) return [{ row, out: true }];
    return row.group.columns.filter((column) => row.differs(column)).map((column) => ({
      row, column, was: row.proposed[column.key], now: row.cell(column).value,
    }));
  });
}

/** A value in a sentence. Line ends are marked; a text in a column of another type is quoted. */
function inWords(column, value) {
  if (typeof value === "boolean") return value ? _("yes") : _("no");
  const isOdd = typeof value === "string" && ["number", "boolean"].includes(column.type);
  return (isOdd ? JSON.stringify(value) : asText(column, value)).replaceAll("\n", "⏎\n") || _("empty");
}

/** Go to the first open problem, required fields included; without one, show the sheet with all changes. */
export function toReview() {
  // only this event reports a half-typed date
  document.activeElement?.dispatchEvent(new Event("blur"));
  const open = desk.review.rows.find((row) => row.wrong || row.clashes);
  for (const row of desk.review.rows) row.told = true;
  if (open) for (const view of desk.views) view.drawn.forEach((one) => one.paint());
  if (open) return focusCell(open, open.group.columns.find((column) => open.error(column) || open.edits.get(column.key)?.theirs !== undefined));
  const unfit = desk.review.fields.filter(markWrong);
  if (unfit.length) return fieldOf(unfit[0]).focus();
  if (!plain.checkValidity()) return [...plain.elements].find((one) => !one.validity.valid).focus();
  const inside = desk.review.rows.filter((row) => row.included).length;
  const totals = desk.review.groups.flatMap((group) => desk.review.totals(group)).map(([column, was, now]) => {
    const changes = was === now ? [format(now)] : [make("s", {}, format(was)), " ", format(now), ` (${format(difference(was, now), { signDisplay: "exceptZero" })})`];
    return make("p", {}, make("bdi", {}, column.title), ": ", ...changes);
  });
  const changes = changesOf(desk.review).map(({ row, column, was, now, out }) => {
    const name = make("b", {}, nameOf(row));
    if (out) return make("li", { className: "left" }, name, " ", row.choice === undefined && row.by ? _("left out by {who}", { who: row.by }) : _("left out"));
    return make("li", {}, name, " ", make("bdi", {}, column.title), " ", make("s", {}, brief(inWords(column, was))), " ", make("ins", {}, inWords(column, now)));
  });
  const list = changes.length ? [make("ul", { className: "changes", tabIndex: 0, ariaLabel: _("Changes") }, ...changes)] : [make("p", { className: "quiet" }, _("Nothing was changed."))];
  const given = desk.review.fields.map((field) => [field, answerOf(field).value ?? null]);
  const answered = given.filter(([, value]) => value !== null).map(([field, value]) => make("p", {}, make("bdi", {}, field.title), ": ", make("ins", {}, inWords(field, value))));
  const answers = given.length ? Object.fromEntries(given.map(([field, value]) => [field.key, value])) : undefined;
  const others = place.required > 1 ? [make("p", { className: "quiet" }, _("{required} people must agree to the same rows before the workflow goes on. Changing rows starts the count anew.", { required: place.required }))] : [];
  const deed = inside === 1 ? _("Approve 1 row") : _("Approve {inside} rows", { inside });
  const dialog = sheet(`${deed}?`, [...list, ...totals, ...answered, ...others, ...commentField()], deed, "approve", (go) =>
    decide(dialog, go, "/approve", { editedItems: editedItems(desk.review), expectedItemsHash: desk.review.itemsHash, answers, comment: comment.value || undefined }));
  dialog.querySelector("textarea").focus();
}

const fieldOf = (field) => plain.elements.namedItem(`answers.${field.key}`);

/** The problem with an answer, shown below its field until it is solved; null: none. */
function markWrong(field) {
  const one = fieldOf(field);
  const id = `${one.id}-wrong`;
  const error = answerOf(field).error ?? null;
  document.getElementById(id)?.remove();
  one.ariaInvalid = String(Boolean(error));
  if (!error) return one.removeAttribute("aria-describedby") ?? null;
  one.after(make("small", { className: "wrong", id }, error));
  one.setAttribute("aria-describedby", id);
  one.addEventListener("input", () => markWrong(field), { once: true });
  return error;
}

/** The value of an answer; an untouched field stands for the stored answer. */
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

/** Go to the form that lets somebody else decide. */
export function handOn() {
  const form = document.querySelector(".delegate");
  form.open = true;
  form.querySelector("input").focus();
}

export function askReject() {
  const says = make("p", {}, _("The execution ends here: no step after this one runs, and no row is released."));
  const dialog = sheet(_("Reject all of it?"), [says, ...commentField()], _("Reject"), "danger", (go) =>
    decide(dialog, go, "/reject", { comment: comment.value || undefined }));
  dialog.querySelector("textarea").focus();
}

async function decide(dialog, go, path, body) {
  go.disabled = true;
  if (path === "/approve" && (body.passkey = await plain.sign?.(place.url, body)) === null) return;
  const { status, reply, retry } = await ask(path, body);
  dialog.close();
  if (status === 200) {
    local?.removeItem(DRAFT);
    location.replace(`${place.url}?decided=1`);
  } else if (status === 409) await desk.merge();
  else if (status === 400 && pointAt(reply.error)) return;
  else if (status !== 400) sayRefusal(status, reply, retry);
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
    one.addEventListener("input", () => markWrong(field), { once: true });
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
  const { status, reply } = await ask("/rows");
  if (status !== 200) return sayRefusal(status, reply);
  if (reply.status !== "PENDING") return sayDecision(reply);
  if (reply.itemsHash === desk.review.itemsHash) return location.reload();
  desk.load(reply);
  const kept = restore(desk.review, draft);
  desk.redraw();
  const discard = button(_("Discard my edits"), () => { desk.load(reply); banner.hidden = true; desk.redraw(); });
  const changed = kept.clashes
    ? _("The rows have changed since you began. Your edits remain on top of the new ones; cells to settle: {clashes}. Nothing was decided.", kept)
    : _("The rows have changed since you began. Your edits remain on top of the new ones. Nothing was decided.");
  say(changed, false, ...(kept.rows ? [discard] : []));
};

/**
 * Carry a draft over to the rows of now; how many rows, and how many clashes. Where the text that stood
 * in a cell has become another one meanwhile, both are kept, and the person chooses.
 */
function restore(review, draft) {
  const known = new Map(review.rows.map((row) => [`${row.group.name}\n${row.key}`, row]));
  for (const [name, key, choice, cells] of draft.rows) {
    const group = review.groups.find((one) => one.name === name);
    const row = known.get(`${name}\n${key}`) ?? (key[0] === "+" && group?.adds && review.add(group));
    if (!row) continue;
    if (choice !== null && choice !== (row.standing !== null)) row.choose(choice);
    for (const [key, text, base] of cells) {
      const column = row.group.columns.find((one) => one.key === key && row.open(one));
      if (!column || asText(column, row.base[key]) === text) continue;
      const now = textOf(row.base[key]);
      row.put(column, now === base ? { text, base } : { text, base, theirs: now });
    }
  }
  return { rows: review.rows.filter((row) => row.touched).length, clashes: review.count("clashes") };
}

/** Carry the draft of this device over to the rows, and say so. */
export function resume() {
  const { rows, clashes } = restore(desk.review, kept);
  if (clashes) say(_("The rows have changed since you typed your draft; cells to settle: {clashes}.", { clashes }));
  else if (rows) say(_("Your draft is back; rows with edits: {rows}.", { rows }));
}

/** Show the draft that another tab has stored. */
export function redraft() {
  const note = document.activeElement.getAttribute("aria-describedby");
  for (const row of desk.review.rows) row.forget();
  restore(desk.review, kept);
  for (const view of desk.views) view.draw();
  desk.paint();
  document.getElementById(note)?.previousElementSibling?.focus({ preventScroll: true });
}

/** The note at a cell that both changed: their text, and buttons for theirs and mine. */
desk.clash = (view, column, edit) => {
  const choose = (mine, label) => button(label, () => {
    desk.review.settle(view.row, column, edit, mine ? { text: edit.text, base: edit.theirs } : undefined);
    view.view.redraw(view.row, column);
    desk.changed();
  });
  return make("small", { className: "wrong theirs" }, _("theirs: {text}", { text: asText(column, view.row.base[column.key]) || _("empty") }), choose(false, _("Take theirs")), choose(true, _("Keep mine")));
};

/** Set one value in a column of all shown rows. */
export function setAll(view, column) {
  const field = control(column, "");
  field.ariaLabel = column.title;
  const rows = view.rows();
  const title = _("{column} in {rows} rows", { column: column.title, rows: rows.length });
  const dialog = sheet(title, [field], _("Set"), "primary", () => {
    desk.review.gesture(() => rows.forEach((row) => desk.review.type(row, column, valueOf(field))));
    dialog.close();
    desk.changed();
    view.draw();
  });
}

/**
 * The cells of a copied text, row by row, as Excel, Calc, Google Sheets and Numbers write it: a cell that holds a tab, a
 * line end or two quotes stands in quotes; any other quote is one.
 */
export function cellsOf(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"([^"]*(?:""[^"]*)*)"(?=[\t\r\n]|$)|([^\t\r\n]*))(\t|\r\n?|\n|$)/g)) {
    const cell = plain ?? (/[\t\r\n\x22]/.test(quoted) ? quoted.replaceAll("\x22\x22", "\x22").replace(/\r\n?/g, "\n") : `\x22${quoted}\x22`);
    rows.at(-1).push(cell);
    if (!end) break;
    if (end !== "\t") rows.push([]);
  }
  if (rows.length > 1 && rows.at(-1).join() === "" && rows.at(-1).length === 1) rows.pop();
  return rows;
}

// as spreadsheets and people write them, in the languages of many
const TRUE = "true|1|x|yes|y|✓|✔|☑|wahr|ja|j|vrai|oui|verdadero|verdadeiro|sí|si|sim|vero|sì|waar|prawda|tak|sant|sand|sann|pravda|ano|igaz|igen|tosi|kyllä|doğru|evet|истина|да|真|是|はい".split("|");
const FALSE = "false|0|no|n|☐|falsch|nein|faux|non|falso|não|nao|onwaar|nee|fałsz|nie|falskt|falsk|usann|nej|nei|nepravda|ne|hamis|nem|epätosi|ei|yanlış|hayır|ложь|нет|假|否|いいえ".split("|");

/** A word for yes or no as the field takes it; any other text stays. */
function truth(text) {
  const word = text.trim().toLowerCase();
  return TRUE.includes(word) ? "true" : FALSE.includes(word) ? "false" : text;
}

/** Paste cells over the rows that the filter shows, from one cell on; a notice names cells without a place. AP-45. */
export function paste({ view, row }, column, text) {
  const cells = cellsOf(text).map((parts) => parts.map(unmarked));
  const field = view.drawn.get(row).fields.get(column);
  const words = cells.map((parts) => parts.join("\t")).join("\n");
  const isPlain = text.replace(/\r\n?/g, "\n").replace(/\n$/, "") === words && !words.includes("\t");
  if (isPlain && field.matches(cells.length > 1 ? "textarea" : "[type=text], textarea") && (cells.length === 1 || field.value.includes("\n"))) {
    field.focus();
    return document.execCommand("insertText", false, words);
  }
  const { columns } = row.group;
  const [top, left] = [view.found.indexOf(row), columns.indexOf(column)];
  const [rows, outside, fixed, out] = [new Set(), new Set(), new Set(), new Set()];
  let set = 0;
  desk.review.gesture(() => cells.forEach((parts, down) => parts.forEach((copied, right) => {
    const at = view.found[top + down];
    const target = columns[left + right];
    const part = target?.type === "boolean" ? truth(copied) : copied;
    const base = at && target && at.base[target.key];
    const { error, value } = target ? read(target, part, base) : {};
    const isKnown = !error && same(value, base);
    if (!at) part && rows.add(down);
    else if (!target) part && outside.add(right);
    else if (!at.open(target)) isKnown || part === at.text(target) || fixed.add(target.title);
    else if (!at.included) isKnown || out.add(at);
    else {
      desk.review.type(at, target, isKnown ? asText(target, base) : target.type === "date" ? (value ?? part) : part);
      set += 1;
    }
  })));
  const lost = [
    rows.size && _("rows beyond the last one: {count}", { count: rows.size }),
    outside.size && _("columns beyond the last one: {count}", { count: outside.size }),
    fixed.size && _("read-only columns: {names}", { names: [...fixed].join(", ") }),
    out.size && _("rows that are left out: {count}", { count: out.size }),
  ].filter(Boolean);
  if (lost.length) say(_("Pasted into {set} cells. Not pasted: {lost}.", { set, lost: lost.join("; ") }), true);
  desk.changed();
  view.draw();
  view.drawn.get(row)?.fields.get(column)?.focus();
}

/** Add a row. */
export function addRow(view) {
  const row = desk.review.add(view.group);
  desk.review.pick(row, true);
  desk.changed();
  focusCell(row);
}

/** Set all cells of a row to the proposal. */
export function revert(view) {
  desk.review.gesture(() => view.fields.forEach((field, column) => view.propose(column)));
  view.view.redraw(view.row);
  desk.changed();
  view.view.drawn.get(view.row).pick.focus();
}
