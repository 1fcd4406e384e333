// The entry point of the Worker, around what wasm-bindgen writes.
//
// After a panic or a trap, WebAssembly's memory cannot be trusted. The request that caused it gets an
// error, and the module is started anew before the next request, in the same isolate.
import * as creole from "./index.js";

// The crate `worker` sets `criticalError` in its panic hook.
const state = creole.__worker_init_state();

function notice(error) {
  if (error instanceof WebAssembly.RuntimeError) {
    state.criticalError = true;
  }
}

// Streams go on after the handler has returned.
addEventListener("error", (event) => notice(event.error));
addEventListener("unhandledrejection", (event) => notice(event.reason));

const broken = {
  type: "error",
  error: { type: "api_error", message: "This gateway failed. Try again." },
};

export default {
  async fetch(request, env) {
    if (state.criticalError) {
      console.error("starting the module anew");
      creole.__wbg_reset_state();
      state.criticalError = false;
    }
    try {
      return await creole.fetch(request, env);
    } catch (error) {
      notice(error);
      console.error(`failed: ${error}`);
      return Response.json(broken, { status: 500 });
    }
  },
};
