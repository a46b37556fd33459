// @module-tag verify
import { cp, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CheckpointError } from '@drmas/engine/errors';
import type { Step } from '@drmas/engine/events';
import type { Files } from '@drmas/engine/host';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { packsTrees } from '@drmas/engine/internal/model/decoder/decoder';
import { checkpoint, lora } from '@drmas/engine/model';
import { loadPolicy, loadTokenizer } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const whole = tinyModel;
const tokens = [1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 2];
const rotation = { ropeBase: 1e4, normEpsilon: 1e-6 };
const furthest = (a: Float32Array, b: Float32Array) => Math.max(...a.map((x, i) => Math.abs(x - (b[i] as number))));

/** Two steps of reinforcement of two adapters on one tiny base. */
const training = { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 };
const recipe = tinyRecipe({ model: lora(whole, { rank: 2 }), training });
let trained: RunDirectory;
beforeAll(async () => {
  trained = await trainTiny(root, recipe, { threads: 1 });
});
const policyAt = (step: number, agent: string) => join(trained.path, 'checkpoints', `step-00000${step}`, agent);

describe('two agents, each its own adapter on one base', () => {
  it('learn apart, and the base stays as it was', async () => {
    const sums = (name: string, files: Record<string, string>) =>
      Object.entries(files).flatMap(([path, hash]) => (path.endsWith(name) ? hash : []));
    const files = await filesOf(trained);
    const bases = sums('base/model.safetensors', files);
    expect(bases).toHaveLength(4);
    expect(new Set(bases).size).toBe(1);
    expect(new Set(sums('adapter_model.safetensors', files)).size).toBe(4);
    const started = (await eventsOf(trained)).find(({ type }) => type === 'run.started');
    // Rank 2, width 8, two heads of 4, feed-forward 12: A and B of q, k, v, o, then of gate and up, then of down.
    const count = 4 * 2 * (8 + 8) + 2 * 2 * (8 + 12) + 2 * (12 + 8);
    expect(started).toMatchObject({ parameters: { solver: count, verifier: count } });
  });

  it('come out the same at another number of threads, and when they go on from a checkpoint', async () => {
    const [events, files] = [await eventsOf(trained), await filesOf(trained)];
    const again = await trainTiny(root, recipe, { threads: 2 });
    expect(await eventsOf(again)).toEqual(events);
    expect(await filesOf(again)).toEqual(files);
    const run = await resumedTiny(root, recipe, 1);
    expect(await eventsOf(run)).toEqual(events);
    expect(await filesOf(run)).toEqual(files);
  });

  it('come out the same on a base that packs trees, at any number of threads and on resume, with ratios of 1', async () => {
    const large = { ...tinyModel, width: 256, layers: 4, feedForward: 1024 };
    const packs = ({ width, layers, feedForward }: Pick<typeof large, 'width' | 'layers' | 'feedForward'>) => {
      const heads = { heads: 2, kvHeads: 2, headDim: width / 2 };
      return packsTrees({ ...heads, width, layers, feedForward, vocabSize: 16, context: 64, ...rotation });
    };
    expect([packs(tinyModel), packs(large)]).toEqual([false, true]);
    const onLarge = tinyRecipe({ model: lora(large, { rank: 2 }), training });
    const first = await trainTiny(root, onLarge, { threads: 1 });
    const [events, files] = [await eventsOf(first), await filesOf(first)];
    const steps = events.filter((event): event is Step => event.type === 'step');
    expect(steps.flatMap(({ agents }) => Object.values(agents).map((each) => each.maxRatioDeviation))).toEqual([
      0, 0, 0, 0,
    ]);
    for (const run of [await trainTiny(root, onLarge, { threads: 2 }), await resumedTiny(root, onLarge, 1)]) {
      expect(await eventsOf(run)).toEqual(events);
      expect(await filesOf(run)).toEqual(files);
    }
  }, 300_000);

  it('refuse a checkpoint of another rank', async () => {
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    const base = { type: 'directory', directory: join(policyAt(2, 'solver'), 'base') } as const;
    const adapter = { rank: 3, alpha: 3, targets: ['q'] } as const;
    const other = await backend.open({ type: 'adapter', base, adapter, seed: 1 }, 'policy', 'other');
    const directory = policyAt(2, 'solver');
    await expect(other.load(directory, { optimizer: true })).rejects.toThrow(CheckpointError);
    await expect(other.load(directory, { optimizer: true })).rejects.toThrow(/has rank 3, the checkpoint 2/);
    await backend.dispose();
  });
});

