// What the parts of the approval page share: the review, its tables, the notice, and the server.

import { parse, textOf } from "./values.js";
import { _ } from "./words.js";

export const place = document.getElementById("review").dataset;
export const plain = document.getElementById("as-shown");
export const comment = plain.querySelector("textarea");
export const revisions = Number(place.revisions);
export const required = Number(place.required);
export const DRAFT = `wfcore:draft:${place.id}:${place.person}`;
export const LOST = _("No answer from the server. What you typed is kept on this device; try again, nothing is decided twice.");
const banner = document.getElementById("banner");

/** The review of now, a table for each group, and what to do when something was typed. */
export const desk = { review: null, views: [], bar: null, changed() {} };

/** An element with attributes and children; text stays text. */
export function make(tag, facts = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A button that does something. */
export function button(text, act, facts = {}) {
  const made = make("button", { type: "button", ...facts }, text);
  made.addEventListener("click", act);
  return made;
}

/** A sentence above the rows, with what can be done about it. */
export function say(text, bad = false, ...more) {
  banner.replaceChildren(make("p", {}, text), ...more);
  banner.className = bad ? "notice bad" : "notice";
  banner.hidden = false;
}

export function unsay() {
  banner.hidden = true;
}

export function readNotice() {
  if (!banner.hidden) banner.focus();
}

/** What the server answers; a lost connection is an answer, too: status 0. */
export async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(place.url + path, options);
    return { status: answer.status, said: parse(await answer.text()), retry: answer.headers.get("retry-after") };
  } catch {
    return { status: 0, said: {} };
  }
}

/** Go to a cell, on whatever page of its table it is. */
export function focusCell(row, column) {
  const view = desk.views.find((one) => one.group === row.group);
  const field = view.field(row, column ?? row.group.columns.find((one) => row.open(one))) ?? view.drawn.get(row).pick;
  field.focus();
  field.scrollIntoView({ block: "center" });
}

/** What people call a row. */
export function nameOf(row) {
  const { columns, rowKey } = row.group;
  const key = rowKey ?? columns[0]?.key;
  return (row.added ? row.edits.get(key)?.text : textOf(row.base[key])) || String(row.place + 1);
}
