// Values of cells: from text and back, and whether the server will take them. Nothing of a page here.

import { LANG, _ } from "./app.js";

/** A number that a double cannot hold: kept, compared and sent as it is written. */
export class Exact {
  constructor(source) { this.source = source; }
  toJSON() { return JSON.rawJSON(this.source); }
}

/** JSON with every number intact. */
export function parse(text) {
  return JSON.parse(text, (key, value, { source }) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? new Exact(source) : value);
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

/** The decimal sign of the reader. */
const POINT = new Intl.NumberFormat(LANG).format(0.5)[1];

const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text as people are shown it: with a sign for what cannot be seen, or turns text around. `visible.py` has the same. */
export function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(UNSEEN, "\ufffd");
}

/** A text that was pasted, without the mark that the CSV puts before what looks like a formula. `review_rows.py` has the same. */
export const unmarked = (text) => text.replace(/^'(?='*[=+\-@\t\r])/, "");

/** The text of a value as a field shows it: a number with the reader's decimal sign; of options, what the field is set to. */
export function seen(column, text) {
  if (column.type === "enum") return text;
  return visible(column.type === "number" ? text.replace(/^(-?\d+)\./, `$1${POINT}`) : text);
}

/** What is wrong with a value, in words; null: nothing. The rules are those of the server. */
export function judge(column, value) {
  if (value === null || value === undefined) return column.required ? _("is required") : null;
  return FITS[column.type](value, column) ? null : WANTED[column.type];
}

const FITS = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" || value instanceof Exact,
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

function isDate(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < "0001") return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** {value} that a typed text stands for, or {error}. *was*: what stood there. */
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
  boolean: (text) => ({ value: { true: true, false: false }[text] ?? null }),
  date: (text) => ({ value: text.trim() || null }),
  enum: (text, column) => ({ value: column.options.find((option) => textOf(option) === text) ?? (text || null) }),
  json: readJson,
};

const DEEPEST = 60;

function readJson(text) {
  if (text.trim() === "") return { value: null };
  try {
    const value = parse(text);
    return isSendable(value, DEEPEST) ? { value } : { error: _("must be plain JSON") };
  } catch {
    return { error: _("must be JSON") };
  }
}

function isSendable(value, depth) {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (value instanceof Exact) return Number.isFinite(Number(value.source));
  if (value === null || typeof value !== "object") return true;
  return depth > 0 && Object.entries(value).every(([key, part]) => key.isWellFormed() && isSendable(part, depth - 1));
}

/** `1200,50`, `1 200.50`, `1.200,50`, `1,200,300`; what may be two numbers is none. */
function decimal(typed) {
  let text = typed.replace(/[\s\u00a0\u202f'’]/g, "");
  const commas = text.split(",").length - 1;
  const dots = text.split(".").length - 1;
  if (commas && dots) {
    const last = text.lastIndexOf(",") > text.lastIndexOf(".") ? "," : ".";
    if (text.split(last).length > 2) return { error: WANTED.number };
    text = text.replaceAll(last === "," ? "." : ",", "").replace(last, ".");
  } else if (commas > 1 || dots > 1) {
    if (!/^[+-]?\d{1,3}([.,]\d{3})+$/.test(text)) return { error: WANTED.number };
    text = text.replace(/[.,]/g, "");
  } else if ((commas || POINT === ",") && /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(text)) {
    // thousands to most, and a decimal to whoever copied it
    const other = text.replace(/[.,]/, POINT);
    return { error: _("is {one} or {other}? Write {one} or {exact}", { one: text.replace(/[.,]/, ""), other, exact: `${other}0` }) };
  } else text = text.replace(",", ".");
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(e[+-]?\d+)?$/i.exec(text);
  if (!parts || !(parts[2] || parts[3])) return { error: WANTED.number };
  const [, sign, whole, part = "", power = ""] = parts;
  const source = `${sign === "-" ? "-" : ""}${whole.replace(/^0+(?=\d)/, "") || "0"}${part && `.${part}`}${power}`;
  const value = Number(source);
  if (!Number.isFinite(value)) return { error: WANTED.number };
  return { value: (whole + part).replace(/^0+/, "").length <= 15 ? value : new Exact(source) };
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

/** other - one, of two such sums. */
export function difference(one, other) {
  return sum([new Exact(other), new Exact(one.startsWith("-") ? one.slice(1) : `-${one}`)]);
}

function point(total, places) {
  const digits = String(total < 0n ? -total : total).padStart(places + 1, "0");
  const text = places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
  return total < 0n ? `-${text}` : text;
}

/** A decimal text by the reader's locale. */
export function shown(text, more) {
  return new Intl.NumberFormat(LANG, { maximumFractionDigits: 20, ...more }).format(text);
}
