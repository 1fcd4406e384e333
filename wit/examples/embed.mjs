// The component in a JavaScript program. Needs Node 20 or later and `npm install @bytecodealliance/jco-transpile`.
//
//     node embed.mjs dist/creole.component.wasm

// docs: begin
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { transpile } from "@bytecodealliance/jco-transpile";

// Once, when your program is built: JavaScript and a core module beside it.
async function load(component) {
  const folder = await mkdtemp(join(tmpdir(), "creole-"));
  const { files } = await transpile(component, { name: "creole" });
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
  await writeFile(join(folder, "package.json"), '{"type": "module"}');
  return import(pathToFileURL(join(folder, "creole.js")));
}

const now = () => BigInt(Date.now());

function* translate({ Exchange }, config, body, pieces) {
  const seed = crypto.getRandomValues(new BigUint64Array(2));
  const exchange = new Exchange(config, [seed[0], seed[1]], {});
  try {
    const head = exchange.handleRequestHead("POST", "/v1/messages", [["x-api-key", "local"]]);
    if (head !== "translate") throw new Error(head);
    exchange.handleRequestBody(body, now());
    const request = exchange.pollCall(now());
    if (!request) {
      yield exchange.pollOutput().body;
      return;
    }
    console.log("POST", request.url + request.path, request.body.length, "bytes");
    exchange.handleCallHead(request.id, 200, [["content-type", "text/event-stream"]], now());
    for (const piece of pieces) {
      exchange.handleCallBody(request.id, piece, now());
      yield exchange.pollOutput().body;
    }
    if (!exchange.isEnded()) {
      exchange.handleCallEnd(request.id, "complete", now());
      yield exchange.pollOutput().body;
    }
  } finally {
    exchange[Symbol.dispose ?? Symbol.for("dispose")]();
  }
}

if (process.argv.length !== 3) {
  console.error("usage: node embed.mjs dist/creole.component.wasm");
  process.exit(2);
}
const { exchanges } = await load(process.argv[2]);
const document = { upstreams: { local: { url: "http://localhost:11434", profile: "ollama" } } };
const config = exchanges.Config.parse(JSON.stringify(document), []);
const encode = (text) => new TextEncoder().encode(text);
const request = JSON.stringify({
  model: "m",
  max_tokens: 9,
  stream: true,
  messages: [{ role: "user", content: "Hi" }],
});
const answer = [
  'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n',
  "data: [DONE]\n\n",
].map(encode);
for (const output of translate(exchanges, config, encode(request), answer)) {
  process.stdout.write(new TextDecoder().decode(output));
}
// docs: end
