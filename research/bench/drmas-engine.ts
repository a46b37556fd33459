/** This package's engine as a user's program uses it: through the backend's contract, in a separate thread. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Device } from '@drmas/engine';
import { type BaseSpec, type DecoderConfig, PROJECTIONS, type Precision } from '@drmas/engine/contract';
import type { EmbeddedBackend, EmbeddedPolicy } from '@drmas/engine/embedded';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import type { ForwardBackwardOptions } from '@drmas/engine/loss';
import { RandomStream, randomKey } from '@drmas/engine/math';
import type { Tokenizer, TrainingSample } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { writeCheckpoint } from './checkpoint.js';
import { drmasIn } from './results.js';
import { type DecodeRequest, decoderConfig, type Shape, usefulTokens } from './workload.js';

/** Names of numbers about a GPU. */
export const ENCODING = 'share of the time spent encoding';
export const DEVICE_BYTES = 'bytes of device memory';

export class DrmasEngine {
  readonly #backend: EmbeddedBackend;
  readonly #policy: EmbeddedPolicy;
  readonly #shape: Shape;
  readonly #batch: readonly TrainingSample[]; // drawn once, since the draws are not measured
  #decodings = 0;

  private constructor(backend: EmbeddedBackend, policy: EmbeddedPolicy, shape: Shape) {
    this.#backend = backend;
    this.#policy = policy;
    this.#shape = shape;
    this.#batch = trainingBatch(shape, shape.stepTokens);
  }

  static async start(
    shape: Shape,
    threads: number,
    context: number,
    { precision = 'float32', device }: { readonly precision?: Precision; readonly device?: Device } = {},
  ): Promise<DrmasEngine> {
    const backend = await startEmbedded({ threads, device, files: nodeFiles, recompute: shape.recompute });
    const symbols = Array.from({ length: shape.vocabSize }, (_, id) => `<${id}>`);
    const tokenizer = createTokenizer({
      type: 'symbols',
      symbols,
      stop: '<1>',
      endOfUser: '<2>',
      endOfAssistant: '<1>',
    });
    const config = decoderConfig(shape, context);
    const rank = shape.adapterRank;
    const policy =
      rank === undefined
        ? await backend.open({ type: 'random', config, tokenizer, seed: 1, precision }, 'policy', 'bench')
        : await onCheckpoint(config, tokenizer, (base) => {
            const adapter = { rank, alpha: rank, targets: PROJECTIONS };
            return backend.open({ type: 'adapter', base, adapter, seed: 2, precision }, 'policy', 'bench');
          });
    await policy.publish();
    return new DrmasEngine(backend, policy, shape);
  }

  /** The number of trained parameters. */
  get parameters(): number {
    return this.#policy.parameters;
  }

  /** The name of this engine in tables; a GPU has the name of its kernels too. */
  nameIn(precision: Precision): string {
    const name = drmasIn(precision);
    return this.#backend.hardware.kernels === 'webgpu' ? `${name}, ${this.kernels}` : name;
  }

  /** Does work and times it; for a GPU also the share of time without waits for it, and the memory that it holds. */
  async measured(work: () => Promise<unknown>): Promise<{ seconds: number; details: Record<string, number> }> {
    const before = await this.#backend.deviceCounts();
    const started = performance.now();
    await work();
    const seconds = (performance.now() - started) / 1e3;
    const counts = await this.#backend.deviceCounts();
    if (before === undefined || counts === undefined) return { seconds, details: {} };
    const encoding = 1 - (counts.waited - before.waited) / seconds;
    return { seconds, details: { [ENCODING]: encoding, [DEVICE_BYTES]: counts.mostBytes } };
  }

  get kernels(): string {
    const { kernels, isa } = this.#backend.hardware;
    return `${kernels} (${isa})`;
  }

  /**
   * Runs forward and backward pass, clipping and AdamW. A sequence has one token more than its rows, so `tokens` rows
   * are computed.
   */
  trainStep(tokens = this.#shape.stepTokens): Promise<void> {
    const batch = tokens === this.#shape.stepTokens ? this.#batch : trainingBatch(this.#shape, tokens);
    return this.update(batch, { loss: { type: 'demonstrations' }, normalizer: tokens });
  }

  /** Runs forward and backward pass of a loss, clipping and AdamW. */
  async update(batch: readonly TrainingSample[], options: ForwardBackwardOptions): Promise<void> {
    const done = this.#policy.forwardBackward(batch, options);
    const stepped = this.#policy.optimStep({
      optimizer: { type: 'adamw', learningRate: 1e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 },
      clipNorm: 1,
    });
    await Promise.all([done, stepped]);
  }

  /** Samples every request to its length at temperature 1, all submitted at once; returns the tokens. */
  async decode(requests: readonly DecodeRequest[], temperature = 1): Promise<number[][]> {
    const tokens = await this.sample(requests, temperature);
    // Cached keys and values of this round's prompts would save the next round its prefill.
    await this.publish();
    return tokens;
  }

  /** The same, with earlier prompts in the cache. */
  async sample(requests: readonly DecodeRequest[], temperature = 1): Promise<number[][]> {
    const round = this.#decodings++;
    const sampled = await Promise.all(
      requests.map(({ prompt, length }, i) =>
        this.#policy.generate({
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
    const tokens = sampled.map((generation) => generation.tokens);
    const count = tokens.reduce((sum, response) => sum + response.length, 0);
    if (count !== usefulTokens(requests)) throw new Error(`sampled ${count} tokens of ${usefulTokens(requests)}`);
    return tokens;
  }

  /** Makes the present weights those that are played, and empties the cache. */
  async publish(): Promise<void> {
    await this.#policy.publish();
  }

  /** Writes the weights as a Hugging Face directory. */
  async save(directory: string): Promise<void> {
    await nodeFiles.makeDirectory(directory);
    await this.#policy.save(directory);
  }

  dispose(): Promise<void> {
    return this.#backend.dispose();
  }
}

/** Creates an engine with a base like those on a hub, in a directory that is removed at the end. */
async function onCheckpoint<T>(config: DecoderConfig, tokenizer: Tokenizer, use: (base: BaseSpec) => Promise<T>) {
  const directory = await mkdtemp(join(tmpdir(), 'drmas-bench-'));
  try {
    await writeCheckpoint(directory, config, tokenizer);
    return await use({ type: 'directory', directory });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The seconds of warm-up. Peers are compiled ahead of time, so a comparison waits until V8 has compiled its code. */
const WARM_SECONDS = { alone: 0.3, peers: 2.5 };

/** Runs some of the work until all buffers are allocated and V8 has compiled the code. */
export async function warmUp(besides: keyof typeof WARM_SECONDS, run: () => Promise<unknown>): Promise<void> {
  const started = performance.now();
  do await run();
  while ((performance.now() - started) / 1e3 < WARM_SECONDS[besides]);
}

/** Random sequences, in which all tokens but the first are predicted. */
function trainingBatch({ vocabSize, sequence }: Shape, tokens: number): TrainingSample[] {
  const random = new RandomStream('bench train', vocabSize);
  const length = sequence + 1;
  return Array.from({ length: tokens / sequence }, () => ({
    tokens: Int32Array.from({ length }, () => random.integer(0, vocabSize - 1)),
    mask: new Uint8Array(length).fill(1, 1),
    behaviourLogprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature: 1,
    policyVersion: 0,
    agent: 'bench',
  }));
}
