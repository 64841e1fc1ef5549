// What a press on the page of an execution does, loaded with the first one.

/** A press on *target*; *url*: a part of this page, which *renew* shows in place. */
export async function act(target, url, renew) {
  if (target.matches(".actual")) document.querySelector(".now")?.scrollIntoView({ block: "nearest", inline: "center" });
  const copied = document.getElementById(target.dataset?.copy);
  // a page that came by plain http has no clipboard
  if (copied) navigator.clipboard?.writeText(copied.textContent) ?? (getSelection().selectAllChildren(copied), document.execCommand("copy"));
  if (!url) return;
  history.pushState(null, "", url);
  const status = await renew();
  if (status) location.reload();
  else document.getElementById(url.hash.slice(1) || "step")?.scrollIntoView({ block: "nearest" });
}
