// The gateway's page in a real Chromium, in front of a scripted upstream.
//
//     node page.mjs CREOLE CHROMIUM FOLDER [PICTURES]
//
// CREOLE and CHROMIUM are programs, FOLDER has playwright-core in its node_modules. With PICTURES, a folder, it draws the
// pictures of the documents in place of the checks.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const [creole, chromium, folder, pictures] = process.argv.slice(2);
const { chromium: browsers } = createRequire(join(folder, "package.json"))("playwright-core");

const CANARIES = { prompt: "canary-prompt-7f3a", input: "canary-input-91bd", key: "sk-canary-5c20d4e8f1", answer: "canary-answer-e6" };
const WIDE = { width: 1280, height: 960 };
const NARROW = { width: 390, height: 844 };

/** Speaks Chat Completions. Words of the system prompt say what it does: `~tokens=40,ms=10,first=200~`. */
async function startUpstream() {
  const held = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (!request.url.endsWith("/chat/completions")) {
      response.writeHead(200, { "content-type": "application/json" });
      return response.end('{"object":"list","data":[]}');
    }
    const words = /~(.*?)~/.exec(body)?.[1] ?? "";
    const says = Object.fromEntries(words.split(",").map((word) => word.split("=")));
    const number = (name, other) => Number(says[name] ?? other);
    if (says.status) {
      response.writeHead(number("status"), { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message: `no, ${CANARIES.answer}` } }));
    }
    await pause(number("first", 0));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`);
    const choice = (delta, finish_reason = null) => send({ id: "c", choices: [{ index: 0, delta, finish_reason }] });
    const tokens = number("tokens", 3);
    for (let at = 0; at < tokens; at++) {
      choice({ content: `${CANARIES.answer} ` });
      if (number("ms", 0)) await pause(number("ms"));
      // As long as the test wants to look at it.
      if (says.hold && at === 1) await new Promise((go) => held.push(go));
    }
    const calls = number("calls", 0);
    for (let index = 0; index < calls; index++) {
      const given = says.broken ? `{"x": ${CANARIES.input}` : JSON.stringify({ x: CANARIES.input });
      choice({ tool_calls: [{ index, id: `id${index}`, type: "function", function: { name: "look", arguments: given } }] });
    }
    choice({}, calls ? "tool_calls" : "stop");
    const prompt_tokens = number("in", 1200);
    send({ choices: [], usage: { prompt_tokens, completion_tokens: tokens, prompt_tokens_details: { cached_tokens: number("cached", 0) } } });
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${server.address().port}`, release: () => held.splice(0).forEach((go) => go()) };
}

async function startGateway(config) {
  const file = join(profile, "creole.json");
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(creole, ["serve", "--listen", "127.0.0.1:0", "--config", file], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, CANARY_KEY: CANARIES.key },
  });
  children.push(child);
  const [line] = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  const url = /http:\/\/[\d.]+:\d+/.exec(String(line))[0];
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) * 1024;
  return { child, url, resident };
}

/** A request of a client, with a canary in every place; behind `~` stands what the upstream is to do. */
async function ask(url, what, more = {}) {
  const [model, words = ""] = what.split("~");
  const response = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": CANARIES.key, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({
      model,
      max_tokens: 900,
      stream: true,
      system: `${CANARIES.prompt} ~${words}~`,
      tools: [{ name: "look", description: CANARIES.prompt, input_schema: { type: "object", properties: { x: { type: "string" } } } }],
      messages: [
        { role: "user", content: CANARIES.prompt },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: { x: CANARIES.input } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: CANARIES.prompt }] },
      ],
      ...more,
    }),
  });
  return response.text();
}

const children = [];
const profile = mkdtempSync(join(tmpdir(), "creole-page-"));
const upstream = await startUpstream();
const upstreams = { local: { url: upstream.url, profile: "ollama" } };
const gateway = await startGateway({ log: "error", upstreams });
const context = await browsers.launchPersistentContext(join(profile, "browser"), {
  executablePath: chromium,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
  viewport: WIDE,
});

const clean = (text) => {
  for (const [name, canary] of Object.entries(CANARIES)) assert.ok(!text.includes(canary), `the ${name} is on the page`);
};

/** A page, and everything that went wrong on it or left this machine. */
async function opened(url, options = {}) {
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith("data:") || wrong.push(request.url()));
  await page.setViewportSize(options.size ?? WIDE);
  await page.emulateMedia({ colorScheme: options.scheme ?? "light" });
  await page.goto(url, { waitUntil: "load" });
  return { page, wrong };
}
const live = (page) => page.waitForSelector("#live.on");

