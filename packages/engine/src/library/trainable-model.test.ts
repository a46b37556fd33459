import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ArgumentError, BackendError, CheckpointError, TokenizerError } from '../base/core/errors.js';
import { user } from '../base/core/message.js';
import { nodeFiles } from '../base/platform/node-files.js';
import { loadPolicy } from '../embedded/load-policy.js';
import { startEmbedded } from '../embedded/start-embedded.js';
import { wholeWeights } from '../model/initial-weights.js';
import { checkpoint, completeWhole, lora, tinyDecoder } from '../model/model-spec.js';
import type { Completion } from './completion.js';
import { type EngineOptions, openEngine, openModel } from './open-engine.js';
import { TrainableModel } from './trainable-model.js';
import { type Sample, trainingSample } from './training-sample.js';
import type { UpdateOptions } from './update-options.js';

const symbols = ['<end>', '<ask>', 'a', 'b', 'c', 'd'];
const tokenizer = { type: 'symbols', symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' } as const;
const tiny = tinyDecoder({ width: 16, layers: 2, heads: 2, feedForward: 24, context: 20, tokenizer });

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drmas-engine-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const models: TrainableModel[] = [];
afterEach(() => Promise.all(models.splice(0).map((model) => model.dispose())));

async function open(options: EngineOptions = {}): Promise<TrainableModel> {
  const model = await openModel(tiny, { threads: 1, seed: 3, ...options });
  models.push(model);
  return model;
}

/** A group of completions, every other one better than the rest. */
async function playedSamples(model: TrainableModel, seed = 1): Promise<Sample[]> {
  const [group = []] = await model.generate({ prompts: ['ab'], n: 8, maxTokens: 6, seed });
  return group.map((completion, i) => trainingSample(completion, i % 2 === 0 ? 1 : -1));
}

/** An engine with one trained adapter on a base. */
async function engineWithAdapter(base: string) {
  const engine = await openEngine({ threads: 1 });
  const model = await engine.open(lora(checkpoint(base), { rank: 2 }));
  await model.forwardBackward([model.demonstration('ab', 'cd')], { loss: { type: 'cross-entropy' } });
  await model.optimStep({ learningRate: 0.1 });
  return { model, [Symbol.asyncDispose]: () => engine.dispose() };
}

const ppo: UpdateOptions = { loss: { type: 'ppo-clip' } };
const rowsOf = (rows: readonly Float32Array[]) => rows.map((row) => Array.from(row));

describe('generate', () => {
  it('gives a group for each prompt, whose log-probs are those that the model computes', async () => {
    const model = await open();
    const prompts = ['abc', [user('d')], Int32Array.of(2, 3)];
    const groups = await model.generate({ prompts, n: 3, maxTokens: 8, temperature: 0.7, seed: 5 });
    expect(groups.map((group) => group.length)).toEqual([3, 3, 3]);
    expect(groups.map(([first]) => first?.prompt)).toEqual([
      [2, 3, 4],
      [5, 1],
      [2, 3],
    ]);
    const completions = groups.flat();
    const rows = await model.logprobs(completions.map((completion) => trainingSample(completion, 0)));
    for (const [i, { prompt, tokens, logprobs, text, finishReason, temperature, version }] of completions.entries()) {
      expect(Array.from(rows[i] ?? [])).toEqual([...prompt.map(() => 0), ...logprobs]);
      expect(finishReason).toBe(tokens.at(-1) === 0 ? 'stop' : 'length');
      const spoken = finishReason === 'stop' ? tokens.slice(0, -1) : tokens;
      expect(text).toBe(spoken.map((id) => symbols[id]).join(''));
      expect({ temperature, version }).toEqual({ temperature: 0.7, version: 0 });
    }
    expect(new Set(completions.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(3);
  });

  it('gives the same completion alone and in a batch, from equal seeds', async () => {
    const model = await open();
    const [alone, groups] = await Promise.all([
      model.generate({ prompt: 'ab', maxTokens: 9, seed: 5 }),
      model.generate({ prompts: ['ab', 'cd', 'a'], n: 4, maxTokens: 9, seed: 5 }),
    ]);
    expect(groups[0]?.[0]).toEqual(alone);
  });

  it('draws seeds of its own that differ from call to call and repeat with the seed of the model', async () => {
    const request = { prompt: 'ab', maxTokens: 12, stop: [] };
    const [first, second] = [await open(), await open()];
    const drawn = await Promise.all([first.generate(request), first.generate(request)]);
    expect(drawn[0]?.tokens).not.toEqual(drawn[1]?.tokens);
    expect([await second.generate(request), await second.generate(request)]).toEqual(drawn);
  });

  it('stops at the tokens that it is given', async () => {
    const model = await open();
    const [group = []] = await model.generate({ prompts: ['ab'], n: 16, maxTokens: 12, seed: 1, stop: ['c', 5] });
    expect(group.some(({ finishReason }) => finishReason === 'stop')).toBe(true);
    for (const { tokens, finishReason } of group) {
      expect(tokens.slice(0, -1).some((id) => id === 4 || id === 5)).toBe(false);
      expect(finishReason === 'stop').toBe([4, 5].includes(tokens.at(-1) ?? -1));
    }
  });

  it('is refused when the logits overflow, drawn or greedy', async () => {
    const model = await open();
    await model.forwardBackward([model.demonstration('ab', 'cd')], { loss: { type: 'cross-entropy' } });
    const step = await model.optimStep({ optimizer: { type: 'sgd', learningRate: 1e14 }, clipNorm: 0 });
    expect(step.applied).toBe(true); // all weights are finite
    for (const sampling of [{ temperature: 0 }, { temperature: 1 }, { topP: 0.9 }, { topK: 2 }]) {
      const refused = model.generate({ prompts: ['ab', 'c'], n: 2, maxTokens: 8, stop: [], ...sampling });
      await expect(refused).rejects.toThrow(BackendError);
      await expect(refused).rejects.toThrow(
        /^policy 'model': the log-prob of token \d is NaN: the weights are so large/,
      );
    }
  });

  it('ends with its signal, and the next one has the weights of an update made meanwhile', async () => {
    const model = await open();
    const samples = await playedSamples(model);
    const controller = new AbortController();
    const ended = model.generate({ prompts: ['a'], n: 50, maxTokens: 18, stop: [], signal: controller.signal });
    await model.forwardBackward(samples, ppo);
    await model.optimStep({ learningRate: 0.01 });
    const after = model.generate({ prompt: 'ab', maxTokens: 4, seed: 1 });
    controller.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    expect((await after).version).toBe(1);
  });
});

describe('an update', () => {
  it('begins with ratios of exactly 1, and the next generate samples from the new weights', async () => {
    const model = await open();
    const before = await model.generate({ prompt: 'ab', maxTokens: 6, seed: 2 });
    const { metrics, gradientNorm } = await model.forwardBackward(await playedSamples(model), ppo);
    expect(metrics.maxRatioDeviation).toBe(0);
    expect(metrics.entropy).toBeGreaterThan(0);
    const step = await model.optimStep({ learningRate: 0.05, clipNorm: 0.1 });
    expect(step).toEqual({ applied: true, norm: gradientNorm });
    const after = await model.generate({ prompt: 'ab', maxTokens: 6, seed: 2 });
    expect([before.version, after.version]).toEqual([0, 1]);
    expect(after.logprobs).not.toEqual(before.logprobs);
    const [row = []] = await model.logprobs([trainingSample(after, 0)]);
    expect(Array.from(row).slice(2)).toEqual(after.logprobs);
  });

  it('is the same if no call is awaited', async () => {
    const [model, other] = [await open(), await open()];
    const samples = await playedSamples(model);
    for (let i = 0; i < 3; i++) {
      await model.forwardBackward(samples, ppo);
      await model.optimStep({ learningRate: 0.02 });
    }
    const waited = await model.generate({ prompt: 'ab', maxTokens: 8, seed: 2 });
    for (let i = 0; i < 3; i++) {
      void other.forwardBackward(samples, ppo);
      void other.optimStep({ learningRate: 0.02 });
    }
    const { version, ...completion } = await other.generate({ prompt: 'ab', maxTokens: 8, seed: 2 });
    expect({ ...completion, version: version + 1 }).toEqual(waited); // the first model published once more
  });

  it('in parts with the divisor of the whole has the loss of the whole', async () => {
    const model = await open();
    const samples = await playedSamples(model);
    const normalizer = samples.reduce((sum, { mask }) => sum + Array.from(mask).reduce((a, b) => a + b, 0), 0);
    const whole = await model.forwardBackward(samples, ppo);
    await model.discardGradient();
    const parts = [];
    for (const part of [samples.slice(0, 3), samples.slice(3)])
      parts.push(await model.forwardBackward(part, { ...ppo, normalizer }));
    expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(whole.loss, 6);
    const step = await model.optimStep();
    expect(step.norm).toBeCloseTo(whole.gradientNorm ?? Number.NaN, 5);
  });

  it('by cross-entropy has the mean loss of the written tokens, weighed, and learns a demonstration', async () => {
    const model = await open();
    const demonstration = model.demonstration('ab', 'dcd');
    expect(Array.from(demonstration.tokens)).toEqual([2, 3, 5, 4, 5, 0]);
    expect(Array.from(demonstration.mask)).toEqual([0, 0, 1, 1, 1, 1]);
    const [row = []] = await model.logprobs([demonstration]);
    const expected = -Array.from(row).reduce((sum, logprob) => sum + logprob, 0) / 4;
    const loss = { type: 'cross-entropy' } as const;
    const first = await model.forwardBackward([demonstration], { loss });
    expect(first.loss).toBeCloseTo(expected, 5);
    expect(first.metrics).toMatchObject({ tokens: 4, entropy: expect.any(Number) });
    for (const compared of ['approxKl', 'maxRatioDeviation', 'logprobGap'])
      expect(first.metrics).not.toHaveProperty(compared); // with what? no log-probs were given
    await model.discardGradient();
    const heavy = { ...demonstration, advantages: [0, 0, 2, 2, 2, 2] };
    expect((await model.forwardBackward([heavy], { loss })).loss).toBeCloseTo(2 * expected, 5);
    for (let i = 0; i < 60; i++) {
      await model.optimStep({ learningRate: 0.02 });
      await model.forwardBackward([demonstration], { loss });
    }
    expect((await model.generate({ prompt: 'ab', maxTokens: 6, temperature: 0 })).text).toBe('dcd');
  });

  it('holds to a reference and to its entropy if it is asked to', async () => {
    const model = await open();
    const samples = await playedSamples(model);
    const away = samples.map((sample) => ({
      ...sample,
      referenceLogprobs: Array.from(sample.behaviourLogprobs ?? [], (logprob) => logprob - 0.5),
    }));
    const plain = await model.forwardBackward(away, ppo);
    const held = await model.forwardBackward(away, { ...ppo, kl: { kind: 'k1', coefficient: 0.2 } });
    expect(held.loss - plain.loss).toBeCloseTo(0.1, 5);
    const bonus = await model.forwardBackward(away, { ...ppo, entropyCoefficient: 0.3 });
    expect(plain.loss - bonus.loss).toBeCloseTo(0.3 * (plain.metrics.entropy ?? Number.NaN), 5);
  });

  it('of a schedule that begins at 0 fills the moments and changes no weight', async () => {
    const [model, other] = [await open(), await open()];
    const samples = await playedSamples(model);
    const before = rowsOf(await model.logprobs(samples));
    await model.forwardBackward(samples, ppo);
    expect(await model.optimStep({ learningRate: 0 })).toMatchObject({ applied: true });
    expect(rowsOf(await model.logprobs(samples))).toEqual(before);
    for (const [each, options] of [
      [model, { clipNorm: Infinity, skipAboveNorm: Infinity }],
      [other, { clipNorm: 0 }],
    ] as const) {
      await each.resetOptimizer();
      await each.forwardBackward(samples, ppo);
      await each.optimStep(options);
    }
    expect(rowsOf(await model.logprobs(samples))).toEqual(rowsOf(await other.logprobs(samples)));
    expect(rowsOf(await model.logprobs(samples))).not.toEqual(before);
  });

  it('is left out above the limit, and if the gradient is not finite', async () => {
    const model = await open();
    const samples = await playedSamples(model);
    const before = rowsOf(await model.logprobs(samples));
    await model.forwardBackward(samples, ppo);
    expect(await model.optimStep({ skipAboveNorm: 1e-6 })).toMatchObject({ applied: false, why: 'above-limit' });
    const huge = samples.map((sample) => ({ ...sample, advantages: Float32Array.from(sample.mask, (m) => m * 3e38) }));
    await model.forwardBackward(huge, { ...ppo, normalizer: 1e-30 });
    expect(await model.optimStep()).toMatchObject({ applied: false, why: 'not-finite' });
    expect(rowsOf(await model.logprobs(samples))).toEqual(before);
    expect((await model.generate({ prompt: 'ab', maxTokens: 2 })).version).toBe(0);
  });
});

describe('a model on disk', () => {
  it('is read by loadPolicy', async () => {
    const model = await open();
    await model.forwardBackward(await playedSamples(model), ppo);
    await model.optimStep({ learningRate: 0.05 });
    await model.save(join(directory, 'saved'));
    const policy = await loadPolicy(join(directory, 'saved'), { threads: 1 });
    const [row = []] = await model.logprobs([model.demonstration([2, 3], [4, 5])]);
    expect(await policy.logprobs([2, 3], [4, 5])).toEqual(Array.from(row).slice(2));
    await policy.dispose();
  });

  it('continues from its state as if it had never stopped', async () => {
    const [model, other] = [await open(), await open({ seed: 9 })];
    const samples = await playedSamples(model);
    const update = async (each: TrainableModel) => {
      await each.forwardBackward(samples, ppo);
      await each.optimStep({ learningRate: 0.01 });
    };
    await update(model);
    await model.saveState(join(directory, 'state'));
    await update(model);
    await other.loadState(join(directory, 'state'));
    await update(other);
    for (const [name, each] of [['one', model], ['other', other]] as const) // biome-ignore format: a row
      await each.save(join(directory, name));
    const weights = (name: string) => readFile(join(directory, name, 'model.safetensors'));
    expect((await weights('other')).equals(await weights('one'))).toBe(true);
    await expect(other.loadState(join(directory, 'missing'))).rejects.toThrow(CheckpointError);
  });

  it('stays as it was if the disk is full while it is saved again', async () => {
    const disk = { ...nodeFiles };
    const backend = await startEmbedded({ threads: 1, files: disk });
    const policy = await backend.open(wholeWeights(completeWhole(tiny), 3), 'policy', 'model');
    const { hardware } = backend;
    const model = new TrainableModel(policy, { files: disk, hardware, seed: 3, close: () => backend.dispose() });
    models.push(model);
    const place = join(directory, 'full');
    await model.saveState(place);
    const contents = async () =>
      Promise.all((await readdir(place)).map(async (name) => [name, await readFile(join(place, name), 'hex')]));
    const before = await contents();
    await model.forwardBackward([model.demonstration('ab', 'cd')], { loss: { type: 'cross-entropy' } });
    await model.optimStep();
    const names = before.map(([name]) => name as string);
    expect(names).toContain('optimizer.safetensors');
    for (const full of names) {
      disk.write = async (path, content) => {
        await nodeFiles.write(path, path.endsWith(`/${full}`) ? 'half' : content);
        if (path.endsWith(`/${full}`)) throw new Error('ENOSPC: no space left on device');
      };
      await expect(model.saveState(place)).rejects.toThrow(/cannot be written: ENOSPC/);
      expect(await contents()).toEqual(before);
    }
  });

  it('is refused if weights and optimiser are of different saves', async () => {
    const model = await open();
    const [place, later] = [join(directory, 'mixed'), join(directory, 'mixed-later')];
    const update = async () => {
      await model.forwardBackward([model.demonstration('ab', 'cd')], { loss: { type: 'cross-entropy' } });
      await model.optimStep();
    };
    await update();
    await model.saveState(place);
    await model.save(place); // the same weights
    await model.loadState(place);
    await update();
    await model.saveState(later);
    await cp(join(later, 'optimizer.safetensors'), join(place, 'optimizer.safetensors'));
    const refused = model.loadState(place);
    await expect(refused).rejects.toThrow(CheckpointError);
    await expect(refused).rejects.toThrow('belongs to other weights than those in model.safetensors');
    await model.loadState(later);
    await update();
    await model.save(later);
    await expect(model.loadState(later)).rejects.toThrow('belongs to other weights');
  });
});

describe('an engine with several models', () => {
  it('holds adapters on one base, each with its own weights', async () => {
    await (await open()).save(join(directory, 'base'));
    await using engine = await openEngine({ threads: 1 });
    const adapter = lora(checkpoint(join(directory, 'base')), { rank: 2 });
    const solver = await engine.open(adapter, { name: 'solver', seed: 1 });
    const verifier = await engine.open(adapter, { name: 'verifier', seed: 2 });
    expect([solver.name, verifier.name]).toEqual(['solver', 'verifier']);
    const probe = [solver.demonstration('ab', 'cd')];
    const base = rowsOf(await solver.logprobs(probe));
    expect(rowsOf(await verifier.logprobs(probe))).toEqual(base); // a fresh adapter changes nothing
    await solver.forwardBackward(probe, { loss: { type: 'cross-entropy' } });
    await solver.optimStep({ learningRate: 0.1 });
    expect(rowsOf(await verifier.logprobs(probe))).toEqual(base);
    expect(rowsOf(await solver.logprobs(probe))).not.toEqual(base);
    const [one, two] = await Promise.all(
      [solver, verifier].map((each) => each.generate({ prompt: 'a', maxTokens: 3 })),
    );
    expect([one?.tokens.length, two?.tokens.length].every((length) => length !== undefined && length > 0)).toBe(true);
    await solver.save(join(directory, 'adapter'));
    const saved = await engine.open(lora(checkpoint(join(directory, 'base')), { from: join(directory, 'adapter') }));
    expect(rowsOf(await saved.logprobs(probe))).toEqual(rowsOf(await solver.logprobs(probe)));
    await verifier.dispose();
    await verifier.dispose();
    await expect(verifier.logprobs(probe)).rejects.toThrow(BackendError);
    expect(rowsOf(await solver.logprobs(probe)).flat().length).toBeGreaterThan(0);
  });

  it('saves an adapter merged where it was saved alone, and that is what is loaded', async () => {
    const [base, place] = [join(directory, 'whole'), join(directory, 'merged')];
    await (await open()).save(base);
    await using engine = await engineWithAdapter(base);
    const { model } = engine;
    await model.save(place);
    const [template, notes, shard] = ['chat_template.jinja', 'adapter_notes.md', 'model-00001-of-00002.safetensors'];
    for (const name of [template, notes, shard, 'model.safetensors.index.json'])
      await writeFile(join(place, name), 'earlier');
    await model.save(place, { merge: true });
    expect(await readdir(place)).toEqual([notes, 'config.json', 'drmas_tokenizer.json', 'model.safetensors']);
    const probe = model.demonstration([2, 3], [4, 5]);
    const trained = Array.from((await model.logprobs([probe]))[0] ?? []).slice(2);
    const loaded = async (path: string) => {
      const policy = await loadPolicy(path, { threads: 1 });
      const logprobs = await policy.logprobs([2, 3], [4, 5]);
      await policy.dispose();
      return logprobs;
    };
    (await loaded(place)).forEach((logprob, i) => {
      expect(logprob).toBeCloseTo(trained[i] as number, 4);
    });
    const before = await readdir(base);
    await model.save(base); // beside its base
    expect(await readdir(base)).toEqual(expect.arrayContaining(before));
    expect(await loaded(base)).toEqual(trained);
  });

  it('computes with the kernels that were asked for', async () => {
    await using engine = await openEngine({ threads: 1, kernels: 'reference' });
    expect(engine.hardware.kernels).toBe('reference');
    await expect(openEngine({ kernels: 'fast' as 'native' })).rejects.toThrow(ArgumentError);
  });
});

describe('what is wrong is said before any work', () => {
  let model: TrainableModel;
  let sample: Sample;
  beforeAll(async () => {
    model = await openModel(tiny, { threads: 1 });
    sample = trainingSample((await model.generate({ prompt: 'ab', maxTokens: 3, stop: [] })) as Completion, 1);
  });
  afterAll(() => model.dispose());
  const ones = [0, 0, 1, 1, 1];

  it.each<[string, Partial<Sample>, Partial<UpdateOptions>, string]>([
    ['an id outside the vocabulary', { tokens: [2, 3, 6, 2, 2] }, {}, 'samples[1].tokens: token 6 at position 2'],
    ['a sequence beyond the context', { tokens: Array(21).fill(2) }, {}, 'samples[1].tokens: 21 tokens do not fit'],
    ['a mask of another length', { mask: [0, 1] }, {}, 'samples[1].mask: expected 5 numbers'],
    ['a mask that is no mask', { mask: [0, 0, 2, 1, 1] }, {}, 'samples[1].mask[2]: expected 0 or 1, found 2'],
    ['a first token that nothing predicts', { mask: [1, 0, 1, 1, 1] }, {}, 'samples[1].mask[0]: expected 0'],
    [
      'an advantage that is not a number',
      { advantages: [0, 0, 1, Number.NaN, 1] },
      {},
      'samples[1].advantages[3]: expected',
    ],
    ['an infinite log-prob', { behaviourLogprobs: [0, 0, -Infinity, -1, -1] }, {}, 'samples[1].behaviourLogprobs[2]'],
    ['no advantages', { advantages: undefined }, {}, 'samples[1].advantages: expected 5 numbers'],
    ['no reference', {}, { kl: { kind: 'k3', coefficient: 0.1 } }, 'samples[0].referenceLogprobs: expected 5'],
    [
      'no proximal',
      {},
      { loss: { type: 'ppo-clip', importanceCorrection: {} } },
      'samples[0].proximalLogprobs: expected',
    ],
    [
      'a negative weight',
      { advantages: [0, 0, 1, -1, 1] },
      { loss: { type: 'cross-entropy' } },
      'samples[1].advantages[3]',
    ],
    ['a wrong temperature', { temperature: -1 }, {}, 'samples[1].temperature: expected'],
    ['an empty episode', { episodeTokens: 0 }, {}, 'samples[1].episodeTokens: expected'],
    ['a span that leaves a token out', { spans: [{ start: 2, end: 3 }] }, {}, 'written tokens outside its spans'],
    [
      'a field that samples do not have',
      { advantage: ones } as object,
      {},
      "samples[1] has the unknown field 'advantage'; did you mean 'advantages'?",
    ],
    ['an unknown loss', {}, { loss: { type: 'ppo' } as never }, 'loss.type'],
    ['a setting out of range', {}, { loss: { type: 'ppo-clip', clip: 2 } }, 'loss.clip must be a number < 1, got 2'],
    ['an unknown KL', {}, { kl: { kind: 'k9' as 'k1', coefficient: 1 } }, 'unknown KL kind "k9"'],
    ['a divisor of 0', {}, { normalizer: 0 }, 'normalizer: expected a number above 0, found 0'],
    ['an entropy that is no number', {}, { entropyCoefficient: Number.NaN }, 'entropyCoefficient: expected'],
  ])('%s', async (_, wrong, options, message) => {
    const samples = [sample, { ...sample, mask: ones, ...wrong }];
    const refused = model.forwardBackward(samples, { ...ppo, ...options });
    await expect(refused).rejects.toThrow(ArgumentError);
    await expect(refused).rejects.toThrow(message);
    expect(await model.optimStep()).toEqual({ applied: true, norm: 0 });
  });

  it('no samples, and advantages of another length', async () => {
    await expect(model.forwardBackward([], ppo)).rejects.toThrow('samples: expected at least one');
    const completion = await model.generate({ prompt: 'ab', maxTokens: 3, stop: [] });
    expect(() => trainingSample(completion, [1])).toThrow('advantage: expected 3 numbers');
  });

  it.each<[string, object, string]>([
    ['no tokens', { prompt: '' }, 'prompt: expected at least one token'],
    ['no room', { prompts: ['a', 'ab'.repeat(10)] }, 'prompts[1]: 20 tokens leave no room in a context of 20'],
    ['an id outside the vocabulary', { prompt: [9] }, 'prompt: token 9 at position 0'],
    ['no prompt', {}, 'either `prompt` or `prompts`'],
    ['a prompt of another kind', { prompt: 5 }, 'prompt: expected text, messages or token ids, found number'],
    ['a group of one prompt', { prompt: 'a', n: 4 }, 'expected { prompts: [prompt], n }'],
    ['a group of none', { prompts: ['a'], n: 0 }, 'n: expected a whole number of at least 1, found 0'],
    ['a stop text of two tokens', { prompt: 'a', stop: ['ab'] }, 'stop[0]: expected a text of one token'],
    ['a stop id outside the vocabulary', { prompt: 'a', stop: [77] }, 'stop[0]: token 77 is outside'],
    ['a wrong temperature', { prompt: 'a', temperature: -1 }, 'temperature: expected'],
    ['no response', { prompt: 'a', maxTokens: 0 }, 'maxTokens: expected'],
    ['a seed with a fraction', { prompt: 'a', seed: 0.5 }, 'seed: expected a whole number'],
  ])('a request with %s', async (_, wrong, message) => {
    const refused = model.generate({ maxTokens: 4, ...wrong } as never);
    await expect(refused).rejects.toThrow(ArgumentError);
    await expect(refused).rejects.toThrow(message);
  });

  it('a text without tokens, a step or a model that cannot be', async () => {
    await expect(model.generate({ prompt: 'x', maxTokens: 4 })).rejects.toThrow(TokenizerError);
    await expect(model.optimStep({ learningRate: -1 })).rejects.toThrow('learningRate: expected');
    await expect(model.optimStep({ optimizer: { learningRate: 0 } })).rejects.toThrow('optimizer.learningRate');
    await expect(model.optimStep({ clipNorm: Number.NaN })).rejects.toThrow('clipNorm: expected');
    await expect(openModel({ ...tiny, width: 18 })).rejects.toThrow('width');
    await expect(openModel(lora(tiny, { rank: 0 }))).rejects.toThrow('model.rank must be a number >= 1');
    await expect(openModel(checkpoint(join(directory, 'nothing')))).rejects.toThrow(CheckpointError);
    for (const threads of [0, 257]) {
      await expect(openModel(tiny, { threads })).rejects.toThrow('threads: expected');
      await expect(loadPolicy('absent', { threads })).rejects.toThrow('threads: expected');
    }
  });

  it.each<[string, (wrong: object) => Promise<unknown>]>([
    ['generate', (wrong) => model.generate({ prompt: 'a', maxTokens: 1, ...wrong })],
    ['generate of a group', (wrong) => model.generate({ prompts: ['a'], maxTokens: 1, ...wrong })],
    ['forwardBackward', (wrong) => model.forwardBackward([sample], { ...ppo, ...wrong })],
    ['optimStep', (wrong) => model.optimStep(wrong)],
    ['openModel', (wrong) => openModel(tiny, { threads: 1, ...wrong })],
    ['openEngine', (wrong) => openEngine({ threads: 1, ...wrong })],
  ])('an option that %s does not have', async (_, call) => {
    await expect(call({ top_p: 0.5 })).rejects.toThrow("unknown option 'top_p'");
    await expect(call({ normaliser: undefined })).rejects.toThrow(ArgumentError);
  });

  it('a call after the end', async () => {
    const ended = await openModel(tiny, { threads: 1 });
    await ended.dispose();
    await expect(ended.generate({ prompt: 'a', maxTokens: 1 })).rejects.toThrow(BackendError);
  });
});
