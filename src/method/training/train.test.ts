import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BackendError, TrainingError } from '@drmas/engine/errors';
import type { EpisodeFailed, EvaluationEvent, RunEvent, Step } from '@drmas/engine/events';
import { rowsOfSample } from '@drmas/engine/loss';
import { mean, standardDeviation } from '@drmas/engine/math';
import type { TaskSource, TrainingSample } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { fakeRun } from '../../../test/support/fake-run.js';
import { temporaryRoot, tinyRecipe } from '../../../test/support/tiny-run.js';
import type { Script } from '../../runs/testing/scripted-sampler.js';
import { solverVerifier } from '../../teams/team/solver-verifier.js';
import type { RecipeInput } from '../recipe/define.js';
import { readEpisodes } from '../store/episode-files.js';
import { StabilityWatch } from './stability/stability-watch.js';
import { trainTeam } from './train.js';

const root = temporaryRoot();

const oneTask: TaskSource = {
  name: 'one',
  load: async () => ({ name: 'one', size: 1, at: () => ({ id: 'sum', data: { question: '3a+4', answer: '07' } }) }),
};

/** The conversations of the four episodes. Each has its own text. */
const drafts = ['\\boxed{07}', '1=1\\boxed{08}', '2=2\\boxed{09}', '3=3'];
const verdicts = ['<approve>', '<reject>', '<approve>', '='];
const script: Script = ({ prompt, index }) => {
  if (prompt.startsWith('<verifier>')) return verdicts[drafts.findIndex((draft) => prompt.includes(draft))] ?? '';
  return prompt.includes('<reject>') ? '\\boxed{7}' : (drafts[index] ?? '\\boxed{07}');
};

const exampleRecipe = (changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []) =>
  tinyRecipe(
    {
      team: solverVerifier({ maxLoops: 2, solver: { system: '<solver>' }, verifier: { system: '<verifier>' } }),
      tasks: oneTask,
      training: { steps: 1, tasksPerStep: 1, groupSize: 4 },
      evaluation: { tasks: 1, samples: 1 },
      agents: { solver: { sampling: { temperature: 0.5, maxTokens: 8 } }, verifier: { sampling: { maxTokens: 8 } } },
      ...changes,
    },
    overrides,
  );

/**
 * The reward of each turn, in the order of episodes and calls. The third episode fails, the fourth has an invalid
 * output.
 */
const solverRewards = [1, 1, 1, 0, -0.1];
const verifierRewards = [1, 1, 0, -0.1];
const solverSaid = ['\\boxed{07}', '1=1\\boxed{08}', '\\boxed{7}', '2=2\\boxed{09}', '3=3'];
const solverRead = ['', '', '1=1\\boxed{08}<end><reject><ask>', '', ''].map((more) => `<solver>3a+4<ask>${more}`);
const verifierRead = drafts.map((draft) => `<verifier>3a+4<ask>${draft}<end>`);
/** Requests arrive in rounds: all first drafts, all verdicts, the second draft. */
const solverRequests = [1, 2, 9, 3, 4];
const verifierRequests = [5, 6, 7, 8];

/** The turns of a sample, each as a sample of its own. */
const turnsOf = (sample: TrainingSample) =>
  rowsOfSample(sample).map(({ span: { start, end } }) => ({
    ...sample,
    tokens: sample.tokens.slice(0, end),
    ...Object.fromEntries(
      (['mask', 'behaviourLogprobs', 'advantages'] as const).map((name) => [
        name,
        Array.from(sample[name].slice(0, end), (value, t) => (t < start && sample.spans !== undefined ? 0 : value)),
      ]),
    ),
  }));

const normalised = (rewards: readonly number[]) =>
  rewards.map((reward) => (reward - mean(rewards)) / (standardDeviation(rewards) + 1e-6));