const checks = {
  async "a stream is on the page while it runs, and in the table when it has ended"() {
    const { page, wrong } = await opened(gateway.url);
    await live(page);
    const asked = ask(gateway.url, "stream-model~tokens=40,hold=1");
    const row = page.locator("#running tr", { hasText: "stream-model" });
    await row.filter({ hasText: "streams" }).waitFor();
    assert.match(await row.locator("td[data-label=Time]").innerText(), /s$/);
    upstream.release();
    await asked;
    await page.locator("#exchanges tr", { hasText: "stream-model" }).filter({ hasText: "end_turn" }).waitFor();
    await row.waitFor({ state: "detached" });
    const cells = await page.locator("#exchanges tbody tr").first().locator("td").allInnerTexts();
    assert.ok(cells.includes("1.2k") && cells.includes("40") && cells.includes("200"), cells.join("|"));
    assert.deepEqual(wrong, []);
    await page.close();
  },

  async "prompts, answers, tool inputs and keys are nowhere in it"() {
    await ask(gateway.url, "caller~calls=2,cached=900");
    await ask(gateway.url, "broken~calls=1,broken=1");
    await ask(gateway.url, "refused~status=400");
    await ask(gateway.url, "down~status=500", { stream: false });
    await ask(gateway.url, "wrong", { messages: [{ role: CANARIES.prompt, content: CANARIES.input }] });
    await fetch(`${gateway.url}/v1/files?key=${CANARIES.key}`, { headers: { authorization: `Bearer ${CANARIES.key}` } });
    const { page, wrong } = await opened(gateway.url);
    await live(page);
    await page.locator("#exchanges td[data-label=Model]", { hasText: "refused" }).waitFor();
    await page.locator("#exchanges tr", { hasText: "GET /v1/files" }).waitFor();
    clean(await page.content());
    clean(await (await fetch(gateway.url, { headers: { accept: "text/html" } })).text());
    const events = await fetch(gateway.url, { headers: { accept: "text/event-stream" } });
    const reader = events.body.getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    assert.match(first, /^data: \{"figures":/);
    clean(first);
    await reader.cancel();
    assert.deepEqual(wrong, []);
    await page.close();
  },

  async "a name that a stranger chose runs nothing"() {
    const { page, wrong } = await opened(gateway.url);
    await live(page);
    await ask(gateway.url, "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>");
    await page.locator("#exchanges tr", { hasText: "<img src=x" }).waitFor();
    assert.equal(await page.title(), "Creole");
    assert.deepEqual(wrong, []);
    await page.close();
  },

  async "a warning leads to what it means"() {
    const { page } = await opened(gateway.url);
    await page.locator("#exchanges a.note", { hasText: "tool_input" }).first().click();
    const code = page.locator("#meanings b:target");
    assert.match(await code.innerText(), /^tool_input/);
    assert.match(await page.locator("#meanings tr", { has: page.locator("b:target") }).innerText(), /input/);
    await page.close();
  },

  async "a thousand exchanges leave a hundred rows, and no growth in the page and the gateway"() {
    const { page, wrong } = await opened(gateway.url);
    await live(page);
    const session = await context.newCDPSession(page);
    const measured = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = await session.send("Runtime.getHeapUsage");
      const { nodes } = await session.send("Memory.getDOMCounters");
      return { usedSize, nodes, resident: gateway.resident() };
    };
    const some = async (count) => {
      for (let done = 0; done < count; done += 25) {
        await Promise.all(Array.from({ length: 25 }, (_, at) => ask(gateway.url, `many-${at}`)));
      }
      await page.waitForFunction(() => document.querySelectorAll("#exchanges tbody tr").length === 100);
      await pause(1000);
    };
    await some(300);
    const before = await measured();
    await some(1000);
    const after = await measured();
    assert.equal(await page.locator("#exchanges tbody tr").count(), 100);
    const grown = (name) => (after[name] - before[name]) / before[name];
    console.log(`after 300 and 1300 exchanges: ${JSON.stringify(before)} ${JSON.stringify(after)}`);
    assert.ok(grown("usedSize") < 0.2 && grown("nodes") < 0.2 && grown("resident") < 0.25);
    assert.deepEqual(wrong, []);
    await page.close();
  },

  async "it fits a telephone and a wide window, in the dark and in the light"() {
    const grounds = new Set();
    for (const [size, scheme] of [[WIDE, "light"], [WIDE, "dark"], [NARROW, "light"], [NARROW, "dark"]]) {
      const { page, wrong } = await opened(gateway.url, { size, scheme });
      await live(page);
      const [wide, ground, text] = await page.evaluate(() => {
        const style = getComputedStyle(document.body);
        return [document.documentElement.scrollWidth, style.backgroundColor, style.color];
      });
      assert.ok(wide <= size.width, `${wide} of ${size.width} in ${scheme}`);
      assert.notEqual(ground, text);
      grounds.add(ground);
      assert.deepEqual(wrong, []);
      await page.close();
    }
    assert.equal(grounds.size, 2);
  },

  async "without JavaScript it has the table"() {
    const bare = await context.browser()?.newContext({ javaScriptEnabled: false }) ?? context;
    const page = await bare.newPage();
    if (bare === context) {
      const session = await context.newCDPSession(page);
      await session.send("Emulation.setScriptExecutionDisabled", { value: true });
    }
    await page.goto(gateway.url);
    assert.equal(await page.locator("#live").innerText(), "reload to update");
    assert.equal(await page.locator("#exchanges tbody tr").count(), 100);
    assert.ok(await page.locator("#plots rect").count() > 50);
    await page.close();
  },

  async "an upstream that is gone is told, and an open page does not hold up the end"() {
    const gone = await startGateway({ log: "error", upstreams: { gone: { url: "http://127.0.0.1:9" } } });
    const { page } = await opened(gone.url);
    await live(page);
    await page.locator("#upstreams tr", { hasText: "does not answer" }).waitFor();
    const ended = once(gone.child, "exit");
    const began = Date.now();
    gone.child.kill("SIGTERM");
    await ended;
    assert.ok(Date.now() - began < 3000);
    await page.waitForSelector("#live.off");
    await page.close();
  },

  async "where clients have keys the page wants one as its password"() {
    const keyed = await startGateway({ log: "error", upstreams: { local: { url: upstream.url, key: "none" } }, client_keys: [{ secret: "CANARY_KEY", name: "team" }] });
    const page = await context.newPage();
    const refused = await fetch(keyed.url, { headers: { accept: "text/html", "sec-fetch-mode": "navigate", "upgrade-insecure-requests": "1" } });
    assert.equal(refused.status, 401);
    await page.setExtraHTTPHeaders({ authorization: `Basic ${btoa(`any:${CANARIES.key}`)}` });
    await page.goto(keyed.url);
    await live(page);
    clean(await page.content());
    await page.close();
  },
};

