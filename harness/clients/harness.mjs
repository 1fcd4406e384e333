// The same as harness.py for clients that are libraries of JavaScript: see there for how a script is
// started and what it prints.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { asChat } from "./as_chat.mjs";

export const [base, demo, folder] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
/** A package that is installed in the client's folder. */
export const load = (name) => import(pathToFileURL(require.resolve(name)).href);
/** The version of a package there. */
export const version = (name) =>
  JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")).version;

const checks = [];
/** Registers a check; its name is a claim. */
export const check = (name, run) => checks.push([name, run]);

// The words of docs/quick-start.md.
export const say = (text) => `demo:say ${text}`;
export const call = (name, input) =>
  `demo:tool ${name}\ndemo:input ${typeof input === "string" ? input : JSON.stringify(input)}`;
/** One answer of the demo model. */
export const step = (...words) => ({ words: words.join("\n") });
/** The same, to the requests whose body has a text in it. */
export const stepWhen = (when, ...words) => ({ when, words: words.join("\n") });

export async function script(...steps) {
  await forget();
  const answer = await fetch(demo + "/demo/script", { method: "POST", body: JSON.stringify(steps) });
  assert.equal(answer.status, 200, await answer.text());
}

async function forget() {
  await fetch(demo + "/demo/script", { method: "DELETE" });
  await fetch(demo + "/demo/requests", { method: "DELETE" });
}

/** The bodies that the demo model answered, those of Responses by `asChat`; one that it refused is a bug. */
export async function sent() {
  const { requests } = await (await fetch(demo + "/demo/requests")).json();
  for (const request of requests) assert.notEqual(request.status, 400, request.body);
  const answered = requests.filter((r) => /\/(chat\/completions|responses)$/.test(r.path));
  return answered.map((r) => asChat(JSON.parse(r.body)));
}

/** Every call has its result right after it, and no id comes twice. */
export function paired(body) {
  let waiting = [];
  const seen = new Set();
  for (const message of body.messages) {
    if (message.role === "tool") {
      assert.ok(waiting.includes(message.tool_call_id), message.tool_call_id);
      waiting = waiting.filter((id) => id !== message.tool_call_id);
      continue;
    }
    assert.deepEqual(waiting, [], "calls without results");
    waiting = (message.tool_calls ?? []).map((call) => call.id);
    for (const id of waiting) {
      assert.ok(!seen.has(id), `${id} comes twice`);
      seen.add(id);
    }
  }
  assert.deepEqual(waiting, [], "calls without results");
}

export async function main(name, text) {
  console.log(`version ${name} ${text}`);
  let failed = 0;
  for (const [claim, run] of checks) {
    await forget();
    const start = Date.now();
    try {
      await run();
      console.log(`ok ${claim} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${claim}`);
      console.log(error?.stack ?? error);
    }
  }
  await forget();
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}