describe('the tokens of a step', () => {
  it('cost the price of an endpoint too, whose agent no policy trains', async () => {
    const { run, progress, log } = await fakeRun(root, exampleRecipe({}), script);
    const prices = { verifier: { read: 1, write: 2, train: 0 } };
    await trainTeam({ ...run, prices }, progress, log);
    const recorded = (await log.events()).find((event): event is RunEvent & Step => event.type === 'step');
    const { read = 0, written = 0 } = recorded?.agents.verifier?.tokens ?? {};
    expect(read).toBeGreaterThan(0);
    expect(recorded?.agents.verifier?.cost).toBe((read + 2 * written) / 1e6);
    expect(recorded?.cost).toBe((read + 2 * written) / 1e6);
  });

  it('count all played episodes, training tokens once an epoch, and cost the price of the policy', async () => {
    const price = { read: 2, write: 10, train: 5 };
    const recipe = exampleRecipe({ policies: { solver: { price, epochs: 2 } } });
    const { run, progress, log } = await fakeRun(root, recipe, script);
    await trainTeam(run, progress, log);
    const events = await log.events();
    const recorded = events.find((event): event is RunEvent & Step => event.type === 'step');
    const played = (await readEpisodes(nodeFiles, log.stepEpisodesPath(1))).flatMap(({ turns }) => turns);
    for (const [agent, epochs] of [
      ['solver', 2],
      ['verifier', 1],
    ] as const) {
      const turns = played.filter((turn) => turn.agent === agent);
      const [read, written] = [turns.flatMap(({ prompt }) => prompt), turns.flatMap(({ response }) => response)];
      const whole = turns.map(({ prompt, response }) => [...prompt, ...response].join());
      // A turn that a later turn continues is part of the later turn's sequence.
      const sequences = whole.filter((text) => !whole.some((other) => other.startsWith(`${text},`)));
      const trained = epochs * sequences.reduce((sum, text) => sum + text.split(',').length, 0);
      const tokens = { read: read.length, written: written.length, trained };
      expect(recorded?.agents[agent]?.tokens).toEqual(tokens);
    }
    const { read = 0, written = 0, trained = 0 } = recorded?.agents.solver?.tokens ?? {};
    const cost = (2 * read + 10 * written + 5 * trained) / 1e6;
    expect([recorded?.agents.solver?.cost, recorded?.agents.verifier?.cost]).toEqual([cost, undefined]);
    expect(recorded?.cost).toBe(cost);
    const evaluated = events.find((event): event is RunEvent & EvaluationEvent => event.type === 'evaluation');
    const { solver } = evaluated?.agents ?? {};
    expect(solver?.tokens?.trained).toBe(0);
    expect(evaluated?.cost).toBeCloseTo(
      (2 * (solver?.tokens?.read ?? 0) + 10 * (solver?.tokens?.written ?? 0)) / 1e6,
      15,
    );
  });
});

describe('a step in which all episodes earn the same', () => {
  it('warns at once that nothing is learnt, with the reason', async () => {
    const { run, progress, log } = await fakeRun(root, exampleRecipe(), () => '\\boxed{07}<approve>');
    await trainTeam(run, progress, log);
    const warnings = (await log.events()).filter((event) => event.type === 'warning');
    expect(warnings).toMatchObject([{ code: 'nothing-learnt', step: 1 }]);
    expect(warnings[0]).toHaveProperty('message', expect.stringMatching(/no policy has learnt anything.*harder tasks/));
  });
});

