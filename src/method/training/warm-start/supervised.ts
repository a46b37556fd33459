/** The supervised phase before reinforcement: demonstrations of the task family, a token-mean cross-entropy, AdamW. */

import type { ModelHandle, PolicyHandle } from '@drmas/engine/contract';
import { TaskError, TrainingError } from '@drmas/engine/errors';
import type { Warmup, Warning } from '@drmas/engine/events';
import { duration, grouped, unlessAborted } from '@drmas/engine/host';
import { countTokensOf } from '@drmas/engine/loss';
import { RandomStream } from '@drmas/engine/math';
import type { Split, TaskSource, Tokenizer, Trace, TrainingSample } from '@drmas/engine/nouns';
import { toolFormat, toolFormatNames } from '@drmas/engine/tool-calls';
import { demandedSchema, promptMessages } from '../../../teams/rollout.js';
import type { Recipe } from '../../recipe/recipe.js';
import { drawTrace } from '../play/step-tasks.js';
import type { TrainedModel } from '../run/learner.js';
import type { DemonstrationSource } from '../run/run-settings.js';
import type { OpenRun } from '../run/run-state.js';
import { decayFromStart, learningRateAt } from '../update/mini-batches.js';

/** Steps between events. The loss target is checked only then, so that the result cannot depend on timing. */
const REPORT_EVERY = 50;
/** Demonstrations in the held-out loss. */
const HELD_OUT = 128;
/**
 * The number of steps that are submitted before the first is awaited, so that the next batch is prepared during the
 * computation.
 */
const IN_FLIGHT = 4;
/** The number of steps in a row without a finite gradient that end the warm start. */
const MOST_DROPPED = 3;
/** The agent of samples that pass through the trunk alone. */
const NO_AGENT = '';
/** Seconds of a warm start without an event, after which it says how far it is: first, and then again. */
const FIRST_NOTICE = 3;
const NEXT_NOTICE = 15;

export type WarmStartSettings = NonNullable<Recipe['warmStart']>;

export type WarmStartedRun = Pick<OpenRun, 'trained' | 'agents' | 'demonstrations' | 'host'>;

interface Taught {
  readonly policy: PolicyHandle;
  readonly agents: readonly string[];
  /** Whether the policy is a trunk with adapters of agents. Only the trunk learns, so all agents begin alike. */
  readonly isTrunk: boolean;
}

/**
 * Trains the policies of a run on traces. With `share: 'base'` one base learns from all traces and is copied into every
 * policy. Otherwise each policy learns from the traces of its own agents.
 * @throws TrainingError if the gradient was not a number in several steps in a row
 */
export async function trainWarmStart(
  run: WarmStartedRun,
  settings: WarmStartSettings,
  emit: (event: Warmup | Warning) => void,
): Promise<void> {
  const demonstrationLearners = run.trained.filter((model) => model.learnsDemonstrations);
  if (settings.share === 'policy') {
    for (const { name, handle: policy, agents, settings: settingsOfPolicy } of demonstrationLearners)
      await learn(run, settings, { policy, agents, isTrunk: hasAdapters(settingsOfPolicy) }, name, emit);
  } else {
    const [base, ...others] = demonstrationLearners as [TrainedModel, ...TrainedModel[]];
    const policy = base.handle;
    const taught = { policy, agents: Object.keys(run.agents), isTrunk: hasAdapters(base.settings) };
    await learn(run, settings, taught, 'base', emit);
    for (const { handle } of others) await handle.copyFrom(policy);
  }
  for (const { handle } of demonstrationLearners) await handle.resetOptimizer();
}

const hasAdapters = (settings: TrainedModel['settings']) => settings?.agentAdapters !== undefined;

