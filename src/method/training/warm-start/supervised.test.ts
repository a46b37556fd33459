import type { OptimStepSettings } from '@drmas/engine/contract';
import { messageOf, TrainingError } from '@drmas/engine/errors';
import type { Warmup, Warning } from '@drmas/engine/events';
import type { TaskSource, TrainingSample } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { type FakeModels, fakeRun } from '../../../../test/support/fake-run.js';
import { eventsOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import { arithmetic } from '../../../teams/tasks/generated/arithmetic.js';
import type { Recipe } from '../../recipe/recipe.js';
import { trainWarmStart, type WarmStartSettings } from './supervised.js';
import { keptWarmStart, warmStart, warmStartHash } from './warm-start.js';

const root = temporaryRoot();

const settingsOf = ({ warmStart }: Recipe) => warmStart as WarmStartSettings;

/** A run that learns nothing, and the calls of its backend. */
async function fakeRunOf(recipe: Recipe, changes: Partial<FakeModels> = {}) {
  const done: string[] = [];
  const fake = await fakeRun(root, recipe, () => '', {
    copyFrom: async (to, from) => void done.push(`copy ${from} to ${to}`),
    resetOptimizer: async (policy) => void done.push(`reset ${policy}`),
    load: async (policy) => void done.push(`load ${policy}`),
    ...changes,
  });
  const notices: string[] = [];
  const host = { ...fake.run.host, notify: (notice: string) => void notices.push(notice) };
  return { ...fake, run: { ...fake.run, host }, done, notices };
}

/** The optimiser's steps that change weights. */
const learning = (steps: Awaited<ReturnType<typeof fakeRunOf>>['steps']) =>
  steps.filter(({ settings }) => settings.optimizer.learningRate > 0);

const agentsOf = (samples: readonly TrainingSample[]) => [...new Set(samples.map(({ agent }) => agent))].sort();

describe('the warm start', () => {
  it('of a base learns from the traces of all agents and is copied into every policy', async () => {
    const recipe = tinyRecipe();
    const { run, submitted, steps, done } = await fakeRunOf(recipe);
    const events: (Warmup | Warning)[] = [];
    await trainWarmStart(run, settingsOf(recipe), (event) => events.push(event));
    expect(submitted).toHaveLength(12);
    expect(new Set([...submitted, ...steps].map(({ policy }) => policy))).toEqual(new Set(['solver']));
    expect(agentsOf(submitted.flatMap(({ samples }) => samples))).toEqual(['solver', 'verifier']);
    expect(done).toEqual(['copy solver to verifier', 'reset solver', 'reset verifier']);
    expect(events).toMatchObject([{ policy: 'base', step: 12, steps: 12, loss: 0.5 }]);
  });

  it('reports the mean loss over tokens, as its loss on held-out traces is, also if batches differ in size', async () => {
    const recipe = tinyRecipe({}, ['warmStart.batch=1', 'warmStart.steps=12']);
    const tokens: number[] = [];
    const lossOf = (step: number) => step / 4;
    const { run } = await fakeRunOf(recipe, {
      forwardBackward: async (_, samples, { normalizer }) => ({
        loss: lossOf(tokens.push(normalizer)),
        gradientNorm: 1,
        metrics: {} as never, // a warm start reads none
        tokens: samples.length,
      }),
    });
    const events: (Warmup | Warning)[] = [];
    await trainWarmStart(run, settingsOf(recipe), (event) => events.push(event));
    expect(new Set(tokens).size).toBeGreaterThan(1);
    const sum = tokens.reduce((total, count, i) => total + count * lossOf(i + 1), 0);
    expect((events[0] as Warmup).loss).toBeCloseTo(sum / tokens.reduce((total, count) => total + count, 0), 10);
  });

  it.each([
    ['some', [2, 5, 6, 12], /^the warm start of base left out 4 updates, whose gradients were not numbers$/],
    [
      'three in a row',
      [3, 4, 5],
      /^the gradient of the warm start of base was not a number in 3 .*, up to step 5: a lower/,
    ],
  ])('says that %s of its updates were not made', async (_, dropped, message) => {
    const recipe = tinyRecipe();
    let step = 0;
    const { run, done } = await fakeRunOf(recipe, {
      optimStep: async () => {
        step++;
        return dropped.includes(step) ? { applied: false, why: 'not-finite' } : { applied: true, norm: 1 };
      },
    });
    const said: string[] = [];
    const emit = (event: Warmup | Warning) => void (event.type === 'warning' && said.push(event.message));
    await trainWarmStart(run, settingsOf(recipe), emit).catch((error: unknown) => {
      expect(error).toBeInstanceOf(TrainingError);
      expect(done).toEqual([]);
      said.push(messageOf(error));
    });
    expect(said).toEqual([expect.stringMatching(message)]);
  });

  it('of each policy learns from the traces of its own agents only', async () => {
    const recipe = tinyRecipe({}, ['warmStart.share=policy']);
    const { run, submitted, done } = await fakeRunOf(recipe);
    await trainWarmStart(run, settingsOf(recipe), () => {});
    for (const policy of ['solver', 'verifier']) {
      const ofPolicy = submitted.filter((call) => call.policy === policy);
      expect(ofPolicy).toHaveLength(12);
      expect(ofPolicy.every(({ samples }) => samples.length === 4)).toBe(true);
      expect(agentsOf(ofPolicy.flatMap(({ samples }) => samples))).toEqual([policy]);
    }
    expect(done).toEqual(['reset solver', 'reset verifier']);
  });

  it('measures its held-out loss on its own agents, also if the test tasks demonstrate only others', async () => {
    const train = arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 });
    const test: TaskSource = { ...train, trace: () => ({ agent: 'stranger', messages: [], response: '1' }) };
    const recipe = tinyRecipe({ tasks: { train, test }, warmStart: { steps: 1, batch: 2 } });
    const scored: TrainingSample[] = [];
    const { run } = await fakeRunOf(recipe, {
      async logprobs(_, samples) {
        scored.push(...samples);
        return samples.map(({ tokens }) => new Float32Array(tokens.length));
      },
    });
    await trainWarmStart(run, settingsOf(recipe), () => {});
    expect(agentsOf(scored)).toEqual(['solver', 'verifier']);
  });

  it('learns the demonstrated responses with their stop token, after the prompts that episodes have', async () => {
    const recipe = tinyRecipe({}, ['warmStart.batch=40', 'warmStart.steps=1']);
    const { run, submitted, tokenizer } = await fakeRunOf(recipe);
    await trainWarmStart(run, settingsOf(recipe), () => {});
    const [call] = submitted;
    const texts = (call?.samples ?? []).map(({ tokens, mask, agent }) => ({
      agent,
      read: tokenizer.decode([...tokens].filter((_, t) => mask[t] === 0)),
      written: tokenizer.decode([...tokens].filter((_, t) => mask[t] === 1)),
    }));
    for (const { agent, read, written } of texts) {
      if (agent === 'solver') expect(written).toMatch(/^([a-h][+*-]\d+=\d\d)*\\boxed\{\d\d\}<end>$|=/);
      else expect(written).toMatch(/^<(approve|reject)><end>$/);
      expect(read.startsWith(`<${agent}>`)).toBe(true);
    }
    const written = texts.reduce((sum, text) => sum + tokenizer.encode(text.written).length, 0);
    expect(call?.options).toEqual({ loss: { type: 'demonstrations' }, normalizer: written });
  });

  it('leaves out demonstrations that exceed the context, and says how many', async () => {
    const train = arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 });
    const long: boolean[] = [];
    const trace: TaskSource['trace'] = (random) => {
      const agent = random.uniform() < 0.5 ? 'solver' : 'verifier';
      const isLong = agent === 'solver' && random.uniform() < 0.2;
      long.push(isLong);
      return { agent, messages: [], response: '='.repeat(isLong ? 900 : 2) };
    };
    const recipe = tinyRecipe({ tasks: { ...train, trace }, warmStart: { steps: 60, batch: 8 } });
    const { run, submitted } = await fakeRunOf(recipe);
    const events: (Warmup | Warning)[] = [];
    long.length = 0;
    await trainWarmStart(run, settingsOf(recipe), (event) => events.push(event));
    expect(submitted.map(({ samples }) => samples.length)).toEqual(Array.from({ length: 60 }, () => 8));
    expect(agentsOf(submitted.flatMap(({ samples }) => samples))).toEqual(['solver', 'verifier']);
    const count = long.filter((isLong) => isLong).length;
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
      {
        message: expect.stringMatching(
          new RegExp(
            `^the warm start of base left out ${count} of ${128 + 60 * 8 + count} drawn .*longest: a demonstration for 'solver' has`,
          ),
        ),
      },
    ]);
  });

  it('names the agent and a remedy if most demonstrations of an agent exceed the context, before work begins', async () => {
    const recipe = tinyRecipe({}, ['model.context=8', 'warmStart.batch=40']);
    const { run, submitted } = await fakeRunOf(recipe);
    await expect(trainWarmStart(run, settingsOf(recipe), () => {})).rejects.toThrow(
      /^a demonstration for '(solver|verifier)' has \d+ tokens, \d+ of them its prompt, but the context of its model has 8: use a larger context/,
    );
    expect(submitted).toEqual([]);
  });

  it.each([
    ['after 3 s without an event, and then at times', 4, 12, [1, 5]],
    ['not before 3 s', 0.5, 4, []],
  ])('says how far it is and how long it takes %s', async (_, pause, steps, reported) => {
    const recipe = tinyRecipe({}, [`warmStart.steps=${steps}`]);
    const { run, notices } = await fakeRunOf(recipe);
    let seconds = 0;
    const clock = { ...run.host.clock, seconds: () => (seconds += pause) }; // each look at the clock is a pause later
    await trainWarmStart({ ...run, host: { ...run.host, clock } }, settingsOf(recipe), () => {});
    const sentence = /^Warm start of base: step (\d+) of 12, about (?:[\d.]+ s|[\d:]+ min) left\.$/;
    expect(notices.map((notice) => Number(sentence.exec(notice)?.[1]))).toEqual(reported);
  });

  it('raises the learning rate, then lets it fall along a cosine', async () => {
    const recipe = tinyRecipe({}, [
      'warmStart.steps=40',
      'warmStart.warmupSteps=4',
      'warmStart.learningRate=1',
      'warmStart.finalLearningRate=0.2',
    ]);
    const { run, steps } = await fakeRunOf(recipe);
    await trainWarmStart(run, settingsOf(recipe), () => {});
    const rates = steps.map(({ settings }: { settings: OptimStepSettings }) => settings.optimizer.learningRate);
    expect(rates[0]).toBeCloseTo(0.25, 12);
    expect(rates[3]).toBeCloseTo(0.2 + 0.4 * (1 + Math.cos((Math.PI * 3) / 40)), 12);
    expect(rates[20]).toBeCloseTo(0.6, 12);
    expect(rates[39]).toBeCloseTo(0.2, 2);
    expect(rates.slice(3)).toEqual([...rates.slice(3)].sort((a, b) => b - a));
  });

  it('reduces the loss, also on held-out traces, and stops at its target', { tags: 'verify' }, async () => {
    const small = ['training.steps=0', 'evaluation.tasks=1', 'warmStart.steps=150', 'warmStart.batch=8'];
    const warmups = async (overrides: readonly string[]) =>
      (await eventsOf(await trainTiny(root, tinyRecipe({}, [...small, ...overrides])))).filter(
        (event): event is Warmup => event.type === 'warmup',
      );
    const [first, second, third] = (await warmups([])) as [Warmup, Warmup, Warmup];
    expect([first.step, second.step, third.step]).toEqual([50, 100, 150]);
    expect(second.loss).toBeLessThan(first.loss - 0.3);
    expect(third.loss).toBeLessThan(second.loss);
    expect(third.heldOutLoss).toBeLessThan((first.heldOutLoss ?? 0) - 0.2);

    const between = (first.loss + second.loss) / 2;
    const stopped = await warmups([`warmStart.lossTarget=${between}`]);
    expect(stopped).toEqual([first, second]);
  });
});

