// Following: the server says that something changed, and the page fetches itself again.

/** This page as it is now; a document without text turned into markup, so that it passes Trusted Types. */
export function fetched() {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onloadend = () => done(request.status === 200 ? request.response : { status: request.status });
    request.send();
  });
}

/** Call *changed* for hints of *url* by that *event*, at most five a second; not while nobody looks. *says*: whether it is connected. */
export function follow(url, after, changed, says = () => {}, event = "changed") {
  let source, busy, again;
  async function act() {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      await Promise.all([changed(), new Promise((done) => setTimeout(done, 200))]);
    }
    busy = false;
  }
  const hint = (event) => {
    after = event.lastEventId || after;
    act();
  };
  function open() {
    source = new EventSource(`${url}?after=${after}`);
    source.onopen = () => says(true);
    source.onerror = () => {
      says(false);
      if (source?.readyState === 2) setTimeout(() => source && open(), 5_000);
    };
    source.addEventListener(event, hint);
    source.addEventListener("end", (event) => {
      source.close();
      hint(event);
      says(null);
    });
  }
  document.addEventListener("visibilitychange", () => {
    source.close();
    if (!document.hidden) act(open());
  });
  open();
}
