/**
 * Warm starts are kept by the hash of everything they are made from, so that other seeds and estimators need not repeat
 * them.
 */
import { join } from 'node:path';
import type { RunEvent, Warmup } from '../../core/events.js';
import type { Files } from '../../core/files.js';
import type { Split } from '../../core/task.js';
import { readEvents } from '../../store/event-log.js';
import { contentHash } from '../../store/files/content-hash.js';
import { DirectoryCache } from '../../store/files/file-cache.js';
import { backendsOf, type OpenRun, policyNamed } from '../run-state.js';
import { traceBatch, trainWarmStart, type WarmStartSettings } from './supervised.js';

const EVENTS = 'events.jsonl';

/** Where the events of a warm start go. */
export interface WarmStartLog {
  /** Stamps an event and returns it. */
  emit(event: Warmup): RunEvent;
  /** Takes an event of a cached warm start, with the stamp that it has. */
  write(event: RunEvent): void;
}

/**
 * Gives the run's policies their warm start: from the cache, with the events it had when it was trained, or by
 * training. A cache that cannot be written costs the time again, not the run; where a server keeps weights there is
 * none.
 * @returns The hash by which the cache names it; undefined where a server keeps the weights
 */
export async function warmStart(
  run: OpenRun,
  log: WarmStartLog,
  settings: WarmStartSettings,
): Promise<string | undefined> {
  const { assignment } = run;
  const { files, notify, shared } = run.host;
  if (backendsOf(run).some(({ capabilities }) => capabilities.weights === 'there')) {
    await trainWarmStart(run, settings, (event) => void log.emit(event));
    return undefined;
  }
  const cache = new DirectoryCache(files, 'warmstarts', { shared });
  const hash = warmStartHash(run, settings, await engineNumbers(run, settings));
  const cached = await cache.find(hash, (why) =>
    notify(`A cached warm start cannot be used and is made anew: ${why}.`),
  );
  if (cached !== undefined) {
    notify(`Warm start taken from the cache (${cached}); it depends on neither --seed nor the estimator.`);
    for (const event of await readEvents(files, join(cached, EVENTS))) log.write(event);
    for (const { name } of assignment.taught)
      await policyNamed(run, name).load(join(cached, name), { optimizer: false });
    return hash;
  }
  const events: RunEvent[] = [];
  await trainWarmStart(run, settings, (event) => {
    events.push(log.emit(event));
  });
  try {
    await cache.store(hash, async (directory) => {
      for (const { name } of assignment.taught) {
        await files.makeDirectory(join(directory, name));
        await policyNamed(run, name).save(join(directory, name));
      }
      await files.write(join(directory, EVENTS), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    });
  } catch (error) {
    notify(`The warm start could not be cached (${error instanceof Error ? error.message : error}).`);
  }
  return hash;
}

/** The directory of a kept warm start, a folder a policy; undefined where it is no more. Nothing is touched. */
export function keptWarmStart(files: Files, hash: string): Promise<string | undefined> {
  return new DirectoryCache(files, 'warmstarts').look(hash);
}

/**
 * What decides a warm start's bits: models, settings, the demonstrations themselves (a sample of them stands for the
 * code that writes them), and the engine, by numbers that it computed (`engineNumbers`).
 */
export function warmStartHash(run: OpenRun, settings: WarmStartSettings, numbers: readonly number[]): string {
  const { assignment } = run;
  const { train, test } = run.recipe.tasks;
  const keys = [train, test].flatMap((tasks) => (tasks.traceKey === undefined ? [] : [contentHash(tasks.traceKey())]));
  return contentHash({
    version: 2,
    settings,
    kernels: backendsOf(run).flatMap(({ hardware: { kernels, isa } }) => [kernels, isa]),
    numbers,
    ...(keys.length === 0 ? {} : { traceKeys: keys }),
    policies: assignment.taught.map(({ name, model, agents }) => ({
      name,
      model,
      agents,
      traces: (['train', 'test'] as const).map((split) =>
        sampleOfTraces(run, settings, name, split).map(({ tokens, mask }) => [[...tokens], [...mask]]),
      ),
    })),
  });
}

/**
 * Log-probs and a gradient's norm at the first weights: another version of the engine may round differently, and then
 * its warm start is another one. Nothing is learnt by it.
 */
async function engineNumbers(run: OpenRun, settings: WarmStartSettings): Promise<number[]> {
  const numbers: number[] = [];
  for (const { name } of run.assignment.taught) {
    const policy = policyNamed(run, name);
    const samples = sampleOfTraces(run, settings, name, 'train');
    for (const row of await policy.logprobs(samples)) numbers.push(...row);
    const loss = { loss: { type: 'demonstrations' }, normalizer: samples.length } as const;
    numbers.push((await policy.forwardBackward(samples, loss)).gradientNorm ?? 0);
    await policy.discardGradient();
  }
  return numbers;
}

/** Step 0 is never trained on. */
function sampleOfTraces(run: OpenRun, { batch, seed }: WarmStartSettings, policy: string, split: Split) {
  const { recipe } = run;
  const { tokenizer, context } = policyNamed(run, policy);
  return traceBatch(recipe, { agents: Object.keys(recipe.agents), tokenizer, context }, batch, split, 0, seed);
}
