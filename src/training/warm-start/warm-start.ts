/** Warm starts are kept by the hash of everything they are made from, so that other seeds and estimators need not repeat them. */
import { join } from 'node:path';
import type { RunEvent, Warmup } from '../../core/events.js';
import type { Split } from '../../core/task.js';
import { warmPolicies } from '../../recipe/assignment.js';
import { readEvents } from '../../store/event-log.js';
import { contentHash, DirectoryCache } from '../../store/file-cache.js';
import type { RunDirectory } from '../../store/run-directory.js';
import type { OpenedPolicies, Stage } from '../session.js';
import { traceBatch, trainWarmStart, type WarmStartSettings } from './supervised.js';

const EVENTS = 'events.jsonl';

/**
 * Gives the stage's policies their warm start: from the cache, with the events it had when it was trained, or by training.
 * A cache that cannot be written costs the time again, not the run.
 */
export async function warmStart(
  stage: Stage & OpenedPolicies,
  run: Pick<RunDirectory, 'emit' | 'write'>,
  settings: WarmStartSettings,
  onNotice: (message: string) => void,
): Promise<void> {
  const { backend, files, recipe } = stage;
  if (!backend.capabilities.localWeights) return trainWarmStart(stage, settings, (event) => void run.emit(event));
  const cache = new DirectoryCache(files, 'warmstarts');
  const hash = warmStartHash(stage, settings, await engineNumbers(stage, settings));
  const found = await cache.find(hash);
  if (found !== undefined) {
    onNotice(`Warm start taken from the cache (${found}); it depends on neither --seed nor the estimator.`);
    for (const event of await readEvents(files, join(found, EVENTS))) run.write(event);
    for (const { name } of warmPolicies(recipe)) await backend.load(name, join(found, name), { optimizer: false });
    return;
  }
  const events: RunEvent[] = [];
  await trainWarmStart(stage, settings, (event: Warmup) => {
    events.push(run.emit(event));
  });
  try {
    await cache.store(hash, async (directory) => {
      for (const { name } of warmPolicies(recipe)) {
        await files.makeDirectory(join(directory, name));
        await backend.save(name, join(directory, name), { optimizer: false });
      }
      await files.write(join(directory, EVENTS), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    });
  } catch (error) {
    onNotice(`The warm start could not be cached (${error instanceof Error ? error.message : error}).`);
  }
}

/**
 * What decides a warm start's bits: models, settings, the demonstrations themselves (a sample of them stands for the code that
 * writes them), and the engine, by numbers that it computed (`engineNumbers`).
 */
export function warmStartHash(
  stage: Stage & OpenedPolicies,
  settings: WarmStartSettings,
  numbers: readonly number[],
): string {
  const { recipe, hardware } = stage;
  return contentHash({
    version: 2,
    settings,
    kernels: [hardware.kernels, hardware.isa],
    numbers,
    policies: warmPolicies(recipe).map(({ name, model, agents }) => ({
      name,
      model,
      agents,
      traces: (['train', 'test'] as const).map((split) =>
        sampleOfTraces(stage, settings, name, split).map(({ tokens, mask }) => [[...tokens], [...mask]]),
      ),
    })),
  });
}

/**
 * Log-probs and a gradient's norm at the first weights: another version of the engine may round differently, and then its
 * warm start is another one. Nothing is learnt by it.
 */
async function engineNumbers(stage: Stage & OpenedPolicies, settings: WarmStartSettings): Promise<number[]> {
  const { backend, recipe } = stage;
  const numbers: number[] = [];
  for (const { name: policy } of warmPolicies(recipe)) {
    const samples = sampleOfTraces(stage, settings, policy, 'train');
    for (const row of await backend.forward(policy, samples)) numbers.push(...row);
    const loss = { loss: { type: 'demonstrations' }, normalizer: samples.length } as const;
    numbers.push((await backend.forwardBackward(policy, samples, loss)).gradientNorm);
    const optimizer = { ...settings, type: 'adamw', learningRate: 0, weightDecay: 0 } as const;
    await backend.optimStep(policy, { optimizer, clipNorm: 0 }); // clears the gradient
    await backend.resetOptimizer(policy);
  }
  return numbers;
}

/** Step 0 is never trained on. */
function sampleOfTraces(
  stage: Stage & OpenedPolicies,
  { batch, seed }: WarmStartSettings,
  policy: string,
  split: Split,
) {
  const { recipe, policies } = stage;
  const { tokenizer } = policies[policy] as OpenedPolicies['policies'][string];
  return traceBatch(recipe, { agents: Object.keys(recipe.agents), tokenizer }, batch, split, 0, seed);
}
