// A review: the rows as proposed and as they stand, the edits of this person, undo, drafts, and clashes with the edits
// of others. Independent of the page.

import { Exact, difference, judge, read, same, asText, sum, textOf, visible } from "./values.js";

class Row {
  /** *added*: by this person, just now. */
  constructor(group, place, [proposed, standing = proposed, by = null], added = false) {
    Object.assign(this, { group, place, proposed: proposed ?? standing ?? { __proto__: null }, standing, by, added, edits: new Map(), choice: undefined });
    this.base = standing ?? this.proposed;
    this.key = added ? `+${place}` : group.rowKey === null ? String(place) : JSON.stringify(this.base[group.rowKey] ?? null);
  }
  get included() { return this.choice ?? this.standing !== null; }
  get touched() { return this.edits.size > 0 || this.choice !== undefined; }
  /** The proposal as a field shows it. */
  was(column) { return asText(column, this.proposed[column.key]); }
  /** The text in the field. */
  text(column) { return this.edits.get(column.key)?.text ?? asText(column, this.base[column.key]); }
  cell(column) {
    const edit = this.edits.get(column.key);
    const proposed = this.proposed[column.key];
    // the text of what was proposed stands for that, though it may lack what cannot be seen
    const again = edit?.text && edit.text === this.was(column) && !(column.type === "json" && typeof proposed === "string");
    if (again) return { value: proposed };
    if (edit) return read(column, edit.text, this.base[column.key]);
    return { value: this.base[column.key] ?? null };
  }
  /** Whether a cell may be typed into: of a row that is added, every one. */
  open(column) { return column.editable || this.added; }
  /** The problem of a cell. An unedited row is valid as proposed; an edited one needs required values, and edits that fit. */
  error(column) {
    if (!this.included || !(this.edited || this.added)) return null;
    const found = this.cell(column);
    const required = column.required || (this.added && column.key === this.group.rowKey);
    return found.error ?? judge({ ...column, required }, found.value, !this.added && same(found.value, this.base[column.key]));
  }
  differs(column) {
    const found = this.cell(column);
    return "error" in found || !same(found.value, this.proposed[column.key]);
  }
  /** Whether the row differs and is invalid; computed once, until the next edit. */
  get verdict() {
    if (!this.judged) {
      this.judged = { edited: this.group.columns.some((column) => this.differs(column)) };
      this.judged.wrong = this.group.columns.some((column) => this.error(column));
    }
    return this.judged;
  }
  /** The text for *Find*; computed once, until the next edit. */
  get says() {
    return (this.words ??= this.group.columns.map((column) => this.text(column)).join("\n").toLowerCase());
  }
  get edited() { return this.verdict.edited; }
  get wrong() { return this.included && this.verdict.wrong; }
  choose(included) {
    this.choice = included;
    this.judged = this.words = undefined;
  }
  put(column, edit) {
    if (edit) this.edits.set(column.key, edit);
    else this.edits.delete(column.key);
    this.judged = this.words = undefined;
  }
  /** Drop all edits of the row. */
  forget() {
    this.edits.clear();
    this.choose(undefined);
  }
  get clashes() { return [...this.edits.values()].some((edit) => edit.theirs !== undefined); }
}

export class Review {
  constructor(data) {
    Object.assign(this, data);
    this.groups = data.groups.map((group) => {
      const made = { ...group };
      made.columns = group.columns.map((column) => ({
        ...column, editable: column.editable && !group.fixed && column.key !== group.rowKey,
      }));
      made.rows = group.rows.map((row, place) => new Row(made, place, row));
      for (const column of made.columns) column.signed = column.type === "number" && group.rows.some((row) => row.some((one) => textOf(one?.[column.key])[0] === "-"));
      made.totals = made.columns.filter((column) => column.type === "number" && column.editable);
      return made;
    });
    // each step: the changes of one gesture
    this.done = [];
    this.undone = [];
  }
  get rows() { return this.groups.flatMap((group) => group.rows); }
  count(kind) { return this.rows.filter(KINDS[kind]).length; }

  /**
   * Type *text* into a cell; typing on in the same cell is one step to undo. What is seen is what is meant: the text
   * that stood there is no edit, though it may have lacked what cannot be seen, and no edit has any of that.
   */
  type(row, column, text) {
    const before = row.edits.get(column.key);
    const base = textOf(row.base[column.key]);
    if (column.type !== "enum") text = visible(text);
    const after = text === asText(column, row.base[column.key]) ? undefined : { text, base: before?.theirs ?? before?.base ?? base };
    if (!before && !after) return;
    const [last, more] = (!this.made && this.done.at(-1)) || [];
    const first = last?.row === row && last.column === column && !more ? this.done.pop()[0].before : before;
    this.settle(row, column, first, after);
  }
  /** What *work* does is one step to undo. */
  gesture(work) {
    this.made = [];
    work();
    if (this.made.length) this.done.push(this.made);
    this.made = null;
  }
  #did(step) {
    if (this.made) this.made.push(step);
    else this.done.push([step]);
    this.undone = [];
  }
  /** Add a row of this person; it counts while it is ticked. */
  add(group) {
    const row = new Row(group, group.rows.length, [null, null], true);
    group.rows.push(row);
    return row;
  }
  /** Take a row in or leave it out. */
  pick(row, included) {
    const after = included === (row.standing !== null) ? undefined : included;
    this.#did({ row, before: row.choice, after });
    row.choose(after);
  }
  settle(row, column, before, after) {
    this.#did({ row, column, before, after });
    row.put(column, after);
  }
  /** The first cell or row that changed, or undefined: nothing to undo. */
  undo() { return this.#step(this.done, this.undone, "before"); }
  redo() { return this.#step(this.undone, this.done, "after"); }
  #step(from, to, side) {
    const steps = from.pop();
    if (!steps) return undefined;
    to.push(steps.reverse());
    for (const step of steps) {
      if (step.column) step.row.put(step.column, step[side]);
      else step.row.choose(step[side]);
    }
    return side === "after" ? steps[0] : steps.at(-1);
  }

  /** [column, proposed, now] for each column with a total; untouched rows are summed once. */
  totals(group) {
    const touched = group.rows.filter((row) => row.touched);
    return group.totals.map((column) => {
      const standing = (row) => row.standing?.[column.key];
      column.was ??= sum(group.rows.map((row) => row.proposed[column.key]));
      column.all ??= sum(group.rows.map(standing)) ?? "0";
      const rest = new Exact(difference(sum(touched.map(standing)) ?? "0", column.all));
      return [column, column.was, sum([rest, ...touched.map((row) => row.included && row.cell(column).value)])];
    }).filter((one) => one[1] !== null);
  }
  /** The draft for the browser: the typed texts, and the texts that stood there before. */
  draft() {
    const rows = this.rows.filter((row) => row.touched);
    return {
      count: rows.reduce((all, row) => all + row.edits.size + (row.choice !== undefined), 0),
      rows: rows.map((row) => [row.group.name, row.key, row.choice ?? null,
        [...row.edits].map(([key, edit]) => [key, edit.text, edit.base])]),
    };
  }
}

/** The filters of rows. */
export const KINDS = {
  all: (row) => row.included || !row.added,
  edited: (row) => row.included && (row.edited || row.added),
  out: (row) => !row.included && !row.added,
  wrong: (row) => row.wrong,
  clashes: (row) => row.clashes,
  others: (row) => row.by !== null,
};
