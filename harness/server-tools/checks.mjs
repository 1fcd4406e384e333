// Server tools with the official TypeScript SDK, in front of real MCP servers and a search service.
//
//     node checks.mjs PLAN
//
// PLAN is the JSON of `place.py`. Run in a folder whose node_modules hold @anthropic-ai/sdk. Each check
// runs twice: for whole answers and for streams. The last line is `N passed, N failed`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { asChat } from "../clients/as_chat.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
const { default: Anthropic } = await import(pathToFileURL(require.resolve("@anthropic-ai/sdk")).href);
const manifest = join(process.cwd(), "node_modules/@anthropic-ai/sdk/package.json");
const version = JSON.parse(readFileSync(manifest, "utf8")).version;

const { gateways, services, demo } = JSON.parse(process.argv[2]);
const BETAS = ["mcp-client-2025-11-20"];
const user = (content) => ({ role: "user", content });
const assistant = (message) => ({ role: "assistant", content: message.content });
const call = (name, input, more = "") => `demo:tool ${name}\ndemo:input ${JSON.stringify(input)}${more}`;
const say = (text) => `demo:say ${text}`;
const kinds = (message) => message.content.map((block) => block.type);
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");
const read = async (url) => (await fetch(url)).json();
const notebook = services.notebook.replace("/mcp", "/state");

async function script(...turns) {
  await fetch(`${demo}/demo/script`, { method: "DELETE" });
  await fetch(`${demo}/demo/requests`, { method: "DELETE" });
  const body = JSON.stringify(turns.map((words) => ({ words })));
  await fetch(`${demo}/demo/script`, { method: "POST", body });
}

async function asked() {
  return (await read(`${demo}/demo/requests`)).requests.map((record) => asChat(JSON.parse(record.body)));
}

const mcp = (name) => ({
  betas: BETAS,
  mcp_servers: [{ type: "url", name, url: services[name] }],
  tools: [{ type: "mcp_toolset", mcp_server_name: name }],
});

function client(place, options) {
  return new Anthropic({ baseURL: gateways[place], apiKey: "sk-test", maxRetries: 0, timeout: 60000, ...options });
}

async function ask(place, streamed, messages, options) {
  const { plain, ...rest } = options;
  const api = plain ? client(place).messages : client(place).beta.messages;
  const body = { model: "demo", max_tokens: 2000, messages, ...rest };
  if (!streamed) return checked(await api.create(body));
  const events = api.stream(body);
  const seen = [];
  for await (const event of events) seen.push(event.type);
  const count = (kind) => seen.filter((one) => one === kind).length;
  const message = await events.finalMessage();
  for (const kind of ["message_start", "message_delta", "message_stop"]) assert.equal(count(kind), 1, kind);
  for (const kind of ["start", "stop"]) assert.equal(count(`content_block_${kind}`), message.content.length);
  return checked(message);
}

async function checked(message) {
  // The demo model counts a token for every four bytes of a request.
  const { requests } = await read(`${demo}/demo/requests`);
  const expected = requests.reduce((sum, { body }) => sum + Math.ceil(Buffer.byteLength(body) / 4), 0);
  assert.equal(message.usage.input_tokens, expected);
  return message;
}

async function checkNext(place, streamed, messages, message, options) {
  const known = (await asked()).at(-1).messages;
  await script(say("Indeed."));
  const after = await ask(place, streamed, [...messages, assistant(message), user("Sure?")], options);
  assert.equal(textOf(after), "Indeed.");
  const [{ messages: got }] = await asked();
  assert.deepEqual(got.slice(0, known.length), known);
  assert.deepEqual(got.slice(known.length).map((one) => one.role), ["assistant", "user"]);
}

const checks = {};

checks["a tool of each MCP server is called and the conversation goes on"] = async (streamed) => {
  const servers = { everything: "get-sum", "mcp-json": "add", "mcp-events-session": "add", "fastmcp-json": "add" };
  for (const [name, tool] of Object.entries(servers)) {
    const messages = [user(`Add with ${name}.`)];
    await script(call(`mcp__${name}__${tool}`, { a: 20, b: 22 }), say("It is 42."));
    const message = await ask("on", streamed, messages, mcp(name));
    assert.deepEqual(kinds(message), ["mcp_tool_use", "mcp_tool_result", "text"]);
    const [use, result] = message.content;
    assert.deepEqual([use.name, use.server_name, use.input], [tool, name, { a: 20, b: 22 }]);
    assert.equal(result.tool_use_id, use.id);
    assert.ok(!result.is_error && result.content[0].text.includes("42"), JSON.stringify(result));
    assert.equal(message.stop_reason, "end_turn");
    await checkNext("on", streamed, messages, message, mcp(name));
  }
};

checks["a server of the old transport is refused in words"] = async (streamed) => {
  for (const name of ["everything-sse", "mcp-sse"]) {
    await assert.rejects(ask("on", streamed, [user("Hi")], mcp(name)), (error) => {
      assert.equal(error.status, 400);
      assert.match(error.message, /HTTP\+SSE/);
      return true;
    });
  }
};

