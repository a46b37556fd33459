import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecipeDefinition } from '../../src/method/recipe/define.js';
import { train } from '../../src/runs/run/api.js';

/** Trains a recipe on one thread in a folder that goes afterwards. Returns the evaluations of the run, in order. */
export async function evaluationsOf(recipe: RecipeDefinition) {
  const root = await mkdtemp(join(tmpdir(), 'drmas-research-'));
  try {
    const { events } = await train(recipe, { run: join(root, 'run'), threads: 1 });
    return events.filter((event) => event.type === 'evaluation');
  } finally {
    await rm(root, { recursive: true });
  }
}