describe('one step of a scripted team', () => {
  it.each([
    ['drmas', normalised(solverRewards), normalised(verifierRewards)],
    // Plain GRPO gives each turn the advantage of its episode.
    ...[normalised([1, 1, 0, -0.1])].map((e) => ['grpo', [e[0], e[1], e[1], e[2], e[3]], e]),
  ])('%s: every policy gets its own turns, token for token, with their advantages', async (type, solver, verifier) => {
    const recipe = exampleRecipe({}, [`advantage.type=${type}`]);
    const { run, progress, log, submitted, tokenizer } = await fakeRun(root, recipe, script);
    await trainTeam(run, progress, log);

    expect(submitted.map(({ policy }) => policy).sort()).toEqual(['solver', 'verifier']);
    const expectations = [
      ['solver', solverRead, solverSaid, solver, solverRequests, 0.5],
      ['verifier', verifierRead, verdicts, verifier, verifierRequests, 1],
    ] as [string, string[], string[], number[], number[], number][];
    for (const [policy, read, written, advantages, requests, temperature] of expectations) {
      const { samples, options } = submitted.find((call) => call.policy === policy) ?? {
        samples: [],
        options: undefined,
      };
      // The second draft continues the first and makes one sequence with it.
      expect(samples).toHaveLength(4);
      const turns = samples.flatMap(turnsOf);
      expect(turns.map(({ tokens }) => tokenizer.decode([...tokens]))).toEqual(
        read.map((prompt, i) => `${prompt}${written[i]}<end>`),
      );
      turns.forEach((sample, i) => {
        const prompt = tokenizer.encode(read[i] ?? '').length;
        const response = tokenizer.encode(`${written[i]}<end>`).length;
        const row = (fill: (t: number) => number) => [
          ...new Array<number>(prompt).fill(0),
          ...Array.from({ length: response }, (_, t) => fill(t)),
        ];
        expect([...sample.mask]).toEqual(row(() => 1));
        expect([...sample.advantages]).toEqual(row(() => Math.fround(advantages[i] ?? Number.NaN)));
        expect([...sample.behaviourLogprobs]).toEqual(row((t) => -(requests[i] ?? 0) - t / 8));
        expect(sample).toMatchObject({ agent: policy, temperature, policyVersion: 3 });
      });
      const tokens = written.reduce((sum, text) => sum + tokenizer.encode(`${text}<end>`).length, 0);
      expect(options).toEqual({ loss: recipe.loss, normalizer: tokens, keepRatios: true });
    }
  });

  it('a loss for each policy, and the log-probs that an importance correction needs', async () => {
    const importanceCorrection = { cap: 1.5 };
    const policies = { verifier: { loss: { type: 'gspo', importanceCorrection } } } as const;
    const recipe = exampleRecipe({ policies: policies, training: { steps: 1, tasksPerStep: 1, groupSize: 4 } }, [
      'policies.verifier.epochs=2',
      'policies.solver.loss={"type":"cispo","aggregate":"seq-mean-token-sum"}',
      'policies.solver.entropyCoefficient=0.25',
    ]);
    const forwarded: string[] = [];
    const { run, progress, log, submitted } = await fakeRun(root, recipe, script, {
      logprobs: async (policy, samples) => {
        forwarded.push(policy);
        return samples.map(({ tokens }) => new Float32Array(tokens.length).fill(-7));
      },
      forwardBackward: async (policy, samples, options) => {
        submitted.push({ policy, samples, options });
        const ratios = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
        const metrics = { tokens: 1, units: 1, ...ratios, entropy: 1 };
        const terms = policy === 'verifier' ? { importanceWeight: submitted.length / 4, importanceBeyond: 0 } : {};
        return { loss: 0.5, gradientNorm: 1, metrics: { ...metrics, ...terms }, tokens: 1 };
      },
    });
    await trainTeam(run, progress, log);
    expect(forwarded).toEqual(['verifier']); // once, before both epochs
    const kept = { keepRatios: true }; // the recipe keeps its episodes
    const [solver] = submitted.filter(({ policy }) => policy === 'solver');
    expect(solver?.options).toEqual({
      ...kept,
      loss: recipe.policies.solver?.loss,
      normalizer: 5,
      entropyCoefficient: 0.25,
    });
    expect(solver?.samples.every((sample) => sample.proximalLogprobs === undefined)).toBe(true);
    const verifier = submitted.filter(({ policy }) => policy === 'verifier');
    expect(verifier).toHaveLength(2);
    for (const { samples, options } of verifier) {
      expect(options).toEqual({ ...kept, loss: recipe.policies.verifier?.loss, normalizer: 4 });
      for (const { proximalLogprobs, tokens } of samples)
        expect([...(proximalLogprobs ?? [])]).toEqual(new Array(tokens.length).fill(-7));
    }
    const step = (await log.events()).find((event): event is Extract<typeof event, Step> => event.type === 'step');
    expect(step?.agents.solver).not.toHaveProperty('importanceWeight');
    const weights = submitted.flatMap(({ policy }, i) => (policy === 'verifier' ? [(i + 1) / 4] : []));
    expect(step?.agents.verifier).toMatchObject({ importanceWeight: mean(weights), importanceBeyond: 0 });
  });

  it('a policy for all: the gradient comes agent by agent, divided by the tokens of both', async () => {
    const { run, progress, log, submitted, steps, tokenizer } = await fakeRun(
      root,
      exampleRecipe({ assign: 'shared' }),
      script,
    );
    await trainTeam(run, progress, log);
    const tokens = [...solverSaid, ...verdicts].reduce((sum, text) => sum + tokenizer.encode(text).length + 1, 0);
    expect(submitted.map(({ policy, options }) => [policy, options.normalizer])).toEqual([
      ['shared', tokens],
      ['shared', tokens],
    ]);
    expect(submitted.map(({ samples }) => samples.map(({ agent }) => agent))).toEqual([
      new Array(4).fill('solver'),
      new Array(4).fill('verifier'),
    ]);
    expect(steps).toHaveLength(1);
    const step = (await log.events()).find((event): event is Extract<typeof event, Step> => event.type === 'step');
    expect(step?.agents).toMatchObject({
      solver: { turns: 5, gradientNorm: 1, invalid: 0.2 },
      verifier: { turns: 4, gradientNorm: 1, invalid: 0.25 },
    });
    expect(step?.agents.solver?.rewardMean).toBeCloseTo(mean(solverRewards), 12);
    expect(step?.agents.verifier?.rewardStd).toBeCloseTo(standardDeviation(verifierRewards), 12);
    expect(step?.reward?.mean).toBe(0.5);
    expect(step?.groups).toEqual({ allRight: 0, allWrong: 0, mixed: 1, penaltyOnly: 0 });
  });

  it('mini-batches: each chain of turns once an epoch, divided by the tokens of its own mini-batch', async () => {
    const settings = { epochs: 2, miniBatches: 3, warmupSteps: 0 };
    const recipe = exampleRecipe({ policies: { solver: settings } });
    const { run, progress, log, submitted, steps } = await fakeRun(root, recipe, script);
    await trainTeam(run, progress, log);
    const ofSolver = submitted.filter(({ policy }) => policy === 'solver');
    expect(ofSolver.map(({ samples }) => samples.length)).toEqual([2, 1, 1, 2, 1, 1]);
    expect(steps.filter(({ policy }) => policy === 'solver')).toHaveLength(6);
    const written = ({ mask }: { mask: Uint8Array }) => mask.reduce((sum, one) => sum + one, 0);
    for (const { samples, options } of ofSolver) {
      expect(options.normalizer).toBe(samples.reduce((sum, sample) => sum + written(sample), 0));
    }
    for (const epoch of [ofSolver.slice(0, 3), ofSolver.slice(3)]) {
      expect(new Set(epoch.flatMap(({ samples }) => samples)).size).toBe(4);
      expect(epoch.flatMap(({ samples }) => samples.flatMap(turnsOf))).toHaveLength(5);
    }
  });

  it('the learning rate rises over the first updates', async () => {
    const settings = { warmupSteps: 4, miniBatches: 2, optimizer: { learningRate: 1 } };
    const recipe = exampleRecipe({ policies: { verifier: settings } }, ['training.steps=3']);
    const { run, progress, log, steps } = await fakeRun(root, recipe, script);
    await trainTeam(run, progress, log);
    const ofVerifier = steps.filter(({ policy }) => policy === 'verifier');
    expect(ofVerifier.map(({ settings }) => settings.optimizer.learningRate)).toEqual([0.25, 0.5, 0.75, 1, 1, 1]);
  });

  it('a spike in one of several mini-batches is skipped and recorded', async () => {
    const recipe = exampleRecipe({ policies: { solver: { miniBatches: 3 } } }, ['training.spike.action=skip']);
    const norms = [1, 7, 2];
    const { run, progress, log } = await fakeRun(root, recipe, script, {
      optimStep: async (policy, { skipAboveNorm = Number.POSITIVE_INFINITY }) => {
        const norm = policy === 'solver' ? (norms.shift() ?? 1) : 1;
        return norm <= skipAboveNorm ? { applied: true, norm } : { applied: false, why: 'above-limit', norm };
      },
    });
    const watch = new StabilityWatch(run, { norms: { solver: [2, 2, 2, 2, 2] }, dropped: {} });
    await trainTeam(run, { ...progress, watch }, log);
    const dropped = (await log.events()).filter(({ type }) => type === 'skipped' || type === 'spike');
    expect(dropped).toMatchObject([{ type: 'skipped', policy: 'solver', gradientNorm: 7, median: 2, action: 'skip' }]);
  });

  it('a backend that fails ends the run with its error', async () => {
    const gone = async () => Promise.reject(new BackendError('gone'));
    const { run, progress, log } = await fakeRun(root, exampleRecipe(), script, {
      forwardBackward: gone,
      optimStep: gone,
    });
    await expect(trainTeam(run, progress, log)).rejects.toThrow('gone');
  });
});

