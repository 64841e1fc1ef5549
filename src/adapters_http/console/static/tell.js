// Notices of the browser while the inbox is hidden.

import { _ } from "./app.js";
import { fetched } from "./list.js";

const button = document.getElementById("tell");
const { live } = document.getElementById("new").dataset;
const links = (root) => [...root.querySelectorAll(".list h2 a")];

async function watch() {
  if ((await Notification.requestPermission()) !== "granted") return;
  button.hidden = true;
  const known = new Set();
  let source;
  const compare = async () => {
    const { status, response } = await fetched();
    if (status !== 200) return;
    const fresh = links(response).filter((one) => !known.has(one.href));
    for (const one of fresh) known.add(one.href);
    const body = fresh.map((one) => one.textContent).join("\n");
    if (body) new Notification(_("{count} new in your inbox", { count: fresh.length }), { body }).onclick = () => focus();
  };
  const follow = () => {
    source?.close();
    if (!document.hidden) return;
    for (const one of links(document)) known.add(one.href);
    source = new EventSource(`${live}&seen=`);
    source.onopen = compare;
    source.addEventListener("changed", compare);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}

// asks by a press only
button.onclick = watch;
button.hidden = Notification.permission !== "default";
if (Notification.permission === "granted") watch();
