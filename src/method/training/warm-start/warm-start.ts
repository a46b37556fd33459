/**
 * The cache of warm starts. The key is the hash of all inputs, so runs with another seed or estimator need not repeat
 * the warm start.
 */

import { contentHash, DirectoryCache } from '@drmas/engine/disk';
import type { RunEvent, Warmup, Warning } from '@drmas/engine/events';
import { type Files, joinPath, unlessAborted } from '@drmas/engine/host';
import type { Split } from '@drmas/engine/nouns';
import { readEvents } from '../../store/event-log.js';
import type { TrainedModel } from '../run/learner.js';
import { backendsOf, type OpenRun } from '../run/run-state.js';
import { traceBatch, trainWarmStart, type WarmStartSettings } from './supervised.js';

const EVENTS = 'events.jsonl';

export interface WarmStartLog {
  emit(event: Warmup | Warning): RunEvent;
  /** Receives an event of a cached warm start, with its stamp. */
  write(event: RunEvent): void;
}

/**
 * Gives the run's policies their warm start: from the cache, with its original events, or by training. If the cache
 * cannot be written, only time is lost. If a server stores the weights, there is no cache.
 * @returns The hash in the cache. Undefined if a server stores the weights
 */
export async function warmStart(
  run: OpenRun,
  log: WarmStartLog,
  settings: WarmStartSettings,
): Promise<string | undefined> {
  const demonstrationLearners = run.trained.filter((model) => model.learnsDemonstrations);
  const { files, notify, shared, signal } = run.host;
  if (backendsOf(run).some(({ capabilities }) => capabilities.weights === 'there')) {
    await trainWarmStart(run, settings, (event) => void log.emit(event));
    return undefined;
  }
  const cache = new DirectoryCache(files, { shared });
  const hash = warmStartHash(run, settings, await unlessAborted(engineNumbers(run, settings), signal));
  const cached = await cache.find(hash, (why) =>
    notify(`A cached warm start cannot be used and is trained again: ${why}.`),
  );
  if (cached !== undefined) {
    notify(
      `Warm start from the cache: an earlier command has trained it. It depends on neither --seed nor the estimator.`,
    );
    for (const event of await readEvents(files, joinPath(cached, EVENTS))) log.write(event);
    for (const { name, handle } of demonstrationLearners)
      await handle.load(joinPath(cached, name), { optimizer: false });
    return hash;
  }
  const events: RunEvent[] = [];
  await trainWarmStart(run, settings, (event) => {
    events.push(log.emit(event));
  });
  try {
    await cache.store(hash, async (directory) => {
      for (const { name, handle } of demonstrationLearners) {
        await files.makeDirectory(joinPath(directory, name));
        await handle.save(joinPath(directory, name));
      }
      await files.write(joinPath(directory, EVENTS), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    });
  } catch (error) {
    notify(`The warm start could not be cached (${error instanceof Error ? error.message : error}).`);
  }
  return hash;
}

/** The directory of a cached warm start, one folder a policy. Undefined if it is not in the cache. Changes nothing. */
export function keptWarmStart(files: Files, hash: string): Promise<string | undefined> {
  return new DirectoryCache(files).look(hash);
}

/**
 * The hash of everything that decides a warm start's bits: models, settings, a sample of the demonstrations (which
 * represents the code that writes them), and numbers that the engine computed (`engineNumbers`).
 */
export function warmStartHash(run: OpenRun, settings: WarmStartSettings, numbers: readonly number[]): string {
  const { train, test } = run.demonstrations.sources;
  const demonstrationLearners = run.trained.filter((model) => model.learnsDemonstrations);
  const keys = [train, test].flatMap((tasks) => (tasks.traceKey === undefined ? [] : [contentHash(tasks.traceKey())]));
  return contentHash({
    version: 3, // of the events beside the weights, whose loss is a mean over tokens since 3
    settings,
    kernels: backendsOf(run).flatMap(({ hardware: { kernels, isa } }) => [kernels, isa]),
    numbers,
    ...(keys.length === 0 ? {} : { traceKeys: keys }),
    policies: demonstrationLearners.map((policy) => ({
      name: policy.name,
      model: policy.model,
      agents: policy.agents,
      ...(policy.settings?.agentAdapters === undefined ? {} : { agentAdapters: policy.settings.agentAdapters }),
      traces: (['train', 'test'] as const).map((split) =>
        sampleOfTraces(run, settings, policy, split).map(({ tokens, mask }) => [[...tokens], [...mask]]),
      ),
    })),
  });
}

/**
 * Log-probs and a gradient's norm at the first weights. Another version of the engine may round differently, and its
 * warm start would differ. Nothing is learnt here.
 */
async function engineNumbers(run: OpenRun, settings: WarmStartSettings): Promise<number[]> {
  const numbers: number[] = [];
  for (const policy of run.trained.filter((model) => model.learnsDemonstrations)) {
    const { handle } = policy;
    const samples = sampleOfTraces(run, settings, policy, 'train');
    for (const row of await handle.logprobs(samples)) for (const logprob of row) numbers.push(logprob);
    const loss = { loss: { type: 'demonstrations' }, normalizer: samples.length } as const;
    numbers.push((await handle.forwardBackward(samples, loss)).gradientNorm ?? 0);
    await handle.discardGradient();
  }
  return numbers;
}

/** No policy trains on step 0. */
function sampleOfTraces(
  { agents, demonstrations }: Pick<OpenRun, 'agents' | 'demonstrations'>,
  { batch, seed }: WarmStartSettings,
  { handle: { tokenizer, context } }: TrainedModel,
  split: Split,
) {
  return traceBatch(demonstrations, { agents: Object.keys(agents), tokenizer, context }, batch, split, 0, seed);
}
