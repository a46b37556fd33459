import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { EmbeddedBackend } from '@drmas/engine/embedded';
import { BackendError } from '@drmas/engine/errors';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { lossNamed } from '@drmas/engine/internal/loss/loss-spec';
import { policyLoss } from '@drmas/engine/loss';
import { nodeFiles } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TableBackend } from '../src/lab/table/table-backend.js';
import selfNormalised from './fixtures/losses/self-normalised.js';
import { plainAdamW } from './support/adamw.js';
import { sampleOf } from './support/samples.js';
import { temporaryRoot } from './support/tiny-run.js';

const root = temporaryRoot();
const module = pathToFileURL(join(root, 'self-normalised.mjs')).href;
const samples = [sampleOf([1, 2], [1, -0.5]), sampleOf([2], [0]), sampleOf([1, 1, 2], [2, 2, 2])];
let backend: EmbeddedBackend;

beforeAll(async () => {
  // One file of JavaScript: the threads of tests have no loader for TypeScript.
  await build({
    entryPoints: [fileURLToPath(new URL('./fixtures/losses/self-normalised.ts', import.meta.url))],
    outfile: fileURLToPath(module),
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
  backend = await startEmbedded({ threads: 1, files: nodeFiles });
});
afterAll(() => backend.dispose());

async function open(name: string) {
  const tokenizer = bytesTokenizer();
  const sizes = { vocabSize: tokenizer.vocabSize, width: 8, layers: 1, heads: 2, kvHeads: 1, headDim: 4 };
  const config = { ...sizes, feedForward: 12, context: 32, ropeBase: 10_000, normEpsilon: 1e-6 };
  return backend.open({ type: 'random', config, tokenizer, seed: 3 }, 'policy', name);
}

it("trains by a user's loss, which the engine's thread imports", async () => {
  const policy = await open('solver');
  const loss = lossNamed({ type: 'self-normalised', scale: 3 }, [{ declaration: selfNormalised, module }]);
  const before = await policy.logprobs(samples);
  const expected = policyLoss(
    {
      logprobs: before,
      behaviourLogprobs: samples.map(({ behaviourLogprobs }) => behaviourLogprobs),
      advantages: samples.map(({ advantages }) => advantages),
      mask: samples.map(({ mask }) => mask),
    },
    loss,
  );
  const result = await policy.forwardBackward(samples, { loss, normalizer: 6 });
  expect(result.loss).toBeCloseTo(expected.loss, 6);
  expect(result.metrics.meanRatio).toBeCloseTo(expected.metrics.meanRatio as number, 6);
  expect(result.gradientNorm).toBeGreaterThan(0);
  expect(await policy.optimStep({ optimizer: plainAdamW(0.01), clipNorm: 0 })).toMatchObject({ applied: true });
  const [, , after] = await policy.logprobs(samples);
  const sum = (row: Float32Array | undefined) => row?.reduce((all, each) => all + each, 0) ?? Number.NaN;
  expect(sum(after)).toBeGreaterThan(sum(before[2])); // its advantages are positive
});

it('refuses a loss that it cannot import', async () => {
  const policy = await open('other');
  const train = (file: string | undefined, type = 'self-normalised') =>
    policy.forwardBackward(samples, { loss: { type: 'own', settings: { type }, module: file }, normalizer: 6 });
  await expect(train(undefined)).rejects.toThrow(BackendError);
  await expect(train(undefined)).rejects.toThrow("the loss 'self-normalised' is in no module");
  await expect(train('file:///nowhere/loss.mjs')).rejects.toThrow(/use: file:\/\/\/nowhere\/loss.mjs cannot be loaded/);
  await expect(train(module, 'mine')).rejects.toThrow(/unknown loss "mine"/);
  await policy.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer: 6 });
});

it('trains a table too, which needs no module', async () => {
  const tables = new TableBackend(nodeFiles);
  const shape = { choices: ['left', 'right'], features: [''], length: 1 };
  const table = await tables.open(
    { type: 'of-kind', model: { type: 'choice-table', ...shape } as never },
    'policy',
    'chooser',
  );
  const question = shape.choices.length; // the first token after the choices
  const played = sampleOf([0], [1], {
    tokens: Int32Array.of(question, 0),
    behaviourLogprobs: Float32Array.of(0, -Math.LN2),
  });
  const loss = lossNamed({ type: 'self-normalised' }, [{ declaration: selfNormalised }]);
  const { metrics } = await table.forwardBackward([played], { loss, normalizer: 1 });
  expect(metrics.meanRatio).toBeCloseTo(1, 6);
});