async function learn(
  { demonstrations, host: { clock, signal, notify } }: WarmStartedRun,
  settings: WarmStartSettings,
  { policy, agents, isTrunk }: Taught,
  name: string,
  emit: (event: Warmup | Warning) => void,
): Promise<void> {
  const { steps, batch, lossTarget, learningRate, warmupSteps, finalLearningRate } = settings;
  const schedule = { type: 'cosine', finalFraction: finalLearningRate } as const;
  const rates = { learningRate, warmupSteps, schedule };
  const decay = decayFromStart(steps);
  const fits = new FittingDemonstrations(policy.context);
  const source = { agents, tokenizer: policy.tokenizer, context: policy.context, fits };
  const batchOf = (count: number, split: Split, step: number) => {
    const samples = traceBatch(demonstrations, source, count, split, step, settings.seed);
    return isTrunk ? samples.map((sample) => ({ ...sample, agent: NO_AGENT })) : samples;
  };
  const heldOut = batchOf(HELD_OUT, 'test', 0);
  /** The loss of each step, and the tokens over which it is a mean. */
  const losses: { readonly loss: number; readonly tokens: number }[] = [];
  const flying: Promise<void>[] = [];
  const dropped = { all: 0, inRow: 0 };
  let tokens = 0;
  const began = clock.seconds();
  let started = began;
  let spoke = began;
  let silence = FIRST_NOTICE;
  for (let step = 1; step <= steps; step++) {
    signal.throwIfAborted();
    const samples = batchOf(batch, 'train', step);
    const normalizer = countTokensOf(samples);
    const computed = policy.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer });
    const stepped = policy.optimStep({
      optimizer: { ...settings, type: 'adamw', learningRate: learningRateAt(rates, step, decay) },
      clipNorm: settings.clipNorm,
      ...(isTrunk ? { partRates: { trunk: 1, adapters: 0 } } : {}),
    });
    const done = Promise.all([computed, stepped]).then(([{ loss }, { applied }]) => {
      losses.push({ loss, tokens: normalizer });
      dropped.all += applied ? 0 : 1;
      dropped.inRow = applied ? 0 : dropped.inRow + 1;
      if (dropped.inRow >= MOST_DROPPED)
        throw new TrainingError(
          `the gradient of the warm start of ${name} was not a number in ${MOST_DROPPED} steps in a row, up to step ${step}: a lower warmStart.learningRate keeps the weights in range`,
        );
    });
    done.catch(() => {}); // awaited below, unless the run is interrupted first
    flying.push(done);
    tokens += samples.reduce((sum, sample) => sum + sample.tokens.length, 0);
    if (step % REPORT_EVERY !== 0 && step !== steps) {
      if (flying.length >= IN_FLIGHT) await unlessAborted(flying.shift() as Promise<void>, signal);
      const [done, now] = [step - flying.length, clock.seconds()];
      if (done === 0 || now - spoke < silence) continue;
      spoke = now;
      silence = NEXT_NOTICE;
      const left = duration(((now - began) / done) * (steps - done));
      notify(`Warm start of ${name}: step ${done} of ${steps}, about ${left} left.`);
      continue;
    }
    await unlessAborted(Promise.all(flying.splice(0)), signal);
    const loss = meanOverTokens(losses.splice(0));
    const heldOutLoss = await unlessAborted(crossEntropy(policy, heldOut), signal);
    const now = clock.seconds();
    emit({ type: 'warmup', policy: name, step, steps, loss, heldOutLoss, tokens, seconds: now - started });
    started = now;
    spoke = now;
    tokens = 0;
    if (lossTarget !== undefined && loss <= lossTarget) break;
  }
  const warn = (code: string, message: string) =>
    emit({ type: 'warning', code, message: `the warm start of ${name} left out ${message}` });
  const message = fits.leftOut();
  if (message !== undefined) warn('demonstrations.long', message);
  if (dropped.all > 0) warn('warmStart.dropped', `${dropped.all} updates, whose gradients were not numbers`);
}

/** The mean over all tokens of several batches, which differ in size. */
function meanOverTokens(batches: readonly { readonly loss: number; readonly tokens: number }[]): number {
  const tokens = batches.reduce((sum, batch) => sum + batch.tokens, 0);
  return batches.reduce((sum, batch) => sum + batch.loss * (batch.tokens / tokens), 0);
}

interface TraceReader {
  readonly agents: readonly string[];
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly fits?: FittingDemonstrations;
}

/** The number of drawn demonstrations of an agent that show whether most of them fit. */
const JUDGED = 64;

/** Counts the drawn demonstrations that fit a model's context, and those that are left out. */
class FittingDemonstrations {
  readonly #context: number;
  readonly #drawn = new Map<string, number>();
  readonly #long = new Map<string, { readonly count: number; readonly longest: TrainingSample }>();

  constructor(context: number) {
    this.#context = context;
  }

