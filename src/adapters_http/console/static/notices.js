// Notices above the rows: answers of the server, and changes that others made meanwhile.

import { _ } from "./app.js";
import { LOST, ask, button, desk, make, place, say } from "./desk.js";

export function sayRefusal(status, reply, retry) {
  if (status === 0) say(LOST, true);
  else if (status === 401) say(_("You are signed out. What you typed is saved on this device."), true, make("a", { className: "button", href: `${place.base}/sign-in?next=${encodeURIComponent(place.here)}` }, _("Sign in")));
  else if (status === 429 || status === 503) say(_("The server cannot take it now. Nothing was decided; try again in {seconds} s.", { seconds: retry ?? 5 }), true);
  else say(_("Nothing was decided: {error}", { error: reply.error ?? status }), true);
}

export function sayDecision({ status, decidedBy: who, decisionSource }) {
  const word = who
    ? { APPROVED: _("Meanwhile {who} has approved it.", { who }), REJECTED: _("Meanwhile {who} has rejected it.", { who }), REVISED: _("Meanwhile {who} has asked for changes.", { who }) }[status]
    : decisionSource === "timeout" ? _("The time is over: it was rejected automatically.") : _("It was withdrawn, because the execution has ended.");
  const open = make("a", { className: "button", href: location.href }, _("Show the decision"));
  open.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
  const rest = _("What you typed stays here to be read; it changes nothing any more.");
  say(`${word} ${rest}`, false, open);
  for (const one of document.querySelectorAll(".bar button")) one.disabled = true;
  desk.review.status = status;
}

/** Fetch the state of the approval and say what has changed; typed texts stay. Returns the status of the answer. */
export async function refresh() {
  const dialog = document.querySelector("dialog[open]");
  if (dialog) return dialog.addEventListener("close", refresh, { once: true });
  if (desk.review.status !== "PENDING") return;
  const { status, reply } = await ask("/state");
  if (status === 401) sayRefusal(status, reply);
  if (status !== 200 || reply.version === desk.review.version) return status;
  const given = reply.approvedBy.length;
  const more = given > desk.review.approvedBy.length;
  Object.assign(desk.review, { version: reply.version, approvedBy: reply.approvedBy });
  if (reply.status !== "PENDING") sayDecision(reply);
  else if (reply.itemsHash !== desk.review.itemsHash) say(place.agreed === "True" ? _("What you agreed to has changed; your yes no longer counts.") : _("Somebody has changed rows. Your edits remain."), false, button(_("Show the new rows"), () => desk.merge()));
  else if (more) say(_("{who} agreed: {given} of {required}.", { who: reply.approvedBy.at(-1), given, required: place.required }));
}
