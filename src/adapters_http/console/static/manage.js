// Pages of workflows and of operating: buttons that copy, and what is asked before something is left.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent += " ✓";
    button.disabled = true;
  });
}

const have = document.querySelector("[data-have]");
if (have) addEventListener("beforeunload", (event) => have.checked || event.preventDefault());
