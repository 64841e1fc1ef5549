// A page that fetches itself again, after `follow.js` has said that something changed.

import { _ } from "./app.js";

/** This page as it is now; a document without text turned into markup, so that it passes Trusted Types. *says* tells that the session is over. */
export function fetched(says) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onloadend = () => {
      if (request.status === 401) says.textContent = _("Signed out: reload the page to sign in");
      done(request);
    };
    request.send();
  });
}
