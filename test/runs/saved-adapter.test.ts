// @module-tag verify
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WeightsSpec } from '@drmas/engine/contract';
import type { EmbeddedBackend } from '@drmas/engine/embedded';
import { CheckpointError } from '@drmas/engine/errors';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { checkpoint, lora, type ModelInput } from '@drmas/engine/model';
import { loadPolicy } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { eventsOf, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const whole = tinyModel;
const training = { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 };

/** An adapter that has learnt something, its base beside it. */
let adapter: string;
let base: string;
beforeAll(async () => {
  const model = lora(whole, { rank: 2, alpha: 3, targets: ['q', 'down'] });
  const run = await trainTiny(root, tinyRecipe({ model, training }), { threads: 1 });
  adapter = join(run.path, 'checkpoints', 'step-000002', 'solver');
  base = join(adapter, 'base');
});

const recipe = (model: ModelInput) => tinyRecipe({ model, training }, ['warmStart=null']);
const weights = (directory: string) => readFile(join(directory, 'adapter_model.safetensors'));

async function withBackend<T>(use: (backend: EmbeddedBackend) => Promise<T>): Promise<T> {
  const backend = await startEmbedded({ threads: 1, files: nodeFiles });
  try {
    return await use(backend);
  } finally {
    await backend.dispose();
  }
}

/** A copy of the adapter, changed. */
async function copy(name: string, change: (directory: string) => Promise<void>): Promise<string> {
  const directory = join(root, name);
  await cp(adapter, directory, { recursive: true });
  await change(directory);
  return directory;
}
const spec = (directory: string, on = base): WeightsSpec => ({
  type: 'saved-adapter',
  base: { type: 'directory', directory: on },
  directory,
});

describe('a policy that begins with a saved adapter', () => {
  it('has its weights and its settings, and trains on from there', async () => {
    await withBackend(async (backend) => {
      const saved = await backend.open(spec(adapter), 'policy', 'saved');
      expect(saved.warnings).toEqual([]);
      await nodeFiles.makeDirectory(join(root, 'again'));
      await saved.save(join(root, 'again'));
    });
    expect(await weights(join(root, 'again'))).toEqual(await weights(adapter));
    const run = await trainTiny(root, recipe(lora(checkpoint(base), { from: adapter })), { threads: 1 });
    const events = await eventsOf(run);
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
    const trained = join(run.path, 'checkpoints', 'step-000002', 'solver');
    const config = JSON.parse(await readFile(join(trained, 'adapter_config.json'), 'utf8'));
    expect(config).toMatchObject({ r: 2, lora_alpha: 3, target_modules: ['q_proj', 'down_proj'] });
    expect(await weights(trained)).not.toEqual(await weights(adapter));
    const [before, after] = await Promise.all([adapter, trained].map((directory) => loadPolicy(directory)));
    const logits = await Promise.all([before, after].map((policy) => policy?.logits([1, 2, 3])));
    expect(logits[0]).not.toEqual(logits[1]);
    await Promise.all([before, after].map((policy) => policy?.dispose()));
  });

  it('is refused on other weights than its own, whatever file holds them', async () => {
    const other = join(root, 'other-base');
    const policy = await loadPolicy(adapter);
    await policy.save(other, { merge: true });
    await policy.dispose();
    const refused = withBackend((backend) => backend.open(spec(adapter, other), 'policy', 'saved'));
    await expect(refused).rejects.toThrow(CheckpointError);
    await expect(refused).rejects.toThrow(/was trained on other weights than those of .*other-base/);
    await expect(loadPolicy(adapter, { base: other })).rejects.toThrow(/was trained on other weights/);
    const same = join(root, 'same-base');
    const unchanged = await loadPolicy(base);
    await unchanged.save(same);
    await unchanged.dispose();
    await withBackend((backend) => backend.open(spec(adapter, same), 'policy', 'saved'));
  });

  it('of unknown descent is taken, with a warning; a damaged note is not', async () => {
    const unknown = await copy('unknown', (directory) => rm(join(directory, 'drmas_adapter.json')));
    const run = await trainTiny(root, recipe(lora(checkpoint(base), { from: unknown })), { threads: 1 });
    const warnings = (await eventsOf(run)).filter(({ type }) => type === 'warning');
    const message = `${unknown} does not say which weights it was trained on; it is put on ${base}`;
    expect(warnings).toEqual(new Array(2).fill(expect.objectContaining({ code: 'policy', message })));
    const damaged = await copy('damaged', (directory) => writeFile(join(directory, 'drmas_adapter.json'), '{}'));
    const refused = withBackend((backend) => backend.open(spec(damaged), 'policy', 'saved'));
    await expect(refused).rejects.toThrow(/drmas_adapter\.json cannot be used/);
  });

  it('of another shape than its base, or that is no adapter, is refused', async () => {
    const missing = withBackend((backend) => backend.open(spec(base), 'policy', 'saved'));
    await expect(missing).rejects.toThrow(/adapter_config\.json/);
    const wide = await copy('wide', async (directory) => {
      const file = join(directory, 'adapter_config.json');
      await writeFile(file, (await readFile(file, 'utf8')).replace('"r": 2', '"r": 5'));
    });
    await expect(withBackend((backend) => backend.open(spec(wide), 'policy', 'saved'))).rejects.toThrow(
      CheckpointError,
    );
  });
});

describe('in a recipe', () => {
  it.each([
    [{ from: 'a', rank: 2 }, /^model\.rank: comes from the saved adapter in `from`/],
    [{ from: 'a', targets: ['q'] }, /^model\.targets: comes from the saved adapter/],
    [{}, /^model\.rank: is required: an integer >= 1; or `from`/],
    [{ from: '' }, /^model\.from: expected/],
  ])('%j is refused', (options, message) => {
    const model = { type: 'lora', base: whole, ...options } as ModelInput;
    expect(() => tinyRecipe({ model })).toThrow(message);
  });
});