  /** @throws TaskError if most of the agent's demonstrations do not fit */
  has(sample: TrainingSample): boolean {
    const { agent, tokens } = sample;
    const drawn = (this.#drawn.get(agent) ?? 0) + 1;
    this.#drawn.set(agent, drawn);
    const isLong = tokens.length > this.#context;
    const { count, longest } = this.#long.get(agent) ?? { count: 0, longest: sample };
    if (isLong)
      this.#long.set(agent, { count: count + 1, longest: tokens.length > longest.tokens.length ? sample : longest });
    if (isLong && drawn <= JUDGED && count + 1 > JUDGED / 2) throw new TaskError(tooLong(longest, this.#context));
    return !isLong;
  }

  /** How many were left out, in words. Undefined if all fit. */
  leftOut(): string | undefined {
    const count = [...this.#long.values()].reduce((sum, each) => sum + each.count, 0);
    if (count === 0) return undefined;
    const longest = [...this.#long].sort().map(([, each]) => tooLong(each.longest, this.#context));
    const drawn = [...this.#drawn.values()].reduce((sum, each) => sum + each, 0);
    return `${grouped(count)} of ${grouped(drawn)} drawn demonstrations, the longest: ${longest.join('; ')}`;
  }
}

/**
 * The demonstrations of a step, a pure function of seed and step. Demonstrations that exceed the model's context are
 * left out, and others are drawn instead.
 * @throws TaskError if most demonstrations of an agent do not fit the model's context
 */
export function traceBatch(
  { sources, systemPrompts }: DemonstrationSource,
  { agents, tokenizer, context, fits = new FittingDemonstrations(context) }: TraceReader,
  count: number,
  split: Split,
  step: number,
  seed: number,
): TrainingSample[] {
  // Test tasks need no demonstrations of these agents. The source holds some tasks out from its demonstrations.
  const tasks = split === 'train' || demonstrates(sources.test, agents, seed) ? sources[split] : sources.train;
  const samples: TrainingSample[] = [];
  for (let i = 0; samples.length < count; i++) {
    const trace = drawTrace(tasks, new RandomStream('warm start', seed, split, step, i), split);
    if (trace === undefined) throw new Error(`the tasks '${tasks.name}' generate no traces`);
    if (!agents.includes(trace.agent)) continue;
    const sample = traceSample(trace, systemPrompts[trace.agent], tokenizer);
    if (fits.has(sample)) samples.push(sample);
  }
  return samples;
}

/** The number of drawn demonstrations that show whether a source has some of an agent. */
const DRAWN = 2000;

function demonstrates(tasks: TaskSource, agents: readonly string[], seed: number): boolean {
  for (let i = 0; tasks.trace !== undefined && i < DRAWN; i++) {
    const trace = drawTrace(tasks, new RandomStream('held-out agents', seed, i), 'test');
    if (trace !== undefined && agents.includes(trace.agent)) return true;
  }
  return false;
}

function traceSample(trace: Trace, systemPrompt: string | undefined, tokenizer: Tokenizer): TrainingSample {
  const { agent, messages, tools, system = '' } = trace;
  // The agent's own system prompt replaces the demonstration's, whose demand of a schema stays.
  const schema = systemPrompt === undefined ? undefined : demandedSchema(system);
  const prompt = tokenizer.chat(promptMessages(systemPrompt ?? trace.system, messages, schema), undefined, tools);
  const written = [...tokenizer.encode(responseText(trace, tokenizer)), ...tokenizer.stopTokens.slice(0, 1)];
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

/** @throws TaskError if the response calls tools, and the model has no format for calls that drmas writes */
function responseText({ agent, response, toolCalls, tools = [] }: Trace, tokenizer: Tokenizer): string {
  if (toolCalls === undefined) return response;
  const format = toolFormatNames.find((name) => name === tokenizer.toolFormat);
  if (format === undefined)
    throw new TaskError(
      `a demonstration for '${agent}' calls tools, but the chat template of its model has none of the formats that drmas writes (${toolFormatNames.join(', ')})`,
    );
  return toolFormat(format).write({ content: response, calls: toolCalls }, tools);
}

function tooLong({ agent, tokens, mask }: TrainingSample, context: number): string {
  const prompt = mask.indexOf(1);
  return (
    `a demonstration for '${agent}' has ${tokens.length} tokens, ${prompt} of them its prompt, but the context of its model ` +
    `has ${context}: use a larger context, a shorter system prompt or shorter demonstrations`
  );
}

async function crossEntropy(policy: ModelHandle, samples: readonly TrainingSample[]): Promise<number> {
  const rows = await policy.logprobs(samples);
  let sum = 0;
  for (const row of rows) for (const logprob of row) sum -= logprob;
  return sum / countTokensOf(samples);
}
