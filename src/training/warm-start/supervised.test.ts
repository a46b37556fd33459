import { describe, expect, it } from 'vitest';
import { fakeSession } from '../../../test/support/fake-session.js';
import { eventsOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import type { TrainBackend } from '../../contract/backend.js';
import type { OptimStepSettings } from '../../contract/optimizer.js';
import type { PolicyInfo } from '../../contract/weights.js';
import type { Warmup } from '../../core/events.js';
import type { TrainingSample } from '../../core/sample.js';
import type { Recipe } from '../../recipe/recipe.js';
import { trainWarmStart, type WarmStartSettings } from './supervised.js';
import { warmStart, warmStartHash } from './warm-start.js';

const root = temporaryRoot();

const settingsOf = ({ warmStart }: Recipe) => warmStart as WarmStartSettings;

/** A stage that learns nothing, and what it was asked to do. */
async function fakeStage(recipe: Recipe, changes: Partial<TrainBackend> = {}) {
  const done: string[] = [];
  const { session, run, submitted, steps, tokenizer } = await fakeSession(root, recipe, () => '', {
    copyWeights: async (from, to) => void done.push(`copy ${from} to ${to}`),
    resetOptimizer: async (policy) => void done.push(`reset ${policy}`),
    load: async (policy) => void done.push(`load ${policy}`),
    ...changes,
  });
  const policies = Object.fromEntries(
    Object.keys(recipe.policies).map((policy) => [policy, { tokenizer } as unknown as PolicyInfo]),
  );
  const hardware = { kernels: 'none', isa: 'none' };
  return { stage: { ...session, policies, hardware, specs: {}, warnings: [] }, run, submitted, steps, tokenizer, done };
}

/** The optimiser's steps that change weights. */
const learning = (steps: Awaited<ReturnType<typeof fakeStage>>['steps']) =>
  steps.filter(({ settings }) => settings.optimizer.learningRate > 0);

const agentsOf = (samples: readonly TrainingSample[]) => [...new Set(samples.map(({ agent }) => agent))].sort();

describe('the warm start', () => {
  it('of a base learns from the traces of all agents and is copied into every policy', async () => {
    const recipe = tinyRecipe();
    const { stage, submitted, steps, done } = await fakeStage(recipe);
    const events: Warmup[] = [];
    await trainWarmStart(stage, settingsOf(recipe), (event) => events.push(event));
    expect(submitted).toHaveLength(12);
    expect(new Set([...submitted, ...steps].map(({ policy }) => policy))).toEqual(new Set(['solver']));
    expect(agentsOf(submitted.flatMap(({ samples }) => samples))).toEqual(['solver', 'verifier']);
    expect(done).toEqual(['copy solver to verifier', 'reset solver', 'reset verifier']);
    expect(events).toMatchObject([{ policy: 'base', step: 12, steps: 12, loss: 0.5 }]);
  });

  it('of each policy learns from the traces of its own agents only', async () => {
    const recipe = tinyRecipe({}, ['warmStart.share=policy']);
    const { stage, submitted, done } = await fakeStage(recipe);
    await trainWarmStart(stage, settingsOf(recipe), () => {});
    for (const policy of ['solver', 'verifier']) {
      const own = submitted.filter((call) => call.policy === policy);
      expect(own).toHaveLength(12);
      expect(own.every(({ samples }) => samples.length === 4)).toBe(true);
      expect(agentsOf(own.flatMap(({ samples }) => samples))).toEqual([policy]);
    }
    expect(done).toEqual(['reset solver', 'reset verifier']);
  });

  it('learns the demonstrated responses with their stop token, after the prompts that episodes have', async () => {
    const recipe = tinyRecipe({}, ['warmStart.batch=40', 'warmStart.steps=1']);
    const { stage, submitted, tokenizer } = await fakeStage(recipe);
    await trainWarmStart(stage, settingsOf(recipe), () => {});
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

  it('raises the learning rate, then lets it fall along a cosine', async () => {
    const recipe = tinyRecipe({}, [
      'warmStart.steps=40',
      'warmStart.warmupSteps=4',
      'warmStart.learningRate=1',
      'warmStart.finalLearningRate=0.2',
    ]);
    const { stage, steps } = await fakeStage(recipe);
    await trainWarmStart(stage, settingsOf(recipe), () => {});
    const rates = steps.map(({ settings }: { settings: OptimStepSettings }) => settings.optimizer.learningRate);
    expect(rates[0]).toBeCloseTo(0.25, 12);
    expect(rates[3]).toBeCloseTo(0.2 + 0.4 * (1 + Math.cos((Math.PI * 3) / 40)), 12);
    expect(rates[20]).toBeCloseTo(0.6, 12);
    expect(rates[39]).toBeCloseTo(0.2, 2);
    expect(rates.slice(3)).toEqual([...rates.slice(3)].sort((a, b) => b - a));
  });

  it('lets the loss fall, on traces that it never saw too, and stops at its target', async () => {
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
  it('is found by what decides it and by nothing else', async () => {
    const hash = async (overrides: readonly string[], changes = {}) => {
      const recipe = tinyRecipe(changes, overrides);
      return warmStartHash((await fakeStage(recipe)).stage, settingsOf(recipe), []);
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

  it('is made anew by an engine that computes other numbers', async () => {
    const recipe = tinyRecipe();
    const { stage } = await fakeStage(recipe);
    const hash = (...numbers: number[]) => warmStartHash(stage, settingsOf(recipe), numbers);
    expect(hash(-0.5, 1)).toBe(hash(-0.5, 1));
    expect(hash(-0.5, 1)).not.toBe(hash(-0.5, 1 + 1e-7));
  });

  it('is taken with its events, and said to be', async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=77']);
    const notices: string[] = [];
    const first = await fakeStage(recipe);
    await warmStart(first.stage, first.run, settingsOf(recipe), (notice) => notices.push(notice));
    expect(notices).toEqual([]);
    const second = await fakeStage(recipe);
    await warmStart(second.stage, second.run, settingsOf(recipe), (notice) => notices.push(notice));
    expect(notices).toEqual([expect.stringMatching(/^Warm start taken from the cache .*neither --seed nor/)]);
    expect(learning(second.steps)).toHaveLength(0);
    expect(second.done.slice(-2)).toEqual(['load solver', 'load verifier']);
    expect(await second.run.events()).toEqual(await first.run.events());
  });

  it('that cannot be written costs no run', async () => {
    const recipe = tinyRecipe({}, ['warmStart.seed=78']);
    const notices: string[] = [];
    const { stage, run, steps } = await fakeStage(recipe, { save: () => Promise.reject(new Error('disk full')) });
    await warmStart(stage, run, settingsOf(recipe), (notice) => notices.push(notice));
    expect(notices).toEqual(['The warm start could not be cached (disk full).']);
    expect(learning(steps)).toHaveLength(12);
    const again = await fakeStage(recipe);
    await warmStart(again.stage, again.run, settingsOf(recipe), () => {});
    expect(learning(again.steps)).toHaveLength(12);
  });
});
