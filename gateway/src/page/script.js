"use strict";
// Puts what the gateway sends in the place of what is there. All of it was escaped where it was written.
(() => {
  const live = document.getElementById("live");
  let source;
  const say = (text, name) => {
    live.textContent = text;
    live.className = `live ${name}`;
  };
  const open = () => {
    source = new EventSource("/");
    source.onopen = () => say("live", "on");
    source.onmessage = (event) => {
      for (const [id, text] of Object.entries(JSON.parse(event.data))) {
        const place = document.getElementById(id);
        if (place) place.innerHTML = text;
      }
    };
    source.onerror = () => {
      const over = source.readyState === EventSource.CLOSED;
      say(over ? "not live: reload to update" : "the gateway does not answer", "off");
    };
  };
  // A page that nobody sees takes no connection.
  document.addEventListener("visibilitychange", () => {
    source.close();
    if (!document.hidden) open();
  });
  open();
})();
