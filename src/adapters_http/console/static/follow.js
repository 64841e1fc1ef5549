// Following a page: hints of the server that it has changed.

/**
 * Call *changed* for each hint of *url*, at most five times a second, and if the stream is refused; not while the page
 * is hidden. *changed* returns the status of its request: 401 ends this until the page is shown again. *says* gets
 * whether the stream is connected.
 */
export function follow(url, after, changed, says = () => {}) {
  let source, busy, again, status;
  async function act() {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      [status] = await Promise.all([changed(), new Promise((done) => setTimeout(done, 200))]);
    }
    busy = false;
  }
  const hint = (event) => {
    after = event.lastEventId || after;
    act();
  };
  function open() {
    source?.close();
    if (document.hidden) return;
    source = new EventSource(`${url}${url.includes("?") ? "&" : "?"}seen=${after}`);
    source.onopen = () => says(true);
    source.onerror = () => {
      says(false);
      if (source.readyState < 2) return;
      act();
      setTimeout(() => status === 401 || open(), 5_000);
    };
    source.addEventListener("changed", hint);
    source.addEventListener("end", (event) => {
      source.close();
      hint(event);
      says(null);
    });
  }
  document.addEventListener("visibilitychange", () => {
    open();
    document.hidden || act();
  });
  open();
}
