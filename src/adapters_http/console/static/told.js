// What the server said, and what others did meanwhile, as sentences above the rows.

import { _ } from "./app.js";
import { LOST, ask, button, desk, make, place, say } from "./desk.js";

export function refused(status, said, retry) {
  if (status === 0) say(LOST, true);
  else if (status === 401) say(_("You are signed out. What you typed is saved on this device."), true, make("a", { className: "button", href: `${place.base}/sign-in?next=${encodeURIComponent(place.here)}` }, _("Sign in")));
  else if (status === 429 || status === 503) say(_("The server cannot take it now. Nothing was decided; try again in {seconds} s.", { seconds: retry ?? 5 }), true);
  else say(_("Nothing was decided: {error}", { error: said.error ?? status }), true);
}

export function decided({ status, decidedBy: who, decisionSource }) {
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

/** Ask what the approval is like now, and say what has changed; what was typed stays. What the server answered. */
export async function look() {
  const dialog = document.querySelector("dialog[open]");
  if (dialog) return dialog.addEventListener("close", look, { once: true });
  if (desk.review.status !== "PENDING") return;
  const { status, said } = await ask("/state");
  if (status === 401) refused(status, said);
  if (status !== 200 || said.version === desk.review.version) return status;
  const given = said.approvedBy.length;
  const more = given > desk.review.approvedBy.length;
  Object.assign(desk.review, { version: said.version, approvedBy: said.approvedBy });
  if (said.status !== "PENDING") decided(said);
  else if (said.itemsHash !== desk.review.itemsHash) say(place.agreed === "True" ? _("What you agreed to has changed; your yes no longer counts.") : _("Somebody has changed rows. Your edits remain."), false, button(_("Show the new rows"), () => desk.merge()));
  else if (more) say(_("{who} agreed: {given} of {required}.", { who: said.approvedBy.at(-1), given, required: place.required }));
}
