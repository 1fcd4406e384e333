// LangChain for JavaScript in front of Creole; n8n has the same library inside. See ../harness.py.
import assert from "node:assert/strict";
import {
  base, call, check, load, main, paired, say, script, sent, step, stepWhen, version,
} from "../harness.mjs";

const { ChatAnthropic } = await load("@langchain/anthropic");
const { createAgent, tool } = await load("langchain");
const { z } = await load("zod");

const model = (more = {}) =>
  new ChatAnthropic({ model: "demo", apiKey: "dummy", anthropicApiUrl: base, maxRetries: 0, ...more });
const asked = [];
const weather = tool(
  async ({ city, days }) => {
    asked.push([city, days ?? 1]);
    return "sunny in " + city;
  },
  {
    name: "get_weather",
    description: "The weather of a city",
    schema: z.object({ city: z.string(), days: z.number().int().min(1).nullable().optional() }),
  },
);
const steps = [
  step(say("Let me look."), call("get_weather", { city: 'Paris ✓ "q"', days: 2 })),
  step(call("get_weather", { city: "Rome" }), call("get_weather", { city: "Oslo" })),
  step(say("It is sunny.")),
];
const ask = (content) => ({ messages: [{ role: "user", content }] });

async function looked() {
  assert.deepEqual(asked.splice(0).sort(), [["Oslo", 1], ['Paris ✓ "q"', 2], ["Rome", 1]]);
  const bodies = await sent();
  assert.equal(bodies.length, 3);
  paired(bodies.at(-1));
  assert.equal(bodies.at(-1).messages.filter((m) => m.role === "tool").length, 3);
}

check("an agent calls its tools and answers", async () => {
  await script(...steps);
  const agent = createAgent({ model: model(), tools: [weather], systemPrompt: "Be brief." });
  const { messages } = await agent.invoke(ask("weather"));
  assert.equal(messages.at(-1).text, "It is sunny.");
  await looked();
});

check("a streamed agent calls its tools and answers", async () => {
  await script(...steps);
  const agent = createAgent({ model: model({ streaming: true }), tools: [weather] });
  let text = "";
  for await (const [piece] of await agent.stream(ask("weather"), { streamMode: "messages" })) {
    if ((piece.getType?.() ?? piece._getType()) === "ai") text += piece.text;
  }
  assert.equal(text, "Let me look.It is sunny.");
  await looked();
});

check("an agent is the tool of another", async () => {
  await script(
    stepWhen("You are the RESEARCHER", call("get_weather", { city: "Paris" })),
    stepWhen("You are the RESEARCHER", say("RESEARCH: sunny.")),
    step(call("research", { question: "weather?" })),
    step(say("FINAL: sunny.")),
  );
  const research = tool(
    async ({ question }) => {
      const agent = createAgent({ model: model(), tools: [weather], systemPrompt: "You are the RESEARCHER." });
      return (await agent.invoke(ask(question))).messages.at(-1).text;
    },
    { name: "research", description: "Ask the researcher", schema: z.object({ question: z.string() }) },
  );
  const agent = createAgent({ model: model(), tools: [research], systemPrompt: "You are the ORCHESTRATOR." });
  const { messages } = await agent.invoke(ask("go"));
  assert.equal(messages.at(-1).text, "FINAL: sunny.");
  assert.equal((await sent()).length, 4);
  assert.deepEqual(asked.splice(0), [["Paris", 1]]);
});

check("structured output comes by its tool", async () => {
  await script(step(call("Place", { city: "Paris", temperature: 21 })));
  const schema = z.object({ city: z.string(), temperature: z.number() });
  const structured = model().withStructuredOutput(schema, { name: "Place", method: "functionCalling" });
  assert.deepEqual(await structured.invoke("where?"), { city: "Paris", temperature: 21 });
  await sent();
});

check("a broken stream is no success", async () => {
  await script(step(say("This is cut in the middle of the stream."), "demo:unfinished"));
  await assert.rejects(async () => {
    for await (const piece of await model().stream("hello")) void piece;
  }, /ended/);
});

await main("LangChain, JavaScript", `${version("langchain")} (@langchain/anthropic ${version("@langchain/anthropic")})`);
