/**
 * A backend of your own: it holds the models of a run, samples from them and trains them. This one is a fake that still
 * learns: a model is one logit for each token and does not read its prompt. Copy this file, put your server or library
 * behind the methods of `Unigram`, and run it:
 *
 *     npx drmas train examples/plug-ins/own-backend.ts
 *
 * `capabilities` lists the abilities of the backend. drmas refuses a recipe that needs more before the run starts.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BackendError, defineRecipe } from 'drmas';
import {
  type Capabilities,
  defineBackend,
  type ForwardBackwardOptions,
  type GenerateRequest,
  lossGradient,
  type OptimStepSettings,
  type PolicyHandle,
  type Tokenizer,
  type TrainingSample,
} from 'drmas/backends';
import { RandomStream } from 'drmas/tasks';
import { model, tasks, team } from './digits.js';

const weights = ['random', 'like'] as const;
const capabilities: Capabilities = {
  roles: { frozen: weights, policy: weights, critic: [] },
  bases: [],
  precisions: ['float32'],
  losses: ['ppo-clip', 'gspo', 'cispo'],
  optimizers: ['sgd'],
  ...{ distribution: 'sampled', gradientNorms: 'after', clipsGradients: false, keepsVersions: false, weights: 'here' },
};

/** log p(token) of every token: z - log sum exp z. */
function logSoftmax(logits: readonly number[]): number[] {
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  return logits.map((logit) => logit - total);
}

class Unigram implements PolicyHandle {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly context = 24;
  readonly warnings = [];
  version: number | undefined;
  logits: number[]; // [V]
  #played: number[] = []; // [V], log-probs
  #gradient: number[]; // [V]

  constructor(name: string, tokenizer: Tokenizer, logits = new Array<number>(tokenizer.vocabSize).fill(0)) {
    this.name = name;
    this.tokenizer = tokenizer;
    this.logits = [...logits];
    this.#gradient = logits.map(() => 0);
  }

  async generate({ maxTokens, stopTokens, key }: GenerateRequest) {
    const random = new RandomStream(...key);
    const tokens: number[] = [];
    const stopped = () => stopTokens.includes(tokens.at(-1) ?? -1);
    while (tokens.length < maxTokens && !stopped()) {
      let left = random.uniform();
      const drawn = this.#played.findIndex((logprob) => {
        left -= Math.exp(logprob);
        return left < 0;
      });
      tokens.push(drawn < 0 ? this.logits.length - 1 : drawn);
    }
    const logprobs = tokens.map((token) => this.#played[token] as number);
    return { tokens, logprobs, finishReason: stopped() ? 'stop' : 'length', policyVersion: this.version ?? 0 } as const;
  }

  async logprobs(samples: readonly TrainingSample[]) {
    const all = logSoftmax(this.logits);
    return samples.map(({ tokens, mask }) => Float32Array.from(tokens, (t, i) => (mask[i] ? (all[t] as number) : 0)));
  }

  async forwardBackward(given: readonly TrainingSample[], options: ForwardBackwardOptions) {
    const { samples, gradients, ...result } = await lossGradient(given, options, (each) => this.logprobs(each));
    const probabilities = logSoftmax(this.logits).map(Math.exp);
    // d log p(token) / d z = 1 at the token - p
    for (const [s, { tokens }] of samples.entries())
      for (const [i, slope] of gradients[s]?.entries() ?? [])
        this.#gradient = this.#gradient.map((g, t) => g + slope * (Number(t === tokens[i]) - (probabilities[t] ?? 0)));
    const tokens = samples.reduce((sum, sample) => sum + sample.tokens.length, 0);
    return { loss: result.loss, metrics: { ...result.metrics, entropy: 0 }, tokens };
  }

  async optimStep({ optimizer: { learningRate } }: OptimStepSettings) {
    this.logits = this.logits.map((logit, t) => logit - learningRate * (this.#gradient[t] ?? 0));
    await this.discardGradient();
    return { applied: true } as const;
  }

  async discardGradient() {
    this.#gradient.fill(0);
  }
  async publish() {
    this.#played = logSoftmax(this.logits);
    this.version = (this.version ?? -1) + 1;
    return this.version;
  }
  async copyFrom(policy: PolicyHandle) {
    this.logits = [...(policy as Unigram).logits];
  }
  async save(directory: string) {
    await writeFile(join(directory, 'unigram.json'), JSON.stringify(this.logits));
  }
  async load(directory: string) {
    this.logits = JSON.parse(await readFile(join(directory, 'unigram.json'), 'utf8'));
  }
  async resetOptimizer() {}
}

export const unigrams = defineBackend({
  type: 'unigrams',
  capabilities,
  open: async () => ({
    capabilities,
    hardware: { kernels: 'unigrams', isa: 'typescript' },
    async open(spec, _role, name): Promise<never> {
      if (spec.type === 'like' && spec.policy instanceof Unigram)
        return new Unigram(name, spec.policy.tokenizer, spec.policy.logits) as never;
      if (spec.type !== 'random') throw new BackendError(`unigrams have no weights of type '${spec.type}'`);
      return new Unigram(name, spec.tokenizer) as never; // the capabilities have no critics
    },
    dispose: async () => {},
  }),
});

export default defineRecipe({
  team,
  tasks,
  model,
  use: [unigrams],
  backend: { type: 'unigrams' },
  policies: { writer: { optimizer: { type: 'sgd', learningRate: 3 } } },
  training: { steps: 10, tasksPerStep: 4, groupSize: 8 },
  evaluation: { tasks: 16, samples: 1 },
});
