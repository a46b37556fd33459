/**
 * This package's engine as a process of its own: its memory and processor time belong to one measurement alone. It
 * plays or trains a model on disk and talks as the peers do (serve.py).
 */
import { createInterface } from 'node:readline';
import type { Device } from '@drmas/engine';
import { PROJECTIONS, type Precision } from '@drmas/engine/contract';
import type { EmbeddedBackend } from '@drmas/engine/embedded';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { randomKey } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import type { Work } from '../measure/interleave.js';
import type { TrainingRow } from '../parts/real.js';
import { type DecodeRequest, usefulTokens } from '../workload.js';

export type Settings = {
  /** A directory in Hugging Face's layout, or a GGUF file. */
  readonly model: string;
  readonly threads: number;
  readonly device: Device;
  readonly precision: Precision;
} & (
  | { readonly requests: readonly DecodeRequest[]; readonly checks: readonly DecodeRequest[] }
  | {
      readonly rows: readonly TrainingRow[];
      readonly rank: number;
      /** The least seconds of a repetition, which has as many updates as fit. */
      readonly seconds: number;
    }
);

type About = Readonly<Record<string, unknown>>;
/** The message of a process that is ready, and its work. */
type Ready = readonly [About, () => Promise<Work>];

async function decoding(
  backend: EmbeddedBackend,
  { model, precision, requests, checks }: Extract<Settings, { readonly requests: unknown }>,
): Promise<Ready> {
  const policy = await backend.open({ type: 'directory', directory: model, precision }, 'frozen', 'bench');
  let round = 0;
  const decode = async (some: readonly DecodeRequest[], temperature: number) => {
    await policy.publish(); // empties the cache, in which the prompts of the round before would be found
    round++;
    const sampled = await Promise.all(
      some.map(({ prompt, length }, i) =>
        policy.generate({
          prompt,
          stopTokens: [],
          key: randomKey('bench', round, i),
          temperature,
          topP: 1,
          topK: 0,
          maxTokens: length,
        }),
      ),
    );
    return sampled.map(({ tokens }) => tokens);
  };
  const greedy = await decode(checks, 0);
  await decode(
    requests.map((request) => ({ ...request, length: 8 })),
    1,
  );
  const repeat = async () => {
    const started = performance.now();
    const tokens = await decode(requests, 1);
    const seconds = (performance.now() - started) / 1e3;
    const amount = tokens.reduce((sum, response) => sum + response.length, 0);
    if (amount !== usefulTokens(requests)) throw new Error(`sampled ${amount} of ${usefulTokens(requests)} tokens`);
    return { amount, seconds };
  };
  return [{ greedy }, repeat];
}

async function training(
  backend: EmbeddedBackend,
  { model, rows, rank, precision, seconds: least }: Extract<Settings, { readonly rows: unknown }>,
): Promise<Ready> {
  const adapter = { rank, alpha: rank, targets: PROJECTIONS };
  const base = { type: 'directory', directory: model } as const;
  const policy = await backend.open({ type: 'adapter', base, adapter, seed: 2, precision }, 'policy', 'bench');
  const bare = rows.map(({ tokens, first, advantage, agent }): TrainingSample => {
    const { length } = tokens;
    return {
      tokens: Int32Array.from(tokens),
      mask: new Uint8Array(length).fill(1, first),
      behaviourLogprobs: new Float32Array(length),
      advantages: new Float32Array(length).fill(advantage, first),
      temperature: 1,
      policyVersion: 0,
      agent,
    };
  });
  const logprobs = await policy.logprobs(bare);
  const samples = bare.map((sample, i) => ({ ...sample, behaviourLogprobs: logprobs[i] as Float32Array }));
  const written = samples.reduce((sum, { mask }) => sum + mask.reduce((a, b) => a + b, 0), 0);
  const sum = logprobs.reduce((all, row) => all + row.reduce((a, b) => a + b, 0), 0); // 0 where the mask is
  const loss = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' } as const;
  const optimizer = {
    type: 'adamw',
    learningRate: 1e-4,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weightDecay: 0.01,
  } as const;
  const update = () =>
    Promise.all([
      policy.forwardBackward(samples, { loss, normalizer: written }),
      policy.optimStep({ optimizer, clipNorm: 1 }),
    ]);
  for (let i = 0; i < 3; i++) await update();
  const amount = rows.reduce((all, { tokens }) => all + tokens.length, 0);
  const repeat = async () => {
    const started = performance.now();
    let updates = 0;
    do {
      await update();
      updates++;
    } while (performance.now() - started < 1e3 * least);
    return { amount: updates * amount, seconds: (performance.now() - started) / 1e3 };
  };
  return [{ meanLogprob: sum / written }, repeat];
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const settings = JSON.parse((await lines.next()).value as string) as Settings;
const backend = await startEmbedded({
  threads: settings.threads,
  device: settings.device,
  files: nodeFiles,
  precisions: ['float32', settings.precision],
});
const [about, repeat] = await ('requests' in settings ? decoding(backend, settings) : training(backend, settings));
console.log(JSON.stringify(about));
while (!(await lines.next()).done) console.log(JSON.stringify(await repeat()));
await backend.dispose();
