// The tables of an approval, a hundred rows at a time.

import { _ } from "./app.js";
import { button, composes, desk, make, nameOf } from "./desk.js";
import { KINDS } from "./review.js";
import { shown, textOf, unmarked, visible } from "./values.js";

const ROWS = 100;
/** Rows that are drawn while somebody types what to find; the rest follows. */
const FEW = 15;

/** What is seldom done is loaded when it is. */
async function editing(deed, ...facts) {
  return (await import("./editing.js"))[deed](...facts);
}

/** One group: filters, the rows that fit, their pages. */
export class GroupView {
  constructor(section, group) {
    Object.assign(this, { section, group, kind: "all", find: "", from: 0 });
    this.pills = make("div", { className: "pills", role: "group", ariaLabel: _("Which rows") });
    const find = make("input", { type: "search", placeholder: _("Find in rows"), ariaLabel: _("Find in rows") });
    find.addEventListener("input", () => { this.find = find.value.toLowerCase(); this.from = 0; this.draw(FEW); });
    const add = group.adds ? [button(_("Add a row"), () => editing("addRow", this), { className: "small" })] : [];
    section.querySelector(".tools").append(this.pills, ...add, find);
    section.querySelector(".pager")?.remove();
    this.pager = make("p", { className: "pager quiet" });
    section.append(this.pager);
    section.classList.add("ready");
    this.table = section.querySelector("table");
    this.body = this.table.tBodies[0];
    this.#head();
  }
  #head() {
    const all = make("input", { type: "checkbox", ariaLabel: _("All shown rows") });
    all.addEventListener("change", () => {
      desk.review.gesture(() => this.rows().forEach((row) => row.included !== all.checked && desk.review.pick(row, all.checked)));
      desk.changed();
      this.draw();
    });
    this.all = all;
    const cells = this.group.columns.map((column) => {
      const cell = make("th", { scope: "col", className: column.type === "number" ? "number" : "" }, make("bdi", {}, column.title));
      if (column.required) cell.append(make("span", { className: "must", ariaHidden: "true" }, "*"));
      if (column.editable) {
        const label = _("Set {column} in all shown rows", { column: column.title });
        cell.append(button("⇊", () => editing("setAll", this, column), { title: label, ariaLabel: label }));
      }
      return cell;
    });
    const brief = make("th", { className: "brief", scope: "col" }, _("Row"));
    this.table.tHead.replaceChildren(make("tr", {}, make("th", { className: "pick", scope: "col" }, all), brief, ...cells));
  }
  rows() {
    return this.group.rows.filter((row) => KINDS.all(row) && KINDS[this.kind](row) && (!this.find || row.says.includes(this.find)));
  }
  draw(count = ROWS) {
    clearTimeout(this.rest);
    const rows = this.rows();
    this.from = Math.max(0, Math.min(this.from, Math.floor((rows.length - 1) / ROWS) * ROWS));
    this.shown = rows.slice(this.from, this.from + ROWS);
    this.drawn = new Map();
    this.body.replaceChildren();
    this.#more(count);
    this.#page(rows.length);
    if (count === ROWS) this.mark();
    else this.rest = setTimeout(() => this.#more(ROWS), 100);
  }
  #more(count) {
    const fresh = this.shown.slice(this.drawn.size, count).map((row) => new RowView(this, row));
    for (const view of fresh) this.drawn.set(view.row, view);
    this.body.append(...fresh.map((view) => view.element));
  }
  /** On paper: every row that is found, as text. */
  print() {
    const word = (column, text) => (column.type === "boolean" && { true: _("yes"), false: _("no") }[text]) || text;
    const cell = (row, column) => make("td", { className: column.type === "number" ? "number" : "" }, ...(row.differs(column) ? [make("s", {}, word(column, row.was(column))), " "] : []), word(column, row.text(column)));
    const lines = this.rows().map((row) => make("tr", { className: row.included ? "" : "out" }, make("td", { className: "pick" }, row.included ? "✓" : ""), make("td", { className: "brief" }), ...row.group.columns.map((column) => cell(row, column))));
    this.body.replaceChildren(...lines);
  }
  #page(count) {
    const to = Math.min(count, this.from + ROWS);
    const text = count ? _("rows {from}–{to} of {count}", { from: this.from + 1, to, count }) : _("No row matches");
    const turn = (by, ariaLabel, disabled) => button(by < 0 ? "‹" : "›", () => {
      this.from += by * ROWS;
      this.draw();
      this.section.scrollIntoView();
    }, { ariaLabel, disabled });
    const turns = count > ROWS ? [turn(-1, _("Rows before"), this.from === 0), turn(1, _("Next rows"), to === count)] : [];
    this.pager.replaceChildren(make("span", {}, text), ...turns);
  }
  /** Numbers on the filters, and the box of all rows. */
  mark() {
    const names = { all: _("All"), edited: _("Edited"), out: _("Left out"), wrong: _("Invalid"), clashes: _("Clashes"), others: _("Changed by others") };
    this.pills.replaceChildren(...Object.keys(KINDS).flatMap((kind) => {
      const count = this.group.rows.filter(KINDS[kind]).length;
      if (kind !== "all" && kind !== this.kind && !count) return [];
      const text = kind === "all" ? names.all : `${names[kind]} ${count}`;
      return [button(text, () => this.#filter(kind), { ariaPressed: String(kind === this.kind) })];
    }));
    const rows = this.group.rows.filter(KINDS.all);
    const inside = rows.filter((row) => row.included).length;
    this.all.checked = inside === rows.length;
    this.all.indeterminate = inside > 0 && !this.all.checked;
  }
  #filter(kind) {
    Object.assign(this, { kind, from: 0 });
    this.draw();
    this.pills.querySelector("[aria-pressed=true]").focus();
  }
  /** The field of a cell, on whatever page it is. */
  field(row, column) {
    this.#more(ROWS);
    if (!this.drawn.has(row)) {
      Object.assign(this, { kind: "all", find: "", from: Math.floor(this.group.rows.indexOf(row) / ROWS) * ROWS });
      this.draw();
    }
    const view = this.drawn.get(row);
    view.element.classList.add("open");
    return view.fields.get(column);
  }
}