/** The pictures of the documents. */
async function draw() {
  const models = ["qwen3-coder", "claude-sonnet-4-5", "gpt-5.1-mini"];
  for (let at = 0; at < 46; at++) {
    const wave = Math.round(20 + 14 * Math.sin(at / 4) + (at % 5) * 3);
    const name = models[at % 7 === 3 ? 1 : at % 11 === 5 ? 2 : 0];
    const input = 11800 + at * 410;
    let words = `tokens=${wave},ms=${6 + (at % 4)},first=${50 + (at % 6) * 22},in=${input},cached=${at % 9 ? Math.round(input * 0.9) : 0}`;
    if (at % 3 === 1) words += ",calls=1";
    if (at === 22 || at === 41) words += ",calls=1,broken=1";
    if (at === 31) words = "status=503";
    await ask(gateway.url, `${name}~${words}`, at % 13 === 4 ? { top_k: 4 } : {});
  }
  const asked = [ask(gateway.url, "qwen3-coder~tokens=60,hold=1,ms=8"), ask(gateway.url, "claude-sonnet-4-5~first=5000")];
  for (const [file, size, scheme] of [["page-light", { ...WIDE, height: 1120 }, "light"], ["page-dark", { ...WIDE, height: 1120 }, "dark"], ["page-narrow", NARROW, "light"]]) {
    const { page } = await opened(gateway.url, { size, scheme });
    await live(page);
    await page.locator("#running tr", { hasText: "streams" }).waitFor();
    const path = join(pictures, `${file}.png`);
    await page.screenshot({ path });
    // Half the bytes, where that program is there.
    spawnSync("pngquant", ["--force", "--ext", ".png", "--strip", "96", path]);
    await page.close();
  }
  upstream.release();
  await Promise.all(asked);
}

context.setDefaultTimeout(10_000);
// A check that hangs must not keep the machine.
const watchdog = setTimeout(() => {
  console.log("test result: FAILED. 0 passed; 1 failed; 0 ignored");
  for (const child of children) child.kill("SIGKILL");
  process.exit(1);
}, 170_000);
let failed = 0;
let passed = 0;
try {
  if (pictures) await draw();
  else
    for (const [name, run] of Object.entries(checks)) {
      try {
        await run();
        passed++;
        console.log(`test ${name} ... ok`);
      } catch (error) {
        failed++;
        console.log(`test ${name} ... FAILED\n${error.stack}`);
      }
    }
} finally {
  clearTimeout(watchdog);
  await context.close();
  for (const child of children) child.kill();
  upstream.server.closeAllConnections();
  upstream.server.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(`test result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed; 0 ignored`);
process.exit(failed ? 1 : 0);