describe('a policy that is an adapter', () => {
  it('is loaded with its base, saved as PEFT has it, and folded into a whole model', async () => {
    const directory = policyAt(2, 'solver');
    const policy = await loadPolicy(directory);
    const base = await loadPolicy(join(directory, 'base'));
    const logits = await policy.logits(tokens);
    expect(furthest(logits, await base.logits(tokens))).toBeGreaterThan(1e-4);

    const [copy, merged] = [join(root, 'copy'), join(root, 'merged')];
    await policy.save(copy);
    expect(await readFile(join(copy, 'adapter_model.safetensors'))).toEqual(
      await readFile(join(directory, 'adapter_model.safetensors')),
    );
    await expect(stat(join(copy, 'base'))).rejects.toThrow(/ENOENT/);
    await policy.save(merged, { merge: true });
    await expect(loadPolicy(copy, { base: merged })).rejects.toThrow(/was trained on other weights/);
    const unsigned = join(root, 'unsigned');
    await cp(copy, unsigned, { recursive: true });
    await rm(join(unsigned, 'drmas_adapter.json'));
    const others = await Promise.all([loadPolicy(copy), loadPolicy(unsigned, { base: merged }), loadPolicy(merged)]);
    const [again, twice, one] = await Promise.all(others.map((each) => each.logits(tokens)));
    expect(again).toEqual(logits);
    expect(furthest(one as Float32Array, logits)).toBeLessThan(1e-5);
    expect(furthest(twice as Float32Array, logits)).toBeGreaterThan(1e-4);
    const options = { prompt: [3, 4], maxTokens: 8, temperature: 1, seed: 1, ignoreEos: true };
    const written = await policy.generate(options);
    expect(await policy.logprobs([3, 4], written.tokens)).toEqual(written.logprobs);
    expect((await loadTokenizer(copy)).toJSON()).toEqual(policy.tokenizer.toJSON());
    await Promise.all([policy, base, ...others].map((each) => each.dispose()));
  });

  it('is refused without its base, and a base without an adapter', async () => {
    const directory = join(root, 'alone');
    const policy = await loadPolicy(policyAt(2, 'solver'));
    await policy.save(directory);
    await policy.dispose();
    const config = JSON.parse(await readFile(join(directory, 'adapter_config.json'), 'utf8'));
    const name = (base: string | null) =>
      nodeFiles.write(
        join(directory, 'adapter_config.json'),
        JSON.stringify({ ...config, base_model_name_or_path: base }),
      );
    await name('nowhere/to-be-found');
    await expect(loadPolicy(directory)).rejects.toThrow(CheckpointError);
    await expect(loadPolicy(directory)).rejects.toThrow(/base "nowhere\/to-be-found", which is not there/);
    await name(null);
    await expect(loadPolicy(directory)).rejects.toThrow(/names no base/);
    const whole = join(policyAt(2, 'solver'), 'base');
    await expect(loadPolicy(whole, { base: whole })).rejects.toThrow(/holds no adapter/);
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    await expect(backend.open({ type: 'directory', directory }, 'policy', 'x')).rejects.toThrow(
      /holds an adapter, expected a whole model/,
    );
    await backend.dispose();
  });
});

describe('adapters on a checkpoint', () => {
  it('read it once, name it, and train without a warm start', async () => {
    const base = join(policyAt(2, 'solver'), 'base');
    const reads: { path: string; from: number; length: number }[] = [];
    const files: Files = {
      ...nodeFiles,
      readBytes: (path, from, length) => {
        if (path.startsWith(base)) reads.push({ path, from, length });
        return nodeFiles.readBytes(path, from, length);
      },
    };
    const model = lora(checkpoint(base), { rank: 1, alpha: 2, targets: ['q', 'v'] });
    const training = { steps: 1, tasksPerStep: 2, groupSize: 4 };
    const adapted = tinyRecipe({ model, training }, ['warmStart=null']);
    const run = await trainTiny(root, adapted, { threads: 1, files });
    const file = join(base, 'model.safetensors');
    expect(new Set(reads.map(({ path }) => path))).toEqual(new Set([file]));
    expect(reads.reduce((sum, { length }) => sum + length, 0)).toBe(await nodeFiles.size(file));
    const directory = join(run.path, 'checkpoints', 'step-000001', 'verifier');
    const config = JSON.parse(await readFile(join(directory, 'adapter_config.json'), 'utf8'));
    expect(config).toMatchObject({ base_model_name_or_path: base, r: 1, lora_alpha: 2 });
    const policy = await loadPolicy(directory);
    expect(policy.parameters).toBe(2 * (8 + 8));
    await policy.dispose();
  });
});