class RowView {
  constructor(view, row) {
    Object.assign(this, { view, row, fields: new Map(), notes: new Map() });
    this.pick = make("input", { type: "checkbox" });
    this.pick.addEventListener("change", () => { desk.review.pick(row, this.pick.checked); desk.changed(); this.paint(); });
    this.back = button("↺", () => editing("revert", this), { ariaLabel: _("Back to what was proposed: {row}", { row: nameOf(row) }) });
    this.brief = button("", () => {
      this.brief.ariaExpanded = String(this.element.classList.toggle("open"));
    }, { ariaExpanded: "false" });
    this.element = make("tr", {}, make("td", { className: "pick" }, this.pick, this.back), make("td", { className: "brief" }, this.brief), ...row.group.columns.map((column) => this.#cell(column)));
    this.paint();
  }
  #cell(column) {
    const cell = make("td", { className: column.type === "number" ? "number" : "", "data-title": visible(column.title) });
    if (!this.row.open(column)) {
      cell.append(visible(this.row.text(column)));
      return cell;
    }
    const texts = [this.row.base, this.row.proposed].map((one) => textOf(one[column.key]));
    const field = control(column, this.row.text(column), this.row.base[column.key], texts.some((text) => /[\r\n]/.test(text)));
    const note = make("div", { id: `note-${this.view.section.dataset.group}-${this.row.place}-${column.key}` });
    field.setAttribute("aria-describedby", note.id);
    this.fields.set(column, field);
    this.notes.set(column, note);
    field.addEventListener("input", () => this.#typed(column, valueOf(field)));
    field.addEventListener("keydown", (event) => this.#key(event, column));
    field.addEventListener("paste", (event) => this.#paste(event, column));
    cell.append(field, note);
    return cell;
  }
  #typed(column, text) {
    const field = this.fields.get(column);
    const clear = visible(text);
    if (clear !== text && field.tagName !== "SELECT") field.value = clear;
    desk.review.type(this.row, column, text);
    this.paint();
    desk.changed();
  }
  #key(event, column) {
    const field = event.target;
    const down = { ArrowDown: 1, ArrowUp: -1, Enter: event.shiftKey ? -1 : 1 }[event.key];
    if (event.ctrlKey || event.metaKey || composes(event)) return;
    if (down && field.tagName !== "TEXTAREA" && (event.key === "Enter" || (field.tagName !== "SELECT" && field.type !== "date"))) {
      event.preventDefault();
      const rows = this.view.shown;
      const next = this.view.drawn.get(rows[rows.indexOf(this.row) + down]);
      next?.fields.get(column)?.focus();
    } else if (event.key === "Escape" && this.row.differs(column)) {
      event.preventDefault();
      this.propose(column, field);
    }
  }
  #paste(event, column) {
    const text = event.clipboardData.getData("text/plain").replace(/\r?\n$/, "");
    if (text === unmarked(text) && (!/[\t\n]/.test(text) || event.target.tagName === "TEXTAREA")) return;
    event.preventDefault();
    editing("paste", this, column, text);
  }
  propose(column, field) {
    if (!this.row.differs(column)) return;
    this.#typed(column, this.row.was(column));
    setField(field, this.row.text(column));
  }
  paint() {
    const { row, element } = this;
    this.pick.checked = row.included;
    this.back.hidden = !row.edited || !row.included || row.added;
    const names = { row: nameOf(row), who: row.by };
    this.pick.ariaLabel = row.included ? names.row : row.by && row.choice === undefined ? _("{row}, left out by {who}", names) : _("{row}, left out", names);
    element.classList.toggle("out", !row.included);
    element.classList.toggle("edited", row.included && row.edited);
    element.classList.toggle("wrong", Boolean(row.wrong));
    for (const [column, field] of this.fields) this.#paintCell(column, field);
    this.#paintBrief();
  }
  #paintCell(column, field) {
    const { row } = this;
    const differs = row.differs(column);
    const error = row.error(column);
    const was = row.was(column);
    const note = this.notes.get(column);
    const edit = row.edits.get(column.key);
    field.parentElement.classList.toggle("edited", differs);
    field.disabled = !row.included;
    const parts = [column.title, nameOf(row), ...(differs ? [_("edited"), _("was {was}", { was: was || _("empty") })] : []), ...(error ? [_("invalid: {error}", { error })] : [])];
    field.ariaLabel = visible(parts.join(", "));
    field.ariaInvalid = Boolean(error);
    const notes = [];
    if (differs) notes.push(make("small", {}, make("s", {}, was || _("empty"))));
    const read = differs && !error && column.type === "number" && textOf(row.cell(column).value);
    if (read && shown(read, { useGrouping: false }) !== field.value) notes.push(make("small", {}, _("read as {number}", { number: shown(read) })));
    if (differs && !edit && row.by) notes.push(make("small", {}, _("by {who}", { who: row.by })));
    if (error) notes.push(make("small", { className: "wrong" }, error));
    if (edit?.theirs !== undefined) notes.push(desk.clash(this, column, field, edit));
    note.replaceChildren(...notes);
  }
  /** A row on a phone. */
  #paintBrief() {
    const { row } = this;
    const [first, second] = row.group.columns;
    const last = row.group.totals[0];
    const head = make("span", {}, make("b", {}, nameOf(row)), " ", second && first ? row.text(first.key === row.group.rowKey ? second : first) : "");
    this.brief.replaceChildren(head, last ? make("span", { className: "number" }, row.text(last)) : "");
    const changes = row.included ? row.group.columns.filter((column) => row.differs(column)) : [];
    const lines = changes.map((column) => make("span", { className: "change quiet" }, make("bdi", {}, column.title), " ", make("s", {}, row.was(column) || _("empty")), " ", make("b", {}, row.text(column) || _("empty"))));
    this.brief.parentElement.replaceChildren(this.brief, ...lines);
  }
}

