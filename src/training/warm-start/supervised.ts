/** The supervised phase before reinforcement: demonstrations of the task family, a token-mean cross-entropy, AdamW. */
import type { ModelHandle, PolicyHandle } from '../../contract/handles.js';
import { TaskError } from '../../core/errors.js';
import type { Warmup } from '../../core/events.js';
import { RandomStream } from '../../core/random.js';
import type { TrainingSample } from '../../core/sample.js';
import { mean } from '../../core/statistics.js';
import type { Split, Trace } from '../../core/task.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { countTokensOf } from '../../loss/aggregate.js';
import type { Speaker } from '../../recipe/assignment.js';
import { type Recipe, systemPromptOf } from '../../recipe/recipe.js';
import { promptMessages } from '../../rollout/prompt-messages.js';
import { type OpenRun, policyNamed } from '../run-state.js';
import { drawTrace } from '../task-source.js';
import { decayFromStart, learningRateAt } from '../update/learning-rate.js';

/** Steps between events; the loss target is looked at only then, so that it cannot depend on timing. */
const REPORT_EVERY = 50;
/** Demonstrations in the held-out loss. */
const HELD_OUT = 128;
/** Steps submitted before the first of them is awaited: the next batch is written while the engine computes. */
const IN_FLIGHT = 4;

export type WarmStartSettings = NonNullable<Recipe['warmStart']>;

/** A policy to be trained from traces, and the agents whose traces it learns from. */
interface Learner {
  readonly policy: PolicyHandle;
  readonly agents: readonly string[];
}

/**
 * Trains the policies of a run on traces. With `share: 'base'` one base learns from all traces and is copied into every
 * policy; otherwise each policy learns from the traces of its own agents.
 */
export async function trainWarmStart(
  run: OpenRun,
  settings: WarmStartSettings,
  emit: (event: Warmup) => void,
): Promise<void> {
  const learners = run.assignment.taught;
  if (settings.share === 'policy') {
    for (const { name, agents } of learners)
      await learn(run, settings, { policy: policyNamed(run, name), agents }, name, emit);
  } else {
    const [base, ...others] = learners as [Speaker, ...Speaker[]];
    const policy = policyNamed(run, base.name);
    await learn(run, settings, { policy, agents: Object.keys(run.recipe.agents) }, 'base', emit);
    for (const { name } of others) await policyNamed(run, name).copyFrom(policy);
  }
  for (const { name } of learners) await policyNamed(run, name).resetOptimizer();
}

async function learn(
  { recipe, host: { clock, signal } }: OpenRun,
  settings: WarmStartSettings,
  { policy, agents }: Learner,
  name: string,
  emit: (event: Warmup) => void,
): Promise<void> {
  const { steps, batch, lossTarget, learningRate, warmupSteps, finalLearningRate } = settings;
  const schedule = { type: 'cosine', finalFraction: finalLearningRate } as const;
  const rates = { learningRate, warmupSteps, schedule };
  const decay = decayFromStart(steps);
  const source = { agents, tokenizer: policy.tokenizer, context: policy.context };
  const heldOut = traceBatch(recipe, source, HELD_OUT, 'test', 0, settings.seed);
  const losses: number[] = [];
  const flying: Promise<void>[] = [];
  let tokens = 0;
  let started = clock.seconds();
  for (let step = 1; step <= steps; step++) {
    signal.throwIfAborted();
    const samples = traceBatch(recipe, source, batch, 'train', step, settings.seed);
    const normalizer = countTokensOf(samples);
    const computed = policy.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer });
    const stepped = policy.optimStep({
      optimizer: { ...settings, type: 'adamw', learningRate: learningRateAt(rates, step, decay) },
      clipNorm: settings.clipNorm,
    });
    const done = Promise.all([computed, stepped]).then(([{ loss }]) => {
      losses.push(loss);
    });
    done.catch(() => {}); // awaited below, unless an interruption leaves it to nobody
    flying.push(done);
    tokens += samples.reduce((sum, sample) => sum + sample.tokens.length, 0);
    if (step % REPORT_EVERY !== 0 && step !== steps) {
      if (flying.length >= IN_FLIGHT) await flying.shift();
      continue;
    }
    await Promise.all(flying.splice(0));
    const loss = mean(losses.splice(0));
    const heldOutLoss = await crossEntropy(policy, heldOut);
    const now = clock.seconds();
    emit({ type: 'warmup', policy: name, step, steps, loss, heldOutLoss, tokens, seconds: now - started });
    started = now;
    tokens = 0;
    if (lossTarget !== undefined && loss <= lossTarget) return;
  }
}

/** Who learns from demonstrations, and what its model reads. */
interface TraceReader {
  readonly agents: readonly string[];
  readonly tokenizer: Tokenizer;
  /** The most tokens that the model reads at once. */
  readonly context: number;
}

/**
 * The demonstrations of a step, a pure function of seed and step.
 * @throws TaskError where one does not fit the model's context
 */
export function traceBatch(
  recipe: Recipe,
  { agents, tokenizer, context }: TraceReader,
  count: number,
  split: Split,
  step: number,
  seed: number,
): TrainingSample[] {
  // Tasks to be tested on need no demonstrations of their own: the source of those that are learnt holds some out.
  const tasks = recipe.tasks[split].trace === undefined ? recipe.tasks.train : recipe.tasks[split];
  const samples: TrainingSample[] = [];
  for (let i = 0; samples.length < count; i++) {
    const trace = drawTrace(tasks, new RandomStream('warm start', seed, split, step, i), split);
    if (trace === undefined) throw new Error(`the tasks '${tasks.name}' generate no traces`);
    if (!agents.includes(trace.agent)) continue;
    const sample = traceSample(recipe, trace, tokenizer);
    if (sample.tokens.length > context) throw new TaskError(tooLong(sample, context));
    samples.push(sample);
  }
  return samples;
}

function traceSample(
  recipe: Recipe,
  { agent, messages, tools, response }: Trace,
  tokenizer: Tokenizer,
): TrainingSample {
  const prompt = tokenizer.chat(promptMessages(systemPromptOf(recipe, agent), messages), undefined, tools);
  const written = [...tokenizer.encode(response), ...tokenizer.stopTokens.slice(0, 1)];
  const length = prompt.length + written.length;
  return {
    tokens: Int32Array.from([...prompt, ...written]),
    mask: new Uint8Array(length).fill(1, prompt.length),
    behaviourLogprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature: 1,
    policyVersion: 0,
    agent,
  };
}

function tooLong({ agent, tokens, mask }: TrainingSample, context: number): string {
  const prompt = mask.indexOf(1);
  return (
    `a demonstration for '${agent}' has ${tokens.length} tokens, ${prompt} of them its prompt, and its model reads ` +
    `${context} at once: a larger context of the model, a shorter system prompt, or shorter demonstrations`
  );
}

async function crossEntropy(policy: ModelHandle, samples: readonly TrainingSample[]): Promise<number> {
  const rows = await policy.logprobs(samples);
  let sum = 0;
  for (const row of rows) for (const logprob of row) sum -= logprob;
  return sum / countTokensOf(samples);
}
