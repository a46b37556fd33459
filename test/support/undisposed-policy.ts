/**
 * Samples from a model and disposes of nothing, between waits in which nothing but the model keeps the process alive.
 *
 * usage: node --import tsx test/support/undisposed-policy.ts DIRECTORY
 */
import { loadPolicy } from '@drmas/engine/node';

const policy = await loadPolicy(process.argv[2] ?? '', { threads: 1 });
const sampling = { prompt: [2, 4], maxTokens: 1, temperature: 1, ignoreEos: true };
const sampled = await Promise.all([1, 2, 3, 4].map((seed) => policy.generate({ ...sampling, seed })));
await policy.logits([2, 4, 3]);
console.log(`${sampled.flatMap(({ tokens }) => tokens).length} tokens`);
