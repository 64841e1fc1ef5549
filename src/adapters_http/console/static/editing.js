// Editing more than a cell, and carrying edits over. Loaded by the first use.

import { _ } from "./app.js";
import { sheet } from "./deciding.js";
import { button, desk, focusCell, make } from "./desk.js";
import { control, setField, valueOf } from "./table.js";
import { seen, textOf, unmarked } from "./values.js";

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
      const now = column && textOf(row.base[key]);
      if (!column || seen(column, now) === text) continue;
      row.put(column, now === base ? { text, base } : { text, base, theirs: now });
    }
  }
  return { rows: review.rows.filter((row) => row.touched).length, clashes: review.count("clashes") };
}

/** Where both changed a cell: theirs, and a click each to take theirs or mine. */
desk.clash = (view, column, field, edit) => {
  const choose = (mine, label) => button(label, () => {
    desk.review.settle(view.row, column, edit, mine ? { text: edit.text, base: edit.theirs } : undefined);
    setField(field, view.row.text(column));
    view.paint();
    desk.changed();
    field.focus();
  });
  return make("small", { className: "wrong theirs" }, _("theirs: {text}", { text: seen(column, edit.theirs) || _("empty") }), choose(false, _("Take theirs")), choose(true, _("Keep mine")));
};

/** One value in a column of all rows that are shown. */
export function setAll(view, column) {
  const field = control(column, "", null);
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

/** A block of cells, as spreadsheets copy it, from one cell on. */
export function paste({ view, row }, column, text) {
  const { columns } = row.group;
  const rows = view.shown.slice(view.shown.indexOf(row));
  desk.review.gesture(() => text.split(/\r?\n/).forEach((line, down) => line.split("\t").forEach((part, right) => {
    const target = columns[columns.indexOf(column) + right];
    if (target && rows[down]?.open(target)) desk.review.type(rows[down], target, unmarked(part));
  })));
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
  desk.review.gesture(() => view.fields.forEach((field, column) => view.propose(column, field)));
  view.pick.focus();
}
