// The entry point of the Worker, around what wasm-bindgen writes.
//
// After a panic or a trap, WebAssembly's memory cannot be trusted, and nothing that waits for it will
// ever be called again. Requests without an answer get an error, streams are broken off, and the module
// is started anew for the next request, in the same isolate.
import * as creole from "./index.js";
import { breakOff, whileOpen } from "./stream.js";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

// The answer where the module gives none.
function broken() {
  const random = crypto.getRandomValues(new Uint8Array(24));
  const id = "req_" + Array.from(random, (byte) => DIGITS[byte % 62]).join("");
  console.error(`no answer to ${id}`);
  const error = { type: "api_error", message: "This gateway failed. Try again." };
  const body = { type: "error", error, request_id: id };
  return Response.json(body, { status: 500, headers: { "request-id": id } });
}

let failed = false;

function fail(error) {
  console.error(`the module failed: ${error}`);
  failed = true;
  breakOff(new Error("the module failed"));
}

// The crate `worker` sets `criticalError` in its panic hook; a trap without a panic is an exception.
Object.defineProperty(creole.__worker_init_state(), "criticalError", {
  get: () => failed,
  set: (value) => value && fail("panic"),
});

function notice(error) {
  if (error instanceof WebAssembly.RuntimeError && !failed) {
    fail(error);
  }
}

addEventListener("error", (event) => notice(event.error));
addEventListener("unhandledrejection", (event) => notice(event.reason));

export default {
  async fetch(request, env) {
    if (failed) {
      console.error("starting the module anew");
      creole.__wbg_reset_state();
      failed = false;
    }
    let answered;
    const failure = new Promise((_, reject) => {
      answered = whileOpen(reject);
    });
    try {
      return await Promise.race([creole.fetch(request, env), failure]);
    } catch (error) {
      notice(error);
      return broken();
    } finally {
      answered();
    }
  },
};
