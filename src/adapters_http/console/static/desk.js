// The parts that all scripts of the approval page share: review, tables, notices, draft, and requests.

import { _, local } from "./app.js";
import { isDate, parse, read, textOf, visible } from "./values.js";

export const place = document.getElementById("review").dataset;
export const plain = document.getElementById("as-shown");
export const comment = plain?.querySelector("textarea");
export const DRAFT = `wfcore:draft:${place.id}:${place.person}`;
export const LOST = _("No answer from the server. What you typed is saved on this device; try again, nothing is decided twice.");
export const banner = document.getElementById("banner");

/** The present review, a table for each group, and callbacks for input here or in another tab. */
export const desk = { review: null, views: [], changed: () => keep(), rare: null, redraft: () => {}, merge: () => location.reload() };

/** The draft of this or another tab; null after the person has agreed, or when the approval is over. */
export let kept = null;
let typed = {};
// the draft as this tab knows it
let last = local?.getItem(DRAFT) ?? null;

function take() {
  const draft = JSON.parse(last);
  if (draft?.agreed !== place.agreed) return false;
  kept = draft;
  typed = kept.typed;
  for (const field of plain?.elements ?? []) if (field.name in typed) fill(field, typed[field.name]);
  return true;
}

if (last && !take()) local.removeItem(DRAFT);
// Input in another tab appears here at once. A tab that was frozen gets no storage event, so focus counts, too.
for (const event of ["storage", "focus"]) addEventListener(event, () => {
  const now = local?.getItem(DRAFT) ?? null;
  if (now !== last && ((last = now), take())) desk.redraft();
});

document.addEventListener("input", ({ target }) => {
  if (!plain || target.form !== plain) return;
  typed[target.name] = target.value;
  desk.changed();
});

/** Put a text into a field; a date field becomes a text field for an incomplete date. */
function fill(field, text) {
  if (field.type === "date" && text && !isDate(text)) field.type = "text";
  field.value = text;
}

document.addEventListener("paste", (event) => {
  const { target } = event;
  if (target.form !== plain || target.type !== "date") return;
  event.preventDefault();
  const text = event.clipboardData.getData("text/plain");
  fill(target, read(target, text).value ?? text);
  target.dispatchEvent(new Event("input", { bubbles: true }));
});

/** Store a draft of rows, comment and answers on this device; an empty draft tells other tabs that all was undone. */
export function keep(draft = kept ?? { count: 0, rows: [] }) {
  if (!last && !draft.count && !Object.keys(typed).length) return;
  try {
    last = JSON.stringify({ ...draft, typed, agreed: place.agreed });
    local.setItem(DRAFT, last);
  } catch {
    say(_("This browser keeps no drafts: what you type is lost when the page is closed."));
  }
}

/** An element with attributes and children; text stays text, and invisible characters get a sign. */
export function make(tag, facts = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.map((one) => (typeof one === "string" ? visible(one) : one)));
  return made;
}

/** Whether a key event belongs to an input method that composes a word. */
export const composes = (event) => event.isComposing || event.keyCode === 229;

/** The beginning of a text that may be long. */
export const brief = (text) => (text.length > 300 ? `${text.slice(0, 300)}…` : text);

/** A button that calls *act*. */
export function button(text, act, facts = {}) {
  const made = make("button", { type: "button", ...facts }, text);
  made.addEventListener("click", act);
  return made;
}

/** Show a sentence above the rows, with elements to act on it. */
export function say(text, bad = false, ...more) {
  const close = button("✕", () => (banner.hidden = true), { className: "close", ariaLabel: _("Close") });
  banner.replaceChildren(close, make("p", {}, text), ...more);
  banner.className = bad ? "notice bad" : "notice";
  banner.hidden = false;
}

/** The answer of the server; status 0 for a lost connection. */
export async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(place.url + path, options);
    return { status: answer.status, reply: parse(await answer.text()), retry: answer.headers.get("retry-after") };
  } catch {
    return { status: 0, reply: {} };
  }
}

/** Go to a cell, on any page of its table. */
export function focusCell(row, column) {
  const view = desk.views.find((one) => one.group === row.group);
  const field = view.field(row, column ?? row.group.columns.find((one) => row.open(one))) ?? view.drawn.get(row).pick;
  field.focus();
  field.scrollIntoView({ block: "center" });
}

/** The name of a row for people. */
export function nameOf(row) {
  const { columns, rowKey } = row.group;
  const key = rowKey ?? columns[0]?.key;
  return brief(visible((row.added ? row.edits.get(key)?.text : textOf(row.base[key])) || String(row.place + 1)));
}