/**
 * The native field for a column; *long*: for a text with line ends, which a field of one line would drop. The decimal
 * keypad of some phones has no minus, so numbers of a column with negative ones are typed on the whole keyboard.
 */
export function control(column, text, value, long = false) {
  if (column.type === "boolean" && value !== undefined && value !== null) return make("input", { type: "checkbox", checked: text === "true" });
  const options = { enum: column.options.map(textOf), boolean: ["true", "false"] }[column.type];
  if (options) {
    const texts = options.includes(text) || (text === "" && !column.required) ? options : [text, ...options];
    const names = { true: _("yes"), false: _("no") };
    const all = column.required || texts.includes("") ? texts : ["", ...texts];
    return make("select", {}, ...all.map((one) => make("option", { value: one, selected: one === text }, (column.type === "boolean" && names[one]) || one || "–")));
  }
  if (column.type === "string" && (long || text.includes("\n"))) return make("textarea", { value: text, rows: Math.min(text.split("\n").length, 8), autocomplete: "off" });
  const isDate = column.type === "date" && (text === "" || /^\d{4}-\d\d-\d\d$/.test(text));
  return make("input", { type: isDate ? "date" : "text", value: text, autocomplete: "off", inputMode: column.type === "number" && !column.signed ? "decimal" : "text" });
}

export function valueOf(field) {
  return field.type === "checkbox" ? String(field.checked) : field.value;
}

export function setField(field, text) {
  if (field.type === "checkbox") field.checked = text === "true";
  else field.value = text;
}