describe('a cached warm start', () => {
  it('is found by all its inputs and by nothing else', async () => {
    const hash = async (overrides: readonly string[], changes = {}) => {
      const recipe = tinyRecipe(changes, overrides);
      return warmStartHash((await fakeRunOf(recipe)).run, settingsOf(recipe), []);
    };
    const usual = await hash([]);
    for (const same of [
      'seed=2',
      'advantage.type=grpo',
      'training.steps=9',
      'policies.solver.optimizer.learningRate=1',
      'agents.solver.sampling.temperature=0.5',
      'evaluation.tasks=1',
    ]) {
      expect(await hash([same]), same).toBe(usual);
    }
    for (const different of [
      'warmStart.seed=2',
      'warmStart.steps=13',
      'warmStart.share=policy',
      'model.width=12',
      'assign=shared',
      'tasks.train.warmStartOperations=[2,2]',
      'tasks.train.demonstrations.worked=1',
    ]) {
      expect(await hash([different]), different).not.toBe(usual);
    }
  });

  it('is trained again by an engine that computes other numbers', async () => {
    const recipe = tinyRecipe();
    const { run } = await fakeRunOf(recipe);
    const hash = (...numbers: number[]) => warmStartHash(run, settingsOf(recipe), numbers);
    expect(hash(-0.5, 1)).toBe(hash(-0.5, 1));
    expect(hash(-0.5, 1)).not.toBe(hash(-0.5, 1 + 1e-7));
  });

  it('is used with its events and a message', async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=77']);
    const first = await fakeRunOf(recipe);
    const hash = await warmStart(first.run, first.log, settingsOf(recipe));
    expect(first.notices).toEqual([]);
    expect(await keptWarmStart(first.run.host.files, hash ?? '')).toMatch(new RegExp(`${hash}$`));
    expect(await keptWarmStart(first.run.host.files, 'another')).toBeUndefined();
    const second = await fakeRunOf(recipe);
    expect(await warmStart(second.run, second.log, settingsOf(recipe))).toBe(hash);
    expect(second.notices).toEqual([expect.stringMatching(/^Warm start from the cache.*neither --seed nor/)]);
    expect(learning(second.steps)).toHaveLength(0);
    expect(second.done.slice(-2)).toEqual(['load solver', 'load verifier']);
    expect(await second.log.events()).toEqual(await first.log.events());
  });

  it('that cannot be written does not end the run', async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=78']);
    const full = { save: () => Promise.reject(new Error('disk full')) };
    const { run, log, steps, notices } = await fakeRunOf(recipe, full);
    await warmStart(run, log, settingsOf(recipe));
    expect(notices).toEqual(['The warm start could not be cached (disk full).']);
    expect(learning(steps)).toHaveLength(12);
    const again = await fakeRunOf(recipe);
    await warmStart(again.run, again.log, settingsOf(recipe));
    expect(learning(again.steps)).toHaveLength(12);
  });
});
