// What the official TypeScript SDK makes of Creole's streams; see accumulate.py.
//
//     node accumulate.mjs STREAMS     (in a folder in which the SDK is installed)

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { default: Anthropic } = await import(pathToFileURL(require.resolve("@anthropic-ai/sdk")));

const KEYS = ["type", "text", "thinking", "signature", "id", "name", "input"];

async function read(stream, beta) {
  const headers = { "content-type": "text/event-stream" };
  const client = new Anthropic({
    apiKey: "none",
    maxRetries: 0,
    fetch: async () => new Response(stream, { status: 200, headers }),
  });
  const messages = [{ role: "user", content: "Hello" }];
  const api = beta ? client.beta.messages : client.messages;
  return api.stream({ model: "m", max_tokens: 9, messages }).finalMessage();
}

// Whether it has blocks that the SDK knows in its beta part alone.
function isBeta(message) {
  return (message?.content ?? []).some((block) => block.type.startsWith("mcp_"));
}

function comparable(message) {
  const content = message.content.map((block) => {
    const kept = Object.fromEntries(KEYS.map((key) => [key, block[key] ?? null]));
    // The input of a call that the limit cut off is as whole as each reader likes it.
    if (kept.input?.partial_json !== undefined || message.stop_reason === "max_tokens") {
      kept.input = null;
    }
    return kept;
  });
  const usage = Object.fromEntries(
    Object.entries(message.usage).filter(([key, count]) => key.endsWith("_tokens") && count !== null),
  );
  const { stop_reason, stop_sequence } = message;
  // Copied, as parsed values may have other prototypes.
  return JSON.parse(JSON.stringify({ content, usage, stop_reason, stop_sequence }));
}

const folder = process.argv[2];
let passed = 0;
const failures = [];
for (const file of fs.readdirSync(folder).sort()) {
  const test = JSON.parse(fs.readFileSync(path.join(folder, file), "utf8"));
  let found;
  try {
    found = comparable(await read(test.stream, isBeta(test.message)));
  } catch (error) {
    const told = error instanceof Anthropic.APIError && test.message === null;
    found = told ? null : String(error);
  }
  const expected = test.message && comparable(test.message);
  if (isDeepStrictEqual(found, expected)) {
    passed += 1;
  } else {
    failures.push(`${file}: expected ${JSON.stringify(expected)}, but found ${JSON.stringify(found)}`);
  }
}
console.log(failures.join("\n"));
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length > 0 || passed === 0 ? 1 : 0);
