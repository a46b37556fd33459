// Reads a GGUF file with llama.cpp, through node-llama-cpp: the tokens of texts, the texts of tokens, and the text that
// the model writes greedily. Settings (JSON on stdin): { package, model, texts, tokens, prompts, stops, length }.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const settings = JSON.parse(readFileSync(0, 'utf8'));
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(join(settings.package, 'dist', 'index.js')).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 1 });
const model = await llama.loadModel({ modelPath: settings.model });
const context = await model.createContext({ contextSize: 256, threads: 1 });
const sequence = context.getSequence();

async function greedy(prompt) {
  const tokens = [];
  await sequence.clearHistory();
  for await (const token of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    tokens.push(token);
    if (tokens.length === settings.length || settings.stops.includes(token)) break;
  }
  return tokens;
}

const written = [];
for (const prompt of settings.prompts) written.push(await greedy(prompt));
console.log(
  JSON.stringify({
    written,
    encoded: settings.texts.map((text) => model.tokenize(text, true)),
    decoded: settings.tokens.map((tokens) => model.detokenize(tokens, true)),
    template: model.fileInfo.metadata.tokenizer.chat_template,
  }),
);
await llama.dispose();
