// Values of cells: parsing, texts, and the checks of the server. Independent of the page.

import { _ } from "./app.js";

/** A number that a double cannot hold: stored, compared and sent as written. */
export class Exact {
  constructor(source) { this.source = source; }
  toJSON() { return JSON.rawJSON(this.source); }
}

/** Parse JSON with every number intact. Objects have no prototype: only own fields of a row are read. */
export function parse(text) {
  return JSON.parse(text, (key, value, { source }) => {
    if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value) ? new Exact(source) : value;
    return value === null || typeof value !== "object" || Array.isArray(value) ? value : Object.setPrototypeOf(value, null);
  });
}

/** The number that *source* writes; undefined if storing would change it. The server has the same rule. */
function numeral(source) {
  const value = Number(source);
  if (/^-?\d+$/.test(source)) {
    if (source.length > 20 || BigInt(source) !== BigInt.asIntN(64, source)) return undefined;
    return Number.isSafeInteger(value) ? value : new Exact(source);
  }
  return Number.isFinite(value) && digits(source) === digits(String(value)) ? value : undefined;
}

/** A decimal text in the one form that equal numbers have. */
function digits(text) {
  const [, sign, whole, part = "", power = 0] = /^(-?)(\d*)\.?(\d*)(?:e(.+))?$/i.exec(text);
  const all = (whole + part).replace(/^0+/, "");
  const short = all.replace(/0+$/, "");
  return short && `${sign}${short}e${all.length - short.length - part.length + Number(power)}`;
}

/** Whether two JSON values are equal, whatever the order of their keys. */
export function same(a, b) {
  return a === b || canonical(a ?? null) === canonical(b ?? null);
}

