// Passkeys: the browser asks the authenticator, and the answer travels in a form, or with the editor's decision.
// Loaded only on pages that ask for a passkey.

import { _ } from "./app.js";

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt());
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
const keys = (ids) => ids.map((id) => ({ type: "public-key", id: bytes(id) }));

/** The signature of one of the passkeys *ids*; none: of any that the person has here. */
async function get({ nonce, rpId, challenge }, ids, digests = []) {
  const publicKey = { challenge: bytes(challenge), rpId, allowCredentials: keys(ids), userVerification: "required" };
  const { rawId, response } = await navigator.credentials.get({ publicKey });
  const user = response.userHandle ? new TextDecoder().decode(response.userHandle) : "";
  return {
    nonce, digests, user, credentialId: text(rawId), signature: text(response.signature),
    authenticatorData: text(response.authenticatorData), clientData: text(response.clientDataJSON),
  };
}

/** A new passkey. */
async function create({ nonce, rpId, challenge, user, email, known }) {
  const publicKey = {
    challenge: bytes(challenge), rp: { id: rpId, name: "wfcore" }, user: { id: bytes(user), name: email, displayName: email },
    pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: "public-key", alg })), excludeCredentials: keys(known),
    authenticatorSelection: { residentKey: "preferred", userVerification: "required" }, attestation: "none",
  };
  const { response } = await navigator.credentials.create({ publicKey });
  return { nonce, clientData: text(response.clientDataJSON), attestation: text(response.attestationObject) };
}

/** The signature of the chosen passkey below what the server asks to confirm. */
function confirm(asked, chosen = asked.choices[0].id) {
  const choice = asked.choices.find(({ id }) => id === chosen);
  return get({ ...asked, challenge: choice.challenge }, [chosen], choice.digests);
}

/** Show why nothing was signed; the person may try again. */
function fail(form, error) {
  const place = form.querySelector("[role=alert]");
  const why = error.name === "NotAllowedError" ? _("No passkey confirmed it. Nothing was decided.") : _("The passkey cannot be used: {error}", { error: error.message });
  place.textContent = why;
  place.hidden = false;
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const asked = JSON.parse(form.dataset.passkey);
  const ask = () => (asked.known ? create(asked) : asked.choices ? confirm(asked, document.getElementById("choice")?.value) : get(asked, asked.allow));
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask().then((answer) => {
      form.elements.passkey.value = JSON.stringify(answer);
      form.submit();
    }, (error) => fail(form, error));
  });
}

// The editor of rows confirms in its own sheet: `sign` is called with the body of the decision.
const plain = document.querySelector("form[data-signs]");
if (plain) plain.sign = async (url, body) => {
  const dialog = document.querySelector("dialog[open]");
  const answer = await fetch(`${url}/confirm`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const asked = await answer.json();
  // the decision is refused with the same reason, and the page shows it
  if (!answer.ok) return undefined;
  const form = dialog.querySelector("form");
  try {
    return await confirm(asked, await choose(form, asked.choices));
  } catch (error) {
    form.querySelector("[role=alert]") ?? form.append(Object.assign(document.createElement("p"), { role: "alert", className: "notice bad" }));
    fail(form, error);
    for (const button of form.elements) button.disabled = false;
    return null;
  }
};

/** The passkey to use; with several, the person chooses by a second press of the button. */
function choose(form, choices) {
  if (choices.length < 2) return choices[0].id;
  const known = form.elements.choice;
  if (known) return known.value;
  const select = Object.assign(document.createElement("select"), { name: "choice", ariaLabel: _("Passkey") });
  for (const { id, name } of choices) select.append(new Option(name, id));
  form.append(select);
  return choices[0].id;
}
