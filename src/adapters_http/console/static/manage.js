// Pages of workflows and of operating: buttons that copy, what is asked before something is left, and what was typed.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent += " ✓";
    button.disabled = true;
  });
}

// What was typed into a long form outlasts an answer that is not its own: signed out, or not now. Secrets are typed again. Decision 202.
const form = document.querySelector("form[data-keep]");
const KEPT = `wfcore:form:${location.pathname}`;
if (form) {
  const fields = [...form.elements].filter((one) => one.name && one.type !== "password");
  const kept = form.dataset.keep === "fresh" && JSON.parse(sessionStorage.getItem(KEPT));
  for (const field of fields) field.value = kept?.[field.name] ?? field.value;
  form.addEventListener("submit", () => sessionStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(fields.map((one) => [one.name, one.value])))));
} else sessionStorage.clear();

const have = document.querySelector("[data-have]");
if (have) addEventListener("beforeunload", (event) => have.checked || event.preventDefault());