function canonical(value) {
  return JSON.stringify(value, (key, part) => {
    if (part === null || typeof part !== "object" || Array.isArray(part) || part instanceof Exact || JSON.isRawJSON(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** A value as a cell shows it. */
export function textOf(value) {
  if (value === null || value === undefined) return "";
  if (value instanceof Exact) return value.source;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Conventions of the reader's languages, from the server: decimal signs, and the orders of dates. */
const { signs, orders } = document.documentElement.dataset;

const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text with a sign for each invisible character and each that turns text around. `visible.py` has the same rule. */
export function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(UNSEEN, "\ufffd");
}

/** A pasted text without the mark that the CSV puts before a formula. `spreadsheet.py` has the same rule. */
export const unmarked = (text) => text.replace(/^'(?='*[=+\-@\t\r])/, "");
const isNumber = (value) => typeof value === "number" || value instanceof Exact;

/** The text of a value in a field: a number has the reader's decimal sign; of options it is the value of the field. */
export function asText(column, value) {
  const text = textOf(value);
  if (column.type === "enum") return text;
  return visible(column.type === "number" && isNumber(value) ? text.replace(/^(-?\d+)\./, `$1${signs[0]}`) : text);
}

/** Whether a value counts as missing: null, or a text without visible characters. */
const isBlank = (value) => value === null || value === undefined || (typeof value === "string" && !value.replace(UNSEEN, "").replace(/[\u200c\u200d]/g, "").trim());

/** The problem with a value, in words; null: none. *known*: a proposed value is valid in any type. The server has the same rules. */
export function judge(column, value, known = false) {
  if (column.required && isBlank(value)) return _("is required");
  if (known || value === null || value === undefined) return null;
  if (!FITS[column.type](value, column)) return WANTED[column.type];
  return isSendable(value, DEEPEST) ? null : TOO_LONG;
}

const FITS = {
  string: (value) => typeof value === "string",
  number: isNumber,
  boolean: (value) => typeof value === "boolean",
  date: (value) => typeof value === "string" && isDate(value),
  enum: (value, column) => column.options.some((option) => same(option, value)),
  json: () => true,
};
const WANTED = {
  string: _("must be a text"),
  number: _("must be a number"),
  boolean: _("must be yes or no"),
  date: _("must be a date like 2026-12-31"),
  enum: _("must be one of the options"),
};
const TOO_LONG = _("has more digits than can be stored");

/** Whether a text is a date in its stored form. */
export const isDate = (text) => dateOf(...text.split("-")) === text;

function dateOf(year, month = "", day = "") {
  const text = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  return year > 0 && new Date(text).toJSON()?.startsWith(text) ? text : null;
}

const WRITTEN = /^(\d\d?|\d{4})([-/.])\s?(\d\d?)\2\s?(\d\d?|\d{4})\.?(?:,?[T\s]\s*(?:0?0[:.]00[:.0]*|12:00[:0]*\s?AM)Z?)?$/;
const inDoubt = (one, other, exact) => ({ error: _("is {one} or {other}? Write {one} or {exact}", { one, other, exact }) });

/** `31.12.2026`, `12/31/2026`, also followed by midnight; an ambiguous date is an error. `written_dates.py` has the same rule. */
function calendar(typed) {
  const [, one = "", sign, other = "", last = ""] = WRITTEN.exec(typed.trim()) ?? [];
  const byDay = dateOf(last, other, one);
  const byMonth = dateOf(last, one, other);
  const value = dateOf(one, other, last) ?? byDay ?? byMonth ?? (typed.trim() || null);
  if (!byDay || !byMonth || byDay === byMonth) return { value };
  // no language writes a point after a leading month
  if (orders === "d" || (sign === "." && orders === "dm")) return { value: byDay };
  return orders === "m" && sign !== "." ? { value: byMonth } : inDoubt(byDay, byMonth, byMonth);
}

/** The {value} of a typed text, or an {error}. *was*: the stored value. */
export function read(column, text, was) {
  if (!text.isWellFormed()) return { error: _("contains half of a surrogate pair") };
  const found = READ[column.type](text, column, was);
  if (found.error) return found;
  const error = judge(column, found.value);
  return error ? { error } : found;
}

const READ = {
  string: (text, column, was) => ({ value: text === "" && (was === null || was === undefined) ? null : text }),
  number: (text) => (text.trim() === "" ? { value: null } : decimal(text)),
  boolean: (text) => {
    const word = text.trim().toLowerCase();
    return { value: ["true", "1", _("yes")].includes(word) || (["false", "0", _("no")].includes(word) ? false : text || null) };
  },
  date: calendar,
  enum: (text, column) => ({ value: column.options.find((option) => textOf(option) === text) ?? (text || null) }),
  json: readJson,
};

const DEEPEST = 60;

function readJson(text) {
  if (text.trim() === "") return { value: null };
  try {
    let fits = true;
    const value = JSON.parse(text, (key, part, { source }) => {
      if (typeof part !== "number") return part;
      const number = numeral(source);
      fits &&= number !== undefined;
      return number;
    });
    if (!fits) return { error: TOO_LONG };
    return isSendable(value, DEEPEST) ? { value } : { error: _("must be plain JSON") };
  } catch {
    return { error: _("must be JSON") };
  }
}

function isSendable(value, depth) {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (value instanceof Exact) return numeral(value.source) !== undefined;
  if (value === null || typeof value !== "object") return true;
  return depth > 0 && Object.entries(value).every(([key, part]) => key.isWellFormed() && isSendable(part, depth - 1));
}

// 12,34,567 in India
const GROUPED = /^[+-]?\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:\.\d{3})+)$/;

/** `1200,50`, `1 200.50`, `1.200,50`, `1,200,300`; an ambiguous number is an error. `decimals.py` has the same rule. */
function decimal(typed) {
  let text = typed.trim().replace("\u2212", "-");
  const groups = /^([+-]?\d{1,3})((?:[\s'’]\d{3})+)(?!\d)/.exec(text);
  if (groups) text = groups[0].replace(/[\s'’]/g, "") + text.slice(groups[0].length);
  const commas = text.split(",").length - 1;
  const dots = text.split(".").length - 1;
  if (commas && dots) {
    const last = text.lastIndexOf(",") > text.lastIndexOf(".") ? "," : ".";
    const [whole, part, more] = text.split(last);
    if (more !== undefined || !GROUPED.test(whole)) return { error: WANTED.number };
    text = `${whole.replace(/[.,]/g, "")}.${part}`;
  } else if (commas > 1 || dots > 1) {
    if (!GROUPED.test(text)) return { error: WANTED.number };
    text = text.replace(/[.,]/g, "");
  } else if ((commas || signs.includes(",")) && /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(text)) {
    // ambiguous: thousands, or a decimal
    const other = text.replace(/[.,]/, signs[0]);
    return inDoubt(text.replace(/[.,]/, ""), other, `${other}0`);
  } else text = text.replace(",", ".");
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(e[+-]?\d+)?$/i.exec(text);
  if (!parts || !(parts[2] || parts[3])) return { error: WANTED.number };
  const [, sign, whole, part = "", power = ""] = parts;
  const rest = part.replace(/0+$/, "");
  const value = numeral(`${sign === "-" ? "-" : ""}${whole.replace(/^0+(?=\d)/, "") || "0"}${rest && `.${rest}`}${power}`);
  return value === undefined ? { error: TOO_LONG } : { value };
}

/** The sum as a decimal text, exact wherever numbers are written without a power; null: none. */
export function sum(values) {
  let places = 0;
  const parts = [];
  for (const value of values) {
    if (typeof value !== "number" && !(value instanceof Exact)) continue;
    const found = /^(-?\d+)(?:\.(\d+))?$/.exec(textOf(value));
    if (!found) return String(values.reduce((all, one) => all + (Number(textOf(one)) || 0), 0));
    parts.push([found[1], found[2] ?? ""]);
    places = Math.max(places, parts.at(-1)[1].length);
  }
  if (!parts.length) return null;
  const total = parts.reduce((all, [whole, part]) => all + BigInt(whole + part.padEnd(places, "0")), 0n);
  return point(total, places);
}

/** The difference other - one of two sums. */
export function difference(one, other) {
  return sum([new Exact(other), new Exact(one.startsWith("-") ? one.slice(1) : `-${one}`)]);
}

function point(total, places) {
  const digits = String(total < 0n ? -total : total).padStart(places + 1, "0");
  const text = places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
  return total < 0n ? `-${text}` : text;
}

/** A decimal text as the reader writes numbers. */
export function format(text, more) {
  return new Intl.NumberFormat(navigator.languages, { numberingSystem: "latn", maximumFractionDigits: 20, ...more }).format(text);
}