describe('failed episodes', () => {
  /** The solver's second draft makes the team's code fail; the fourth episode's draft is too long for its context. */
  const failing = (everything: 'alike' | 'in its own way' | undefined) => {
    const team = solverVerifier({ maxLoops: 2, solver: { system: '<solver>' }, verifier: { system: '<verifier>' } });
    let calls = 0;
    const play: typeof team.play = (context) => {
      const { verifier } = context.agents;
      const failingVerifier = async (...[input]: Parameters<typeof verifier>) => {
        const text = JSON.stringify(input);
        // An error of this agent.
        if (everything === 'in its own way' && calls++ % 2 === 0) return verifier(input, { envStep: -1 });
        if (everything !== undefined || text.includes('1=1')) throw new Error('no verdict today');
        return verifier(text.includes('2=2') ? [{ role: 'user', content: '+'.repeat(60) }] : input);
      };
      return team.play({
        ...context,
        agents: { ...context.agents, verifier: Object.assign(failingVerifier, { ...verifier }) },
      });
    };
    return { ...team, play };
  };
  const trained = async (rule: string, everything?: 'alike' | 'in its own way') => {
    const recipe = exampleRecipe({ team: failing(everything) }, [
      `training.failedEpisodes=${rule}`,
      'training.steps=2',
    ]);
    const { run, progress, log, submitted, steps } = await fakeRun(root, recipe, script);
    const ended = await trainTeam(run, progress, log).catch((error: unknown) => error);
    const events = await log.events();
    const failures = events.filter(
      (event): event is Extract<typeof event, EpisodeFailed> => event.type === 'episode.failed',
    );
    const episodes = await readEpisodes(nodeFiles, log.stepEpisodesPath(1));
    return { ended, events, failures: failures.filter(({ step }) => step === 1), episodes, submitted, steps };
  };

  it.each(['exclude', 'zero'])('%s: are recorded with their reasons, and handled by the rule', async (rule) => {
    const { failures, episodes, submitted } = await trained(rule);
    expect(failures).toMatchObject([
      { task: 'sum', episode: 1, reason: 'error', message: 'no verdict today', action: rule },
      { task: 'sum', episode: 2, reason: 'overlong', action: 'zero' }, // by the agents' own doing
    ]);
    expect(episodes.map(({ failure }) => failure?.reason)).toEqual([undefined, 'error', 'overlong', undefined]);
    expect(episodes.map(({ turns }) => turns.length)).toEqual([2, 1, 1, 2]);
    expect(episodes.map(({ score }) => score.team)).toEqual([1, 0, 0, 0]);
    const advantages = episodes.map(({ turns }) => turns[0]?.advantage);
    const rewards = rule === 'zero' ? [1, 0, 0, -0.1] : [1, undefined, 0, -0.1];
    const normalisedRewards = normalised(rewards.filter((reward) => reward !== undefined));
    expect(advantages).toEqual(rewards.map((reward) => (reward === undefined ? undefined : normalisedRewards.shift())));
    const learnt = submitted.find(({ policy }) => policy === 'solver')?.samples ?? [];
    expect(learnt.map(({ behaviourLogprobs, mask }) => -(behaviourLogprobs[mask.indexOf(1)] ?? 0))).toEqual(
      rule === 'zero' ? [1, 2, 3, 4] : [1, 3, 4],
    );
  });

  it('a step in which all of them fail for different reasons makes no update, and the run continues', async () => {
    const { ended, events, failures, episodes, steps } = await trained('exclude', 'in its own way');
    expect(ended).toBeUndefined();
    expect(failures).toHaveLength(4);
    expect(new Set(episodes.map(({ failure }) => failure?.agent))).toEqual(new Set([undefined, 'verifier']));
    expect(steps).toEqual([]);
    expect(events.filter(({ type }) => type === 'step')).toMatchObject([
      { step: 1, agents: {}, policies: {}, reward: { mean: 0 } },
      { step: 2, agents: {}, policies: {} },
    ]);
  });

  it('a step in which all of them fail in the same way ends the run, with the place in the code', async () => {
    const { ended, events, failures, episodes, steps } = await trained('zero', 'alike');
    expect(ended).toBeInstanceOf(TrainingError);
    expect(String(ended)).toMatch(
      /every episode of step 1 failed alike: \(error\) no verdict today\n.*train\.test\.ts:\d+/,
    );
    expect(failures.map(({ stack }) => /train\.test\.ts:\d+:\d+/.test(stack ?? ''))).toEqual([true, true, true, true]);
    expect(episodes.map(({ failure }) => failure?.message)).toEqual(new Array(4).fill('no verdict today'));
    expect([steps, events.filter(({ type }) => type === 'step')]).toEqual([[], []]);
  });
});

it('the heart stays short', () => {
  const lines = readFileSync(join(import.meta.dirname, 'train.ts'), 'utf8').split('\n').length;
  expect(lines).toBeLessThanOrEqual(100);
});

it('writes the episodes of every N-th step', async () => {
  const recipe = exampleRecipe({}, ['training.steps=5', 'training.keepEpisodes=2']);
  const { run, progress, log } = await fakeRun(root, recipe, script);
  await trainTeam(run, progress, log);
  const names = await readdir(join(log.path, 'episodes'));
  expect(names.filter((name) => name.startsWith('step-'))).toEqual(['step-000002.jsonl', 'step-000004.jsonl']);
});
