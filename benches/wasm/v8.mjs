// What a translation costs in V8, as a ratio to its floor in V8. Arguments: the module with the
// translation, the module with the floor (the first one, unless given), parts of names of cases.
//
// Both sides take turns in one process, and what counts is the processor's time, so a busy machine
// disturbs little; the medians of the ratios are printed. V8 compiles everything with its optimizing
// compiler before, as it does after a while with what is hot.

import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";

setFlagsFromString("--no-liftoff");
setFlagsFromString("--no-wasm-dynamic-tiering");

const files = process.argv.slice(2).filter((argument) => argument.endsWith(".wasm"));
const wanted = process.argv.slice(2).filter((argument) => !argument.endsWith(".wasm"));

async function load(file) {
  const wasi = new WASI({ version: "preview1" });
  const module = await WebAssembly.compile(readFileSync(file));
  const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
  wasi.initialize(instance);
  return instance.exports;
}

function nameOf(exports, number) {
  let name = "";
  for (let at = 0, letter; (letter = exports.letter(number, at)); at++) {
    name += String.fromCharCode(letter);
  }
  return name;
}

// Nanoseconds for each text of a case.
function measure(exports, number, side, times) {
  const texts = exports.prepare(number, side, times);
  const start = process.cpuUsage();
  for (let time = 0; time < times; time++) exports.run();
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1000) / times / texts;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

const creole = await load(files[0]);
const floor = await load(files[1] ?? files[0]);
console.log(`${"".padEnd(20)} ${"ns".padStart(12)} ${"to floor".padStart(10)}`);
for (let number = 0, name; (name = nameOf(creole, number)); number++) {
  if (wanted.some((word) => !name.includes(word))) continue;
  const [costs, ratios] = [[], []];
  const end = Date.now() + 4000;
  while (Date.now() < end || costs.length < 11) {
    const least = measure(floor, number, 0, 8);
    const ours = measure(creole, number, 1, 2);
    costs.push(ours);
    ratios.push(ours / least);
  }
  const [cost, ratio] = [median(costs).toFixed(0), median(ratios).toFixed(2)];
  console.log(`${name.padEnd(20)} ${cost.padStart(12)} ${ratio.padStart(9)}x`);
}
