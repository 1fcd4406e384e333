// What the Vercel AI SDK's own parser, the strictest among the clients, makes of Creole's streams. It reads
// each event by a schema; what does not fit is an error part. See ../sdk/accumulate.mjs.
//
//     node accumulate.mjs STREAMS     (in a folder in which the SDK is installed)

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { createAnthropic } = await import(pathToFileURL(require.resolve("@ai-sdk/anthropic")));

// The words that the SDK has for the reasons of the API.
const REASONS = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "tool-calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content-filter",
};

async function read(stream) {
  const headers = { "content-type": "text/event-stream" };
  const fetch = async () => new Response(stream, { status: 200, headers });
  const model = createAnthropic({ baseURL: "http://localhost/v1", apiKey: "none", fetch })("claude-test");
  const prompt = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];
  const result = await model.doStream({ prompt });
  const blocks = new Map();
  let end = null;
  for await (const part of result.stream) {
    const signature = part.providerMetadata?.anthropic?.signature;
    if (part.type === "error") throw part.error;
    else if (part.type === "text-start") blocks.set(part.id, { type: "text", text: "" });
    else if (part.type === "text-delta") blocks.get(part.id).text += part.delta;
    else if (part.type === "reasoning-start") blocks.set(part.id, { type: "thinking", thinking: "", signature: null });
    else if (part.type === "reasoning-delta") {
      blocks.get(part.id).thinking += part.delta;
      if (signature !== undefined) blocks.get(part.id).signature = signature;
    } else if (part.type === "tool-call") {
      const type = part.providerExecuted ? "server_tool_use" : "tool_use";
      blocks.set(`call ${part.toolCallId}`, { type, id: part.toolCallId, name: part.toolName, input: part.input });
    } else if (part.type === "tool-result") {
      blocks.set(`result ${part.toolCallId}`, { type: `${part.toolName}_tool_result`, id: part.toolCallId });
    } else if (part.type === "finish") end = part;
  }
  if (end === null) throw new Error("no finish");
  const reason = end.finishReason.unified ?? end.finishReason;
  return { content: [...blocks.values()], reason, output: end.usage.outputTokens.total ?? end.usage.outputTokens };
}

const isCut = (message) => REASONS[message.stop_reason] === "length" || message.stop_reason === "refusal";

// The input of a call that was cut off is as whole as each reader likes it.
function found(message, cut) {
  for (const block of message.content) {
    if (block.type.endsWith("tool_use")) block.input = cut ? null : JSON.parse(block.input);
  }
  return message;
}

function expected(message) {
  const cut = isCut(message);
  const names = new Map(message.content.map((block) => [block.id, block.name]));
  const content = message.content.map((block) => {
    // The SDK takes the input of such a call at its start, where the API has none yet.
    if (block.type === "mcp_tool_use") {
      return { type: "server_tool_use", id: block.id, name: block.name, input: cut ? null : {} };
    }
    if (block.type === "mcp_tool_result") {
      return { type: `${names.get(block.tool_use_id)}_tool_result`, id: block.tool_use_id };
    }
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "thinking") {
      return { type: "thinking", thinking: block.thinking, signature: block.signature || null };
    }
    if (block.type.endsWith("_tool_result")) return { type: block.type, id: block.tool_use_id };
    return { type: block.type, id: block.id, name: block.name, input: cut ? null : block.input };
  });
  return { content, reason: REASONS[message.stop_reason], output: message.usage.output_tokens };
}

const folder = process.argv[2];
let passed = 0;
const failures = [];
for (const file of fs.readdirSync(folder).sort()) {
  const test = JSON.parse(fs.readFileSync(path.join(folder, file), "utf8"));
  let got;
  try {
    got = found(await read(test.stream), test.message !== null && isCut(test.message));
  } catch (error) {
    got = test.message === null ? null : String(error);
  }
  const wanted = test.message && expected(test.message);
  if (isDeepStrictEqual(got, wanted)) passed += 1;
  else failures.push(`${file}: expected ${JSON.stringify(wanted)}, but found ${JSON.stringify(got)}`);
}
console.log(failures.join("\n"));
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length > 0 || passed === 0 ? 1 : 0);
