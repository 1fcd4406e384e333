// The streams of clients and upstreams: what they send, and what clients read.
//
// They are made here, and not in Rust, so that somebody can end them when the module has failed and
// will never be called again: shim.js.

// What ends each request and each stream that waits for the module.
const open = new Set();

// `end` is called when the module fails, unless what is returned here is called before.
export function whileOpen(end) {
  open.add(end);
  return () => open.delete(end);
}

export function breakOff(reason) {
  for (const end of open) {
    end(reason);
  }
  open.clear();
}

// How many requests and streams wait for the module: for tests.
export function waiting() {
  return open.size;
}

// `source.pull()` promises a piece, or nothing at the end; `source.cancel()` ends it before.
export function streamOf(source) {
  let close;
  const over = () => {
    close();
    source.free();
  };
  return new ReadableStream(
    {
      start(controller) {
        // A stream that ends like this is broken off for its client: it does not look complete.
        close = whileOpen((reason) => controller.error(reason));
      },
      async pull(controller) {
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

// Bytes that are read at once of a body that comes quickly, and of any other.
const LARGE = 16384;
const SMALL = 4096;

// How long the rest of a refused body is read.
const REFUSED_MS = 2000;

// `fetch`, which keeps its promise when the signal aborts it. The runtime never settles promises for a client
// that has gone, and the module would keep what waits for them.
export function call(request, signal) {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    fetch(request).then(resolve, reject);
  });
}

// The body of a client's request, or of an upstream's answer.
export class Incoming {
  constructor(body) {
    this.reader = body.getReader({ mode: "byob" });
    this.size = SMALL;
    this.stop = () => {};
  }

  // Promises the next piece, or nothing at the end, or when `stop` is called: see `call`.
  read() {
    return new Promise((resolve, reject) => {
      this.stop = () => resolve();
      this.piece().then(resolve, reject);
    });
  }

  async piece() {
    const { value, done } = await this.reader.read(new Uint8Array(this.size));
    if (done) {
      return undefined;
    }
    this.size = value.byteLength === this.size ? LARGE : SMALL;
    return value;
  }

  // The body of an answer that the client has at once. The stream ends later: a server that closes while
  // the client writes can destroy the very answer that says why.
  refuse(answer, most) {
    const { readable, writable } = new FixedLengthStream(answer.byteLength);
    const writer = writable.getWriter();
    const send = async () => {
      await writer.write(answer);
      await this.discard(most);
      await writer.close();
    };
    // The client has gone.
    send().catch(() => {});
    return readable;
  }

  async discard(most) {
    const timer = setTimeout(() => this.reader.cancel(), REFUSED_MS);
    try {
      for (let left = most, piece; left > 0 && (piece = await this.piece()); ) {
        left -= piece.byteLength;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
