// The tables of an approval, a hundred rows at a time.

import { _ } from "./app.js";
import { brief, button, composes, desk, make, nameOf } from "./desk.js";
import { KINDS } from "./review.js";
import { isDate, asText, format, textOf, unmarked, visible } from "./values.js";

const ROWS = 100;
/** Rows that are drawn at once during typing in *Find*; the others follow. */
const FEW = 15;
const LONG = 2_000;
/** The text for a date that the browser cannot read: an error, because it is no date. */
const UNREAD = "?";

/** One group: filters, the rows that fit, their pages. */
export class GroupView {
  constructor(section, group) {
    Object.assign(this, { section, group, kind: "all", find: "", from: 0 });
    this.pills = make("div", { className: "pills", role: "group", ariaLabel: _("Which rows") });
    const find = make("input", { type: "search", placeholder: _("Find in rows"), ariaLabel: _("Find in rows") });
    find.addEventListener("input", () => { this.find = find.value.toLowerCase(); this.from = 0; this.draw(FEW); });
    const place = section.querySelector(".find");
    place.before(this.pills);
    place.append(find);
    if (group.adds) section.querySelector(".takes").prepend(button(_("Add a row"), () => desk.rare("addRow", this), { className: "small" }));
    section.querySelector(".pager")?.remove();
    this.pager = make("p", { className: "pager quiet" });
    section.append(this.pager);
    section.classList.add("ready");
    this.table = section.querySelector("table");
    this.body = this.table.tBodies[0];
    this.#head();
    // a frame that scrolls sideways has a height of its own, so that the head stays
    const frame = this.table.parentElement;
    const fit = new ResizeObserver(() => frame.classList.toggle("wide", this.table.offsetWidth > frame.offsetWidth));
    [frame, this.table].forEach((one) => fit.observe(one));
  }
  #head() {
    const all = make("input", { type: "checkbox", ariaLabel: _("All shown rows") });
    all.addEventListener("change", () => {
      desk.review.gesture(() => this.rows().forEach((row) => row.included !== all.checked && desk.review.pick(row, all.checked)));
      desk.changed();
      this.draw();
    });
    this.all = all;
    const head = this.table.rows[0];
    this.group.columns.forEach((column, at) => {
      if (!column.editable) return;
      const label = _("Set {column} in all shown rows", { column: column.title });
      head.cells[at].append(button("⇊", () => desk.rare("setAll", this, column), { title: label, ariaLabel: label }));
    });
    head.prepend(make("th", { className: "pick", scope: "col" }, all), make("th", { className: "brief", scope: "col" }, _("Row")));
  }
  rows() {
    return this.group.rows.filter((row) => KINDS.all(row) && KINDS[this.kind](row) && (!this.find || row.says.includes(this.find)));
  }
  draw(count = ROWS) {
    clearTimeout(this.rest);
    const rows = this.found = this.rows();
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
  /** For paper: all found rows, as text. */
  print() {
    const word = (column, text) => (column.type === "boolean" && { __proto__: null, true: _("yes"), false: _("no") }[text]) || text;
    const cell = (row, column) => make("td", { className: column.type === "number" ? "number" : "" }, ...(row.differs(column) ? [make("s", {}, word(column, row.was(column))), " "] : []), word(column, row.text(column)));
    const lines = this.rows().map((row) => make("tr", { className: row.included ? "" : "out" }, make("td", { className: "pick" }, row.included ? "✓" : ""), make("td", { className: "brief" }), ...row.group.columns.map((column) => cell(row, column))));
    this.body.replaceChildren(...lines);
    this.pager.replaceChildren();
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
  /** Update the numbers of the filters and the checkbox of all rows. */
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
  /** Draw a row again, because a cell may need another field now, and go to that cell. */
  redraw(row, column) {
    const old = this.drawn.get(row);
    const made = new RowView(this, row);
    made.element.classList.toggle("open", old.element.classList.contains("open"));
    old.element.replaceWith(made.element);
    this.drawn.set(row, made);
    made.fields.get(column)?.focus();
  }
  /** The field of a cell, on any page. */
  field(row, column) {
    this.#more(ROWS);
    if (!this.drawn.has(row)) {
      Object.assign(this, { kind: "all", find: "", from: Math.floor(this.group.rows.indexOf(row) / ROWS) * ROWS });
      this.draw();
    }
    const view = this.drawn.get(row);
    view.element.classList.add("open");
    const field = view.fields.get(column);
    field?.isConnected || field?.show();
    return field;
  }
}

class RowView {
  constructor(view, row) {
    Object.assign(this, { view, row, fields: new Map(), notes: new Map() });
    this.pick = make("input", { type: "checkbox" });
    this.pick.addEventListener("change", () => { desk.review.pick(row, this.pick.checked); desk.changed(); this.paint(); });
    this.back = button("↺", () => desk.rare("revert", this), { ariaLabel: _("Back to what was proposed: {row}", { row: nameOf(row) }) });
    this.brief = button("", () => {
      this.brief.ariaExpanded = String(this.element.classList.toggle("open"));
    }, { ariaExpanded: "false" });
    this.element = make("tr", {}, make("td", { className: "pick" }, this.pick, this.back), make("td", { className: "brief" }, this.brief), ...row.group.columns.map((column) => this.#cell(column)));
    this.paint();
  }
  #cell(column) {
    const cell = make("td", { className: column.type === "number" ? "number" : "", "data-title": visible(column.title) + (column.required ? "*" : "") });
    const { row } = this;
    const text = row.text(column);
    const note = make("div", { id: `note-${this.view.section.dataset.group}-${this.row.place}-${column.key}` });
    this.notes.set(column, note);
    if (!row.open(column)) {
      cell.append(text.length > LONG ? inPart(text, make("div", { className: "long", tabIndex: 0 }, text)) : visible(text), note);
      return cell;
    }
    const field = control(column, text, row.cell(column).value, row.base[column.key]);
    field.setAttribute("aria-describedby", note.id);
    this.fields.set(column, field);
    field.addEventListener("input", () => this.#typed(column, valueOf(field)));
    field.addEventListener("keydown", (event) => this.#key(event, column));
    field.addEventListener("paste", (event) => this.#paste(event, column));
    // a half-typed date, or one that is cleared then, fires no input event
    if (field.type === "date") field.addEventListener("blur", () => field.isConnected && field.validity.badInput === (row.text(column) !== UNREAD) && this.#typed(column, valueOf(field)));
    cell.append(text.length > LONG ? inPart(text, field) : field, note);
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
    const isLong = (field.value + this.row.was(column)).includes("\n");
    if (down && !isLong && (event.key === "Enter" || (field.tagName !== "SELECT" && field.type !== "date"))) {
      event.preventDefault();
      const rows = this.view.shown;
      const next = this.view.drawn.get(rows[rows.indexOf(this.row) + down]);
      next?.fields.get(column)?.focus();
    } else if (event.key === "Escape" && this.row.differs(column)) {
      event.preventDefault();
      this.propose(column);
      this.view.redraw(this.row, column);
      desk.changed();
    }
  }
  #paste(event, column) {
    const text = event.clipboardData.getData("text/plain");
    // a single word is pasted at the cursor
    if (!text || (event.target.matches("[type=text], textarea") && !/[\t\r\n]/.test(text) && text === unmarked(text))) return;
    event.preventDefault();
    desk.rare("paste", this, column, text);
  }
  propose(column) {
    if (this.row.differs(column)) desk.review.type(this.row, column, this.row.was(column));
  }
  paint() {
    const { row, element } = this;
    this.pick.checked = row.included;
    this.back.hidden = !row.edited || !row.included || row.added;
    const names = { row: nameOf(row), who: row.by };
    this.pick.ariaLabel = row.included ? names.row : row.by && row.choice === undefined ? _("{row}, left out by {who}", names) : _("{row}, left out", names);
    element.classList.toggle("out", !row.included);
    element.classList.toggle("edited", row.included && row.edited);
    element.classList.toggle("wrong", row.wrong && this.#tells());
    for (const [column, note] of this.notes) this.#paintCell(column, note);
    this.#paintBrief();
  }
  /** Whether errors are shown: in a row that is added only in cells that were typed into, until the review. */
  #tells(column) { return !this.row.added || this.row.told || this.row.edits.has(column?.key); }
  #paintCell(column, note) {
    const { row } = this;
    const differs = row.differs(column);
    const error = this.#tells(column) && row.error(column);
    const was = brief(row.was(column));
    const wrong = error ? [make("small", { className: "wrong" }, error)] : [];
    const field = this.fields.get(column);
    if (!field) {
      // without a field, the checkbox of the row takes the focus
      if (error) this.pick.setAttribute("aria-describedby", note.id);
      return note.replaceChildren(...wrong);
    }
    const edit = row.edits.get(column.key);
    note.parentElement.classList.toggle("edited", differs);
    field.disabled = !row.included;
    const parts = [column.title, nameOf(row), ...(differs ? [_("edited"), _("was {was}", { was: was || _("empty") })] : []), ...(error ? [_("invalid: {error}", { error })] : [])];
    field.ariaLabel = visible(parts.join(", "));
    field.ariaInvalid = Boolean(error);
    const notes = [];
    if (differs) notes.push(make("small", {}, make("s", {}, was || _("empty"))));
    const { value } = row.cell(column);
    const isRead = differs && !error && ["number", "date"].includes(column.type) && asText(column, value) !== field.value;
    if (isRead) notes.push(make("small", {}, _("read as {number}", { number: column.type === "date" ? value : format(textOf(value)) })));
    if (differs && !edit && row.by) notes.push(make("small", {}, _("by {who}", { who: row.by })));
    notes.push(...wrong);
    if (edit?.theirs !== undefined) notes.push(desk.clash(this, column, edit));
    note.replaceChildren(...notes);
  }
  /** The row on a phone. */
  #paintBrief() {
    const { row } = this;
    const [first, second] = row.group.columns;
    const last = row.group.totals[0];
    const head = make("span", {}, make("b", {}, nameOf(row)), " ", second && first ? brief(row.text(first.key === row.group.rowKey ? second : first)) : "");
    this.brief.replaceChildren(head, last ? make("span", { className: "number" }, row.text(last)) : "");
    const changes = row.included ? row.group.columns.filter((column) => row.differs(column)) : [];
    const lines = changes.map((column) => make("span", { className: "change quiet" }, make("bdi", {}, column.title), " ", make("s", {}, brief(row.was(column)) || _("empty")), " ", make("b", {}, brief(row.text(column)) || _("empty"))));
    this.brief.parentElement.replaceChildren(this.brief, ...lines);
  }
}

/** The beginning of a long text, with a button that replaces it by *whole*. */
function inPart(text, whole) {
  const show = () => { part.replaceWith(whole); whole.focus(); };
  const part = make("span", {}, brief(text), " ", button(_("Show all {count} characters", { count: format(text.length) }), show, { className: "small" }));
  whole.show = show;
  return part;
}

/**
 * The field for a column with *text* of *value*; *base*: the stored value. The decimal keypad of some phones has no
 * minus, so a column with negative numbers uses the whole keyboard.
 */
export function control(column, text, value = null, base = null) {
  const isSaid = column.type === "boolean" && typeof value === "boolean";
  if (isSaid && base !== null) return make("input", { type: "checkbox", checked: value });
  if (isSaid) text = String(value);
  const options = column.type === "enum" ? column.options.map(textOf) : column.type === "boolean" && (isSaid || !text.trim()) && ["true", "false"];
  if (options) {
    const texts = options.includes(text) || (text === "" && !column.required) ? options : [text, ...options];
    const names = { true: _("yes"), false: _("no") };
    const all = column.required || texts.includes("") ? texts : ["", ...texts];
    return make("select", {}, ...all.map((one) => make("option", { value: one, selected: one === text }, (column.type === "boolean" && names[one]) || one || "–")));
  }
  if (column.type === "string" || column.type === "json") return make("textarea", { value: text, rows: Math.min(text.split("\n").length, 8), autocomplete: "off" });
  return make("input", { type: column.type === "date" && (text === "" || isDate(text)) ? "date" : "text", value: text, autocomplete: "off", inputMode: column.type === "number" && !column.signed ? "decimal" : "text" });
}

export function valueOf(field) {
  return field.type === "checkbox" ? String(field.checked) : field.validity.badInput ? UNREAD : field.value;
}
