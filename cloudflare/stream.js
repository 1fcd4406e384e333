// The streams that clients read. Each asks WebAssembly for a piece when its client can take one.
//
// They are made here, and not in Rust, so that somebody can end them when the module has failed and
// will never be called again: shim.js.

const open = new Set();

// `source.pull()` promises a piece, or nothing at the end; `source.cancel()` ends it before.
export function streamOf(source) {
  let controller;
  const over = () => {
    open.delete(controller);
    source.free();
  };
  return new ReadableStream(
    {
      start(own) {
        controller = own;
        open.add(own);
      },
      async pull() {
        const piece = await source.pull();
        if (piece) {
          controller.enqueue(piece);
        } else {
          controller.close();
          over();
        }
      },
      cancel() {
        source.cancel();
        over();
      },
    },
    { highWaterMark: 0 },
  );
}

// A stream that ends like this is broken off for its client: it does not look complete.
export function breakOff(reason) {
  for (const controller of open) {
    controller.error(reason);
  }
  open.clear();
}
