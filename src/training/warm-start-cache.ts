/** Warm starts are kept by the hash of everything they are made from, so that other seeds and estimators need not repeat them. */
import { join } from 'node:path';
import type { RunEvent, Warmup } from '../core/events.js';
import { contentHash, DirectoryCache } from '../runs/cache.js';
import { readEvents } from '../runs/event-log.js';
import type { RunDirectory } from '../runs/run-directory.js';
import type { OpenedPolicies, Stage } from './session.js';
import { traceBatch, trainWarmStart, type WarmStartSettings } from './warm-start.js';

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
  const cache = new DirectoryCache(files, 'warmstarts');
  const hash = warmStartHash(stage, settings);
  const found = await cache.find(hash);
  if (found !== undefined) {
    onNotice(`Warm start taken from the cache (${found}); it depends on neither --seed nor the estimator.`);
    for (const event of await readEvents(files, join(found, EVENTS))) run.write(event);
    for (const policy of Object.keys(recipe.policies))
      await backend.load(policy, join(found, policy), { optimizer: false });
    return;
  }
  const events: RunEvent[] = [];
  await trainWarmStart(stage, settings, (event: Warmup) => {
    events.push(run.emit(event));
  });
  try {
    await cache.store(hash, async (directory) => {
      for (const policy of Object.keys(recipe.policies)) {
        await files.makeDirectory(join(directory, policy));
        await backend.save(policy, join(directory, policy), { optimizer: false });
      }
      await files.write(join(directory, EVENTS), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    });
  } catch (error) {
    onNotice(`The warm start could not be cached (${error instanceof Error ? error.message : error}).`);
  }
}

/** What decides a warm start's bits: models, settings, the demonstrations themselves, the kernels. */
export function warmStartHash(stage: Stage & OpenedPolicies, settings: WarmStartSettings): string {
  const { recipe, policies, hardware } = stage;
  return contentHash({
    version: 1,
    settings,
    kernels: [hardware.kernels, hardware.isa],
    policies: Object.entries(recipe.policies).map(([name, { model }]) => ({
      name,
      model,
      agents: Object.keys(recipe.agents).filter((agent) => recipe.assign[agent] === name),
      // A sample of the traces stands for the code that writes them.
      traces: (['train', 'test'] as const).map((split) =>
        traceBatch(
          recipe,
          {
            agents: Object.keys(recipe.agents),
            tokenizer: (policies[name] as OpenedPolicies['policies'][string]).tokenizer,
          },
          settings.batch,
          split,
          0,
          settings.seed,
        ).map(({ tokens, mask }) => [[...tokens], [...mask]]),
      ),
    })),
  });
}
