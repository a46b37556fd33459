// Decoding with llama.cpp through node-llama-cpp: parallel sequences of one context, batched by the library.
// Settings (JSON, the first line on stdin): { package, model, threads, sequences, context, requests, checks }.
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const settings = JSON.parse((await lines.next()).value);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(join(settings.package, 'dist', 'index.js')).href);
const llama = await getLlama({
  gpu: false,
  build: 'never',
  logLevel: LlamaLogLevel.error,
  maxThreads: settings.threads,
});
const model = await llama.loadModel({ modelPath: settings.model });
const context = await model.createContext({
  sequences: settings.sequences,
  contextSize: settings.context,
  batchSize: 2048,
  threads: settings.threads,
});

const sequences = Array.from({ length: settings.sequences }, () => context.getSequence());

/** Samples `length` tokens after the prompt, none of which ends the response. */
async function answer(sequence, { prompt, length }, temperature) {
  const tokens = [];
  await sequence.clearHistory();
  const options = { temperature, topK: 0, topP: 1, minP: 0, yieldEogToken: true };
  for await (const token of sequence.evaluate(prompt, options)) {
    tokens.push(token);
    if (tokens.length === length) break;
  }
  return tokens;
}

async function decodeAll(requests) {
  let next = 0;
  const counts = await Promise.all(
    sequences.map(async (sequence) => {
      let sampled = 0;
      while (next < requests.length) {
        const tokens = await answer(sequence, requests[next++], 1);
        sampled += tokens.length;
      }
      return sampled;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

const greedy = [];
for (const check of settings.checks) greedy.push(await answer(sequences[0], check, 0));
await decodeAll(settings.requests.slice(0, settings.sequences).map((request) => ({ ...request, length: 2 })));
console.log(JSON.stringify({ greedy }));
while (!(await lines.next()).done) {
  const started = performance.now();
  const amount = await decodeAll(settings.requests);
  console.log(JSON.stringify({ amount, seconds: (performance.now() - started) / 1e3 }));
}
await llama.dispose();