checks["the notebook loop runs all calls in order and changes the notebook"] = async (streamed) => {
  await fetch(notebook, { method: "DELETE" });
  const messages = [user("Print the sum of 1 to 10 in my notebook.")];
  const source = "print(sum(range(11)))";
  await script(
    call("mcp__notebook__get_state", {}), call("mcp__notebook__create_cell", { source }),
    call("mcp__notebook__run_cell", { index: 0 }), call("mcp__notebook__get_state", {}), say("55."),
  );
  const message = await ask("on", streamed, messages, mcp("notebook"));
  assert.deepEqual(kinds(message), [...Array(4).fill(["mcp_tool_use", "mcp_tool_result"]).flat(), "text"]);
  const { cells, calls } = await read(notebook);
  assert.deepEqual(cells, [{ source, output: "55" }]);
  assert.deepEqual(calls.map((one) => one.name), ["get_state", "create_cell", "run_cell", "get_state"]);
  await checkNext("on", streamed, messages, message, mcp("notebook"));
};

checks["a pause is continued with the call that the time left out"] = async (streamed) => {
  const messages = [user("Add.")];
  const late = "\ndemo:late 1800";
  await script(call("mcp__mcp-json__add", { a: 1, b: 1 }), call("mcp__mcp-json__add", { a: 2, b: 2 }, late));
  const message = await ask("short", streamed, messages, mcp("mcp-json"));
  assert.equal(message.stop_reason, "pause_turn");
  assert.deepEqual(kinds(message), ["mcp_tool_use", "mcp_tool_result", "mcp_tool_use"]);
  messages.push(assistant(message));
  await script(say("4."));
  const after = await ask("short", streamed, messages, mcp("mcp-json"));
  assert.deepEqual(kinds(after), ["mcp_tool_result", "text"]);
  assert.equal(after.content[0].tool_use_id, message.content[2].id);
  assert.equal(after.content[0].content[0].text, "4");
  await checkNext("short", streamed, messages, after, mcp("mcp-json"));
};

checks["a tool found among 200 is called by the client"] = async (streamed) => {
  const tools = Array.from({ length: 200 }, (_, at) => ({
    name: `read_${at === 117 ? "weather" : "subject"}_${at}`,
    description: "Reads",
    input_schema: { type: "object", properties: { place: { type: "string" } } },
    defer_loading: true,
  }));
  for (const [kind, input] of [["regex", { pattern: "weather" }], ["bm25", { query: "weather" }]]) {
    const name = `tool_search_tool_${kind}`;
    const options = { plain: true, tools: [{ type: `${name}_20251119`, name }, ...tools] };
    const messages = [user("How is the weather?")];
    await script(call(name, input), call("read_weather_117", { place: "Oslo" }));
    const message = await ask("on", streamed, messages, options);
    assert.deepEqual(kinds(message), ["server_tool_use", "tool_search_tool_result", "tool_use"]);
    assert.deepEqual(message.content[0].input, input);
    assert.deepEqual(message.content[1].content.tool_references.map((one) => one.tool_name), ["read_weather_117"]);
    messages.push(assistant(message));
    messages.push(user([{ type: "tool_result", tool_use_id: message.content[2].id, content: "sunny" }]));
    await script(say("Sunny."));
    const after = await ask("on", streamed, messages, options);
    assert.equal(textOf(after), "Sunny.");
    await checkNext("on", streamed, messages, after, options);
  }
};

checks["a search has results, cited text and a limit of uses"] = async (streamed) => {
  const options = { plain: true, tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 1 }] };
  const messages = [user("What is alpha?")];
  await script(
    call("web_search", { query: "alpha" }), call("web_search", { query: "beta" }), say("Alpha is first. [[1]]"),
  );
  const message = await ask("on", streamed, messages, options);
  const [found, refused] = message.content.filter((block) => block.type === "web_search_tool_result");
  assert.equal(found.content.length, 3);
  assert.equal(refused.content.error_code, "max_uses_exceeded");
  const cited = message.content.at(-1);
  assert.deepEqual([cited.text, cited.citations[0].url], ["Alpha is first.", "https://docs.a.example/x"]);
  assert.equal(message.usage.server_tool_use.web_search_requests, 1);
  await checkNext("on", streamed, messages, message, options);
};

checks["nothing more is asked when the client leaves while a tool runs"] = async (streamed) => {
  await fetch(notebook, { method: "DELETE" });
  await script(call("mcp__notebook__wait", { seconds: 2 }), call("mcp__notebook__create_cell", { source: "1" }));
  const body = { model: "demo", max_tokens: 2000, messages: [user("Wait.")], ...mcp("notebook") };
  if (streamed) {
    const events = client("on").beta.messages.stream(body);
    for await (const event of events) if (event.type === "content_block_stop") break;
  } else {
    await assert.rejects(client("on", { timeout: 1000 }).beta.messages.create(body));
  }
  await new Promise((done) => setTimeout(done, 3000));
  assert.deepEqual((await read(notebook)).calls.map((one) => one.name), ["wait"]);
  assert.equal((await asked()).length, 1);
};

let passed = 0;
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  for (const streamed of [false, true]) {
    const title = name + (streamed ? ", streamed" : "");
    try {
      await check(streamed);
      passed += 1;
      console.log(`ok   ${title}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${title}\n${error.stack}`);
    }
  }
}
await fetch(`${demo}/demo/script`, { method: "DELETE" });
console.log(`@anthropic-ai/sdk ${version}, node ${process.version}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
