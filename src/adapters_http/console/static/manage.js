// Forms, and pages of operating: buttons that copy, a question before leaving, and drafts of forms.

import { session } from "./app.js";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => {
    const from = document.getElementById(button.dataset.copy);
    // a page that came by plain http has no clipboard; the selection can be copied
    navigator.clipboard?.writeText(from.textContent) ?? (getSelection().selectAllChildren(from), document.execCommand("copy"));
    button.textContent += " ✓";
    button.disabled = true;
  });
}

// The input in a long form survives a reload and an error page (signed out, not available), for the same person only.
// Passwords and the hashes of shown rows are not stored.
const form = document.querySelector("form[data-keep]");
if (form) {
  const KEPT = `wfcore:form:${form.dataset.keep}:${location.pathname}${location.search}`;
  const fields = [...form.elements].filter((one) => one.name && one.type !== "password" && !one.name.startsWith("seen."));
  const kept = "fresh" in form.dataset && JSON.parse(session?.getItem(KEPT) ?? null);
  for (const field of fields) field.value = kept?.[field.name] ?? field.value;
  for (const event of ["input", "submit"]) form.addEventListener(event, () => session?.setItem(KEPT, JSON.stringify(Object.fromEntries(fields.map((one) => [one.name, one.value])))));
} else session?.clear();

const have = document.querySelector("[data-have]");
if (have) addEventListener("beforeunload", (event) => have.checked || event.preventDefault());
