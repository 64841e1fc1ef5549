// A review: the rows as proposed and as they stand, what this person has made of them, undo, drafts,
// and how edits are carried over to rows that somebody else has changed. Nothing of a page here.

import { judge, read, same, sum, textOf } from "./values.js";

class Row {
  constructor(group, place, [proposed, standing = proposed, by = null]) {
    Object.assign(this, { group, place, proposed: proposed ?? standing, standing, by, edits: new Map(), choice: undefined });
    this.base = standing ?? this.proposed;
    this.key = group.rowKey === null ? String(place) : JSON.stringify(this.base[group.rowKey] ?? null);
  }
  get included() { return this.choice ?? this.standing !== null; }
  get touched() { return this.edits.size > 0 || this.choice !== undefined; }
  text(column) { return this.edits.get(column.key)?.text ?? textOf(this.base[column.key]); }
  cell(column) {
    const edit = this.edits.get(column.key);
    if (edit) return read(column, edit.text, this.base[column.key]);
    return { value: this.base[column.key] ?? null };
  }
  error(column) {
    if (!this.included || !column.editable) return null;
    const found = this.cell(column);
    return found.error ?? judge(column, found.value);
  }
  differs(column) {
    const found = this.cell(column);
    return "error" in found || !same(found.value, this.proposed[column.key]);
  }
  /** Whether it differs and whether it is invalid; worked out once, until it is touched again. */
  get verdict() {
    this.judged ??= {
      edited: this.group.columns.some((column) => this.differs(column)),
      wrong: this.group.columns.some((column) => this.error(column)),
    };
    return this.judged;
  }
  get edited() { return this.verdict.edited; }
  get wrong() { return this.included && this.verdict.wrong; }
  choose(included) {
    this.choice = included;
    this.judged = undefined;
  }
  put(column, edit) {
    if (edit) this.edits.set(column.key, edit);
    else this.edits.delete(column.key);
    this.judged = undefined;
  }
  get clashes() { return [...this.edits.values()].some((edit) => edit.theirs !== undefined); }
  /** The row as it is sent: with a key only what changed, else all of it. */
  sent() {
    const changed = {};
    for (const column of this.group.columns) {
      const found = this.cell(column);
      if (this.edits.has(column.key) && !same(found.value, this.base[column.key])) changed[column.key] = found.value;
    }
    const { rowKey, fixed } = this.group;
    if (rowKey !== null && !fixed) return { [rowKey]: this.base[rowKey], ...changed };
    return { ...this.base, ...changed };
  }
}

export class Review {
  constructor(data) {
    Object.assign(this, { id: data.id, hash: data.itemsHash, version: data.version, status: data.status, fields: data.fields });
    this.groups = data.groups.map((group) => {
      const made = { ...group };
      made.columns = group.columns.map((column) => ({
        ...column, editable: column.editable && !group.fixed && column.key !== group.rowKey,
      }));
      made.rows = group.rows.map((row, place) => new Row(made, place, row));
      made.totals = made.columns.filter((column) => column.type === "number" && column.editable);
      return made;
    });
    this.done = [];
    this.undone = [];
  }
  get rows() { return this.groups.flatMap((group) => group.rows); }
  get touched() { return this.rows.some((row) => row.touched); }
  count(kind) { return this.rows.filter(KINDS[kind]).length; }

  /** Type *text* into a cell; typing on in the same cell is one step to undo. */
  type(row, column, text) {
    const before = row.edits.get(column.key);
    const base = textOf(row.base[column.key]);
    const after = text === base ? undefined : { text, base: before?.theirs ?? before?.base ?? base };
    const last = this.done.at(-1);
    if (last && last.row === row && last.column === column) last.after = after;
    else this.done.push({ row, column, before, after });
    this.#settle(row, column, after);
  }
  /** Take a row in or leave it out. */
  pick(row, included) {
    const after = included === (row.standing !== null) ? undefined : included;
    this.done.push({ row, before: row.choice, after });
    row.choose(after);
    this.undone = [];
  }
  /** Mine or theirs, where both changed a cell. */
  resolve(row, column, mine) {
    const before = row.edits.get(column.key);
    const after = mine ? { text: before.text, base: before.theirs } : undefined;
    this.done.push({ row, column, before, after });
    this.#settle(row, column, after);
  }
  #settle(row, column, after) {
    row.put(column, after);
    this.undone = [];
  }
  /** The row that changed, or undefined: nothing to undo. */
  undo() { return this.#step(this.done, this.undone, "before"); }
  redo() { return this.#step(this.undone, this.done, "after"); }
  #step(from, to, side) {
    const step = from.pop();
    if (!step) return undefined;
    to.push(step);
    if (step.column) step.row.put(step.column, step[side]);
    else step.row.choose(step[side]);
    return step;
  }

  /** What `editedItems` are to be; undefined: the rows as they stand. */
  editedItems() {
    if (!this.touched) return undefined;
    return Object.fromEntries(this.groups.map((group) => [
      group.name, group.rows.filter((row) => row.included).map((row) => row.sent()),
    ]));
  }
  /** The row that stands at a place of what was sent. */
  sentRow(group, place) {
    return this.groups.find(({ name }) => name === group)?.rows.filter((row) => row.included)[place];
  }
  /** [column, proposed, now] for each column that is summed. */
  totals(group) {
    return group.totals.map((column) => [
      column,
      sum(group.rows.map((row) => row.proposed[column.key])),
      sum(group.rows.filter((row) => row.included).map((row) => row.cell(column).value)) ?? "0",
    ]).filter(([, proposed]) => proposed !== null);
  }
  /** Every difference to what was proposed: rows that are left out, and cells. */
  changes() {
    return this.rows.flatMap((row) => {
      if (!row.included) return [{ row, out: true }];
      return row.group.columns.filter((column) => row.differs(column)).map((column) => ({
        row, column, was: textOf(row.proposed[column.key]), now: textOf(row.cell(column).value),
      }));
    });
  }

  /** What a browser keeps: only what was typed, and the texts that stood there then. */
  draft() {
    const rows = this.rows.filter((row) => row.touched);
    return {
      count: rows.reduce((all, row) => all + row.edits.size + (row.choice === undefined ? 0 : 1), 0),
      rows: rows.map((row) => [row.group.name, row.key, row.choice ?? null,
        [...row.edits].map(([key, edit]) => [key, edit.text, edit.base])]),
    };
  }
  /**
   * Carry a draft over to these rows; how many rows, and how many clashes. Where the text that stood
   * in a cell has become another one meanwhile, both are kept, and the person chooses.
   */
  restore(draft) {
    const known = new Map(this.rows.map((row) => [`${row.group.name}\n${row.key}`, row]));
    for (const [name, key, choice, cells] of draft.rows) {
      const row = known.get(`${name}\n${key}`);
      if (!row) continue;
      if (choice !== null && choice !== (row.standing !== null)) row.choose(choice);
      for (const [key, text, base] of cells) {
        const column = row.group.columns.find((one) => one.key === key && one.editable);
        const now = column && textOf(row.base[key]);
        if (!column || now === text) continue;
        row.put(column, now === base ? { text, base } : { text, base, theirs: now });
      }
    }
    return { rows: this.rows.filter((row) => row.touched).length, clashes: this.count("clashes") };
  }
}

/** What rows may be filtered by. */
export const KINDS = {
  all: () => true,
  edited: (row) => row.included && row.edited,
  out: (row) => !row.included,
  wrong: (row) => row.wrong,
  clashes: (row) => row.clashes,
  others: (row) => row.by !== null,
};
