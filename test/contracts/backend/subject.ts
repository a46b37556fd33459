/** The backend under test, and the steps that all blocks of its contract share. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  Backend,
  GenerateRequest,
  Generation,
  ModelHandle,
  OptimStepResult,
  OptimStepSettings,
  PolicyHandle,
  WeightsSpec,
} from '@drmas/engine/contract';
import { RandomStream, randomKey } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { expect } from 'vitest';
import { plainAdamW } from '../../support/adamw.js';

export const optimizer = plainAdamW(1e-2);
export const ppo = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' } as const;

export interface BackendUnderTest {
  open(): Promise<Backend>;
  /** Small weights that the backend can train. Equal seeds give equal ones, other seeds others. */
  weights(seed?: number): WeightsSpec;
  /** Weights of another shape than `weights()`. */
  readonly misfit: WeightsSpec;
  /** Log-probs of the same weights agree to this number of decimal places. Absent if they agree bit for bit. */
  readonly digits?: number;
  /** By how much twelve steps on six demonstrations lower the loss, at least. */
  readonly learns: number;
  /** Whether every test needs a backend of its own, because models have few places on it. */
  readonly freshForEachTest?: boolean;
  /** Whether a call that is under way when the backend is disposed of may still be answered. */
  readonly mayStillAnswer?: boolean;
  /** Whether loading weights alone restores the moments of the optimiser too, as SkyRL's server does. */
  readonly alwaysLoadsMoments?: boolean;
  /** Whether first weights are the same for every seed. */
  readonly sameForEverySeed?: boolean;
  /** A directory to write into. */
  readonly root: string;
}

export class Subject {
  readonly test: BackendUnderTest;
  #backend: Backend | undefined;
  #count = 0;

  constructor(test: BackendUnderTest) {
    this.test = test;
  }

  async start(): Promise<void> {
    this.#backend = await this.test.open();
  }

  async stop(): Promise<void> {
    await this.backend.dispose();
  }

