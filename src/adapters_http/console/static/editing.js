// Editing more than a cell, and carrying edits over. Loaded by the first use.

import { _ } from "./app.js";
import { sheet } from "./deciding.js";
import { button, desk, focusCell, make, say } from "./desk.js";
import { control, valueOf } from "./table.js";
import { read, same, seen, textOf, unmarked } from "./values.js";

/**
 * Carry a draft over to the rows of now; how many rows, and how many clashes. Where the text that stood
 * in a cell has become another one meanwhile, both are kept, and the person chooses.
 */
export function restore(review, draft) {
  const known = new Map(review.rows.map((row) => [`${row.group.name}\n${row.key}`, row]));
  for (const [name, key, choice, cells] of draft.rows) {
    const group = review.groups.find((one) => one.name === name);
    const row = known.get(`${name}\n${key}`) ?? (key[0] === "+" && group?.adds && review.add(group));
    if (!row) continue;
    if (choice !== null && choice !== (row.standing !== null)) row.choose(choice);
    for (const [key, text, base] of cells) {
      const column = row.group.columns.find((one) => one.key === key && row.open(one));
      if (!column || seen(column, row.base[key]) === text) continue;
      const now = textOf(row.base[key]);
      row.put(column, now === base ? { text, base } : { text, base, theirs: now });
    }
  }
  return { rows: review.rows.filter((row) => row.touched).length, clashes: review.count("clashes") };
}

/** Where both changed a cell: theirs, and a click each to take theirs or mine. */
desk.clash = (view, column, edit) => {
  const choose = (mine, label) => button(label, () => {
    desk.review.settle(view.row, column, edit, mine ? { text: edit.text, base: edit.theirs } : undefined);
    view.view.redraw(view.row, column);
    desk.changed();
  });
  return make("small", { className: "wrong theirs" }, _("theirs: {text}", { text: seen(column, view.row.base[column.key]) || _("empty") }), choose(false, _("Take theirs")), choose(true, _("Keep mine")));
};

/** One value in a column of all rows that are shown. */
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

/** Put copied cells over those of all rows that the filter found, from one on; what has no place there is said. AP-45. */
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
      desk.review.type(at, target, isKnown ? seen(target, base) : part);
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

/** A row of the reviewer's own. */
export function addRow(view) {
  const row = desk.review.add(view.group);
  desk.review.pick(row, true);
  desk.changed();
  focusCell(row);
}

/** All cells of a row as they were proposed. */
export function revert(view) {
  desk.review.gesture(() => view.fields.forEach((field, column) => view.propose(column)));
  view.view.redraw(view.row);
  desk.changed();
  view.view.drawn.get(view.row).pick.focus();
}
