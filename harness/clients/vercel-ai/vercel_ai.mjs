// The Vercel AI SDK in front of Creole: the strictest parser of streams among the clients.
// See ../harness.py.
import assert from "node:assert/strict";
import { base, call, check, load, main, paired, say, script, sent, step, version } from "../harness.mjs";

const { generateText, streamText, tool, isStepCount, stepCountIs, Output } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { z } = await load("zod");

globalThis.AI_SDK_LOG_WARNINGS = false;
const model = createAnthropic({ baseURL: base + "/v1", apiKey: "dummy" })("demo");
const stopWhen = (stepCountIs ?? isStepCount)(5);
const asked = [];
const tools = {
  get_weather: tool({
    description: "The weather of a city",
    inputSchema: z.object({ city: z.string(), days: z.number().int().optional() }),
    execute: async ({ city, days }) => {
      asked.push([city, days ?? 1]);
      return "sunny in " + city;
    },
  }),
};
const steps = [
  step(say("Let me look."), call("get_weather", { city: 'Paris ✓ "q"', days: 2 })),
  step(call("get_weather", { city: "Rome" }), call("get_weather", { city: "Oslo" })),
  step(say("It is sunny.")),
];

async function looked() {
  assert.deepEqual(asked.splice(0), [['Paris ✓ "q"', 2], ["Rome", 1], ["Oslo", 1]]);
  const bodies = await sent();
  assert.equal(bodies.length, 3);
  paired(bodies.at(-1));
  assert.equal(bodies.at(-1).messages.filter((m) => m.role === "tool").length, 3);
}

async function streamed(options) {
  const result = streamText({ model, maxRetries: 0, onError() {}, ...options });
  const kinds = [];
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    kinds.push(part.type);
  }
  return { kinds, text: await result.text, steps: await result.steps, reason: await result.finishReason };
}

check("an agent calls its tools and answers", async () => {
  await script(...steps);
  const result = await generateText({ model, maxRetries: 0, tools, stopWhen, prompt: "weather" });
  assert.equal(result.text, "It is sunny.");
  assert.equal(result.steps.length, 3);
  assert.ok(result.usage.inputTokens > 0 && result.usage.outputTokens > 0);
  await looked();
});

check("a streamed agent calls its tools and answers", async () => {
  await script(...steps);
  const result = await streamed({ tools, stopWhen, prompt: "weather" });
  assert.equal(result.text, "It is sunny.");
  assert.equal(result.steps.length, 3);
  assert.equal(result.reason, "stop");
  assert.ok(result.kinds.includes("tool-input-delta"), result.kinds.join());
  await looked();
});

check("interleaved parallel calls in small pieces arrive whole", async () => {
  await script(
    step(call("get_weather", { city: "Rome" }), call("get_weather", { city: "Oslo" }), "demo:interleave demo:pieces 7"),
    step(say("Both.")),
  );
  const result = await streamed({ tools, stopWhen, prompt: "weather" });
  assert.equal(result.text, "Both.");
  assert.deepEqual(asked.splice(0), [["Rome", 1], ["Oslo", 1]]);
});

check("an object comes by its schema", async () => {
  // Asked for as a call of a tool, since the SDK does not know the model.
  await script(step(call("json", { city: "Paris", temperature: 21 })));
  const schema = z.object({ city: z.string(), temperature: z.number() });
  const result = await generateText({ model, maxRetries: 0, output: Output.object({ schema }), prompt: "where?" });
  assert.deepEqual(result.output, { city: "Paris", temperature: 21 });
  await sent();
});

check("reasoning is a part of its own and goes back", async () => {
  await script(step("demo:reason", call("get_weather", { city: "Paris" })), step(say("Thought.")));
  const result = await streamed({ tools, stopWhen, prompt: "weather" });
  assert.equal(result.text, "Thought.");
  assert.ok(result.kinds.includes("reasoning-delta"), result.kinds.join());
  asked.length = 0;
});

for (const word of ["unfinished", "error-mid", "cut"]) {
  check(`a stream with demo:${word} is no success`, async () => {
    await script(step(say("This is cut in the middle of the stream."), `demo:${word}`));
    const failed = await streamed({ prompt: "hello" }).then((got) => got, () => null);
    // What ends without its events must not look finished.
    assert.ok(failed === null || failed.reason !== "stop", JSON.stringify(failed));
  });
}

await main("Vercel AI SDK", `${version("ai")} (@ai-sdk/anthropic ${version("@ai-sdk/anthropic")})`);
