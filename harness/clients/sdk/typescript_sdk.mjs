// The official TypeScript SDK in front of Creole.
//
//     node typescript_sdk.mjs BASE_URL DEMO_URL
//
// Run in a folder whose node_modules hold @anthropic-ai/sdk and zod. The last line is
// `N passed, N failed`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { asChat } from "../as_chat.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: Anthropic, APIError } = await load("@anthropic-ai/sdk");
const manifest = join(process.cwd(), "node_modules/@anthropic-ai/sdk/package.json");
const version = JSON.parse(readFileSync(manifest, "utf8")).version;

const [base, demo] = process.argv.slice(2);
const model = "demo";
const client = new Anthropic({ baseURL: base, apiKey: "sk-test", maxRetries: 0, timeout: 30000 });
const weather = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city", "days"],
  },
};
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const user = (content) => ({ role: "user", content });
const sent = async () =>
  (await (await fetch(demo + "/demo/requests")).json()).requests.map((r) => asChat(JSON.parse(r.body)));
const forget = () => fetch(demo + "/demo/requests", { method: "DELETE" });

async function ask(stream, options) {
  const body = { model, max_tokens: 4096, ...options };
  if (!stream) return client.messages.create(body);
  const events = client.messages.stream(body);
  const kinds = [];
  for await (const event of events) kinds.push(event.type);
  assert.equal(kinds[0], "message_start");
  assert.ok(kinds.includes("message_stop"), kinds.join());
  return events.finalMessage();
}

const tests = [];
const test = (name, run) => tests.push([name, run]);
const both = (name, run) => {
  test(name, () => run(false));
  test(name + ", streamed", () => run(true));
};

both("a text answer has usage and a stop reason", async (stream) => {
  const message = await ask(stream, { system: "Be brief.", messages: [user("hello")] });
  assert.match(message.id, /^msg_/);
  assert.equal(message.model, model);
  assert.equal(message.stop_reason, "end_turn");
  assert.ok(message.content[0].text);
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
});

async function toolLoop(stream, prompt, turnsWanted, callsEach) {
  const messages = [user(prompt)];
  const ids = new Set();
  for (let turns = 0; ; turns++) {
    const message = await ask(stream, { tools: [weather], messages });
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) {
      assert.equal(message.stop_reason, "end_turn");
      assert.equal(turns, turnsWanted);
      const text = message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
      assert.match(text, /sunny/);
      return;
    }
    assert.ok(turns < turnsWanted, "the loop does not end");
    assert.equal(message.stop_reason, "tool_use");
    assert.equal(calls.length, callsEach);
    for (const call of calls) {
      assert.match(call.id, /^toolu_/);
      assert.ok(!ids.has(call.id));
      ids.add(call.id);
      assert.equal(typeof call.input.city, "string");
      assert.ok(Number.isInteger(call.input.days));
    }
    messages.push({ role: "assistant", content: message.content });
    messages.push(
      user(calls.map((c, n) => ({ type: "tool_result", tool_use_id: c.id, content: `sunny ${n}` }))),
    );
  }
}

both("a tool loop of five turns ends with the answer", (s) => toolLoop(s, "demo:turns 5", 5, 1));
both("two parallel calls are answered together", (s) => toolLoop(s, "demo:parallel 2", 1, 2));

both("an image and a document arrive", async (stream) => {
  await forget();
  const content = [
    { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
    {
      type: "document",
      title: "Notes",
      source: { type: "text", media_type: "text/plain", data: "the secret word is xyzzy" },
    },
    { type: "text", text: "what is this?" },
  ];
  await ask(stream, { messages: [user(content)] });
  const arrived = JSON.stringify((await sent()).at(-1).messages);
  assert.ok(arrived.includes("data:image/png;base64," + pixel));
  assert.ok(arrived.includes("xyzzy") && arrived.includes("Notes"));
});

both("thinking comes out and goes back", async (stream) => {
  await forget();
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const first = await ask(stream, { thinking, messages: [user("demo:reason")] });
  assert.equal(first.content[0].type, "thinking");
  assert.ok(first.content[0].thinking && first.content[0].signature);
  const history = [user("demo:reason"), { role: "assistant", content: first.content }];
  await ask(stream, { thinking, messages: [...history, user("go on")] });
  const back = (await sent()).at(-1).messages.find((message) => message.role === "assistant");
  assert.equal(back.reasoning_content, first.content[0].thinking);
});

test("errors have the classes of their status", async () => {
  const classes = {
    400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError",
    404: "NotFoundError", 429: "RateLimitError", 500: "InternalServerError",
    503: "InternalServerError",
  };
  for (const [status, name] of Object.entries(classes)) {
    for (const stream of [false, true]) {
      await assert.rejects(ask(stream, { messages: [user(`demo:error ${status}`)] }), (error) => {
        assert.ok(error instanceof Anthropic[name], `${status}: ${error.constructor.name}`);
        assert.equal(error.error.type, "error");
        return true;
      });
    }
  }
});

test("an upstream error in mid-stream is raised", () =>
  assert.rejects(ask(true, { messages: [user("demo:error-mid")] }), (error) => {
    assert.ok(error instanceof APIError || error instanceof Anthropic.AnthropicError);
    return true;
  }));

test("a stream that ends early is not success", () =>
  assert.rejects(ask(true, { messages: [user("demo:unfinished")] }), /ended before completion/));

test("a connection that is cut is not success", () =>
  assert.rejects(ask(true, { messages: [user("demo:cut")] }), (error) => !(error instanceof assert.AssertionError)));

test("structured output is parsed", async () => {
  if (!client.messages.parse) return "not there";
  const { zodOutputFormat } = await load("@anthropic-ai/sdk/helpers/zod");
  const { z } = await load("zod");
  const message = await client.messages.parse({
    model,
    max_tokens: 200,
    messages: [user("give me a place")],
    output_config: { format: zodOutputFormat(z.object({ city: z.string(), days: z.int() })) },
  });
  assert.equal(typeof message.parsed_output.city, "string");
  assert.equal((await sent()).at(-1).response_format.type, "json_schema");
});

both("the tool runner replays its thread", async (stream) => {
  if (!client.beta.messages.toolRunner) return "not there";
  const { betaZodTool } = await load("@anthropic-ai/sdk/helpers/beta/zod");
  const { z } = await load("zod");
  let asked = 0;
  const tool = betaZodTool({
    name: "get_weather",
    description: "The weather of a city",
    inputSchema: z.object({ city: z.string(), days: z.int() }),
    run: async (input) => ((asked += 1), `sunny for ${input.days} days`),
  });
  const options = { model, max_tokens: 200, stream, tools: [tool], messages: [user("demo:turns 2")] };
  let last;
  for await (const item of client.beta.messages.toolRunner(options)) {
    last = stream ? await item.finalMessage() : item;
  }
  assert.equal(asked, 2);
  assert.equal(last.stop_reason, "end_turn");
});

test("tokens are counted and models listed", async () => {
  const count = await client.messages.countTokens({ model, messages: [user("hello")] });
  assert.ok(count.input_tokens > 0);
  for await (const found of client.models.list()) assert.ok(found.id);
});

console.log(`version @anthropic-ai/sdk ${version}`);
let failed = 0;
for (const [name, run] of tests) {
  try {
    const note = await run();
    console.log(`ok ${name}${typeof note === "string" ? ` (${note})` : ""}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
console.log(`${tests.length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