  get backend(): Backend {
    if (this.#backend === undefined) throw new Error('the backend has not been opened');
    return this.#backend;
  }

  get can(): Backend['capabilities'] {
    return this.backend.capabilities;
  }

  policy(seed?: number): Promise<PolicyHandle> {
    return this.backend.open(this.test.weights(seed), 'policy', `policy${this.#count++}`);
  }

  async playing(seed?: number): Promise<PolicyHandle> {
    const policy = await this.policy(seed);
    await policy.publish();
    return policy;
  }

  async directory(): Promise<string> {
    const path = join(this.test.root, `saved-${this.#count++}`);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** Equal bit for bit, or as far as this backend's numbers are. */
  expectEqualRows(actual: readonly ArrayLike<number>[], expected: readonly ArrayLike<number>[], digits?: number): void {
    const places = digits ?? this.test.digits;
    if (places === undefined) {
      expect(actual).toEqual(expected);
      return;
    }
    expect(actual).toHaveLength(expected.length);
    for (const [r, row] of expected.entries())
      for (let t = 0; t < row.length; t++) expect(actual[r]?.[t]).toBeCloseTo(row[t] as number, places);
  }

  /** A number that is equal to the last bit if the backend's log-probs are reproducible. */
  expectEqual(actual: number | undefined, expected: number): void {
    if (this.test.digits === undefined) expect(actual).toBe(expected);
    else expect(actual).toBeCloseTo(expected, this.test.digits);
  }
}

export function request(
  model: Pick<ModelHandle, 'tokenizer'>,
  n: number,
  changes: Partial<GenerateRequest> = {},
): GenerateRequest {
  const { tokenizer } = model;
  return {
    prompt: tokenizer.encode(`task ${n % 3}`),
    temperature: 1,
    topP: 1,
    topK: 0,
    maxTokens: 10,
    stopTokens: tokenizer.stopTokens,
    key: randomKey('contract', n),
    ...changes,
  };
}

export function sampleOf(
  { prompt, temperature }: Pick<GenerateRequest, 'prompt' | 'temperature'>,
  { tokens, logprobs }: Pick<Generation, 'tokens' | 'logprobs'>,
): TrainingSample {
  const length = prompt.length + tokens.length;
  const behaviourLogprobs = new Float32Array(length);
  behaviourLogprobs.set(logprobs, prompt.length);
  return {
    tokens: Int32Array.from([...prompt, ...tokens]),
    mask: new Uint8Array(length).fill(1, prompt.length),
    behaviourLogprobs,
    advantages: new Float32Array(length).fill(tokens.length % 2 === 0 ? 1 : -0.5, prompt.length),
    temperature,
    policyVersion: 0,
    agent: 'agent',
  };
}

/** The responses of a policy to six prompts. */
export async function played(policy: PolicyHandle): Promise<TrainingSample[]> {
  const requests = [0, 1, 2, 3, 4, 5].map((n) => request(policy, n));
  return Promise.all(requests.map(async (each) => sampleOf(each, await policy.generate(each))));
}

export function demonstrations(seed: number): TrainingSample[] {
  const random = new RandomStream('demonstrations', seed);
  return Array.from({ length: 6 }, () => {
    const prompt = Array.from({ length: random.integer(1, 4) }, () => random.integer(0, 255));
    const tokens = Array.from({ length: random.integer(3, 9) }, () => random.integer(0, 255));
    return sampleOf({ prompt, temperature: 1 }, { tokens, logprobs: tokens.map(() => -5) });
  });
}

/** Three turns as one sample and as three. Each turn continues the turn before it. */
export function chainOfTurns(): { chain: TrainingSample; turns: TrainingSample[] } {
  const [first, ...others] = demonstrations(3).slice(0, 3) as [TrainingSample, ...TrainingSample[]];
  const turns = [first];
  for (const { tokens, mask } of others) {
    const before = (turns.at(-1) as TrainingSample).tokens;
    const read = mask.indexOf(1);
    turns.push(
      sampleOf(
        { prompt: [...before, ...tokens.subarray(0, read)], temperature: 1 },
        { tokens: [...tokens.subarray(read)], logprobs: [...tokens.subarray(read)].map(() => -5) },
      ),
    );
  }
  const last = turns.at(-1) as TrainingSample;
  const sum = (name: 'behaviourLogprobs' | 'advantages') =>
    Float32Array.from(last.tokens, (_, t) => turns.reduce((total, turn) => total + (turn[name][t] ?? 0), 0));
  const spans = turns.map(({ mask }) => ({ start: mask.indexOf(1), end: mask.length }));
  const mask = Uint8Array.from(last.tokens, (_, t) => Number(turns.some((turn) => turn.mask[t] === 1)));
  const summed = { behaviourLogprobs: sum('behaviourLogprobs'), advantages: sum('advantages') };
  return { chain: { ...last, mask, spans, ...summed }, turns };
}

/** The samples with advantages of 0. */
export const silent = (samples: readonly TrainingSample[]): TrainingSample[] =>
  samples.map((sample) => ({ ...sample, advantages: sample.advantages.map(() => 0) }));

export const written = (samples: readonly TrainingSample[]): number =>
  samples.reduce((sum, { mask }) => sum + mask.reduce((n, one) => n + one, 0), 0);

export const learn = (policy: PolicyHandle, samples: readonly TrainingSample[]) =>
  policy.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer: written(samples) });

export const step = (policy: PolicyHandle, settings: Partial<OptimStepSettings> = {}): Promise<OptimStepResult> =>
  policy.optimStep({ optimizer, clipNorm: 0, ...settings });

/** Log-probs that are equal if the weights are equal. */
export const logprobsOf = (model: ModelHandle): Promise<Float32Array[]> => model.logprobs(demonstrations(9));
