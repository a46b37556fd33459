/** Each number of a recipe changes what is learnt, under each estimator and each loss, or is refused. */

import { RecipeError } from '@drmas/engine/errors';
import { lossNamed, policyLoss } from '@drmas/engine/loss';
import { optimizerTypes, tinyDecoder } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { defineEstimator } from '../../src/method/advantage/define-estimator.js';
import { TurnBatch } from '../../src/method/advantage/turn-batch.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import { negativeRewards, scaledParts, unheardTeam } from '../../src/method/training/stability/step-warnings.js';
import type { Learnt } from '../../src/method/training/update/update-policies.js';
import { standard } from '../../src/runs/composition/standard.js';
import { weakSettings } from '../../src/runs/run/checks/weak-settings.js';
import { choiceRecipe, game, learnSteps, type PlayedAndLearnt, type Round } from '../support/choice-run.js';
import { numericSettings, type Setting } from '../support/recipe-settings.js';

/** Settings that cannot change what a table of choices learns in a few steps, each with the reason. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^(seed|training\.steps)$/, 'tests of reproducibility change them'],
  [/^(warmStart|evaluation|gateway|rollout|backend|sampler)\./, 'no part of a step that learns'],
  [/\.(model|agentAdapters|backend|sampler)\./, 'a table is its own backend, and has no adapters'],
  [/^policies\.first\.loss\./, 'the same schema as `loss`'],
  [/\.second\./, 'the same schema as for the first'],
  [/\.price\./, 'reported, and no part of the reward'],
  [/\.(maxTokens|promptLimit\.tokens)$/, 'a table reads and writes one token'],
  [/^agents\.first\.evaluationSampling\./, 'no part of a step that learns'],
  [/^training\.(stopWhen|spike)\./, 'rules about whole runs: stop-rules.test.ts, stability-watch.test.ts'],
  [
    /^training\.(checkpointEvery|keepCheckpoints|keepEpisodes|logprobGap|measureInflation)$/,
    'written or measured only',
  ],
  [/^training\.(rewardRetries|episodeTimeoutMs|concurrency|maxOutcomeBytes)$/, 'limits that the game stays below'],
  [/^advantage\.gamma advantage\.type=reinforce/, 'discounts the later tokens of a turn, and a table writes one token'],
];

/** Settings besides its own that a setting needs to have an effect. */
const needed: readonly (readonly [RegExp, ...(readonly string[])])[] = [
  [/advantage\.type=partition/, 'advantage.score=turn', 'advantage.mean=agent', 'advantage.spread=agent'],
  [/\.critic\./, 'advantage.type=gae'],
  [/advantage\.type=rejection/, 'advantage.above=0.3'],
  [/(epsilon|minimumSpread) advantage\.type=(gigpo|advantage-alignment)/, 'advantage.spread=group'],
  [/^loss\./, 'policies.first.epochs=4', 'policies.second.epochs=4'],
  [/^training\.curriculum\./, 'training.curriculum.by=level'],
  [/^training\.curriculum\.groupSizes/, 'training.groupSize=16'],
  [/\.controller\./, 'policies.first.kl.coefficient=1', 'policies.first.epochs=4'],
  [/kl\.controller\.horizon/, 'policies.first.kl.controller.target=0.001'],
  [/\.schedule\./, 'policies.first.warmupSteps=0'],
  [/critic\.schedule\./, 'policies.first.critic.warmupSteps=0'],
  [/critic\.clip$/, 'policies.first.critic.epochs=8', 'policies.first.critic.optimizer.learningRate=0.1'],
  [/^advantage\.(gamma|lambda) advantage\.type=gae/, 'advantage.across=episode'],
  [/dualClip/, 'policies.first.optimizer.learningRate=50', 'policies.first.clipNorm=0', 'policies.first.epochs=20'],
  [/training\.filter\.keep/, 'training.tasksPerStep=4'],
  [/entropySchedule/, 'policies.first.entropyCoefficient=0.5'],
  [/refill/, 'training.filter.score=success', 'training.groupSize=2'],
  [/kl\.coefficient/, 'policies.first.epochs=4'],
];

const all = numericSettings({ first: 'first', second: 'second' });
const nameOf = ({ path, chosen }: Setting) => [path, ...chosen].join(' ');
const tried = all.filter((setting) => !elsewhere.some(([pattern]) => pattern.test(nameOf(setting))));

/** A critic reads what a decoder reads. This one writes the letters of the game. */
const letters = tinyDecoder({
  ...{ width: 16, layers: 1, heads: 1, feedForward: 16, context: 16 },
  tokenizer: {
    type: 'symbols',
    symbols: ['a', 'b', 'c', 'x', 'show', '<ask>', '<end>'],
    ...{ stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' },
  },
});
const withCritic = { model: letters, optimizer: { type: 'sgd', learningRate: 0.5 } } as const;

/** The policies of an estimator: tables of choices, or decoders if it needs a critic. */
const policiesFor = (overrides: readonly string[]) =>
  overrides.includes('advantage.type=gae') ? { policies: { first: withCritic, second: withCritic } } : {};

/** The samples of the policies with their log-probs, by step: they show the lessons of the steps before. */
async function learntBy(overrides: readonly string[]): Promise<string> {
  const training = { steps: 4, tasksPerStep: 2, groupSize: 4 };
  const steps = await learnSteps(choiceRecipe({ training, ...policiesFor(overrides) }, overrides));
  const turns = steps.flatMap(({ played }) =>
    played.all.flatMap(({ episodes }) => episodes.flatMap((one) => one.turns)),
  );
  return JSON.stringify(turns.map(({ response, logprobs }) => [response, logprobs]));
}

/** Whether two of the values teach differently; `refused` if the recipe refuses all of them but one. */
async function effectOf({ path, chosen, values }: Setting, more: readonly string[]): Promise<string> {
  const results = new Set<string>();
  let refused: RecipeError | undefined;
  let accepted = 0;
  for (const value of values) {
    try {
      results.add(await learntBy([...chosen, ...more, `${path}=${value}`]));
      accepted++;
    } catch (error) {
      if (!(error instanceof RecipeError)) throw error;
      refused = error;
    }
    if (results.size > 1) return 'effect';
  }
  return accepted < 2 && refused !== undefined ? `refused: ${refused.message}` : 'none';
}

const needs = (setting: Setting) =>
  needed.flatMap(([pattern, ...overrides]) => (pattern.test(nameOf(setting)) ? overrides : []));

it('the exceptions are of settings that exist', () => {
  const names = all.map(nameOf);
  for (const [pattern] of [...elsewhere, ...needed])
    expect(
      names.filter((name) => pattern.test(name)),
      String(pattern),
    ).not.toEqual([]);
});

describe('each number of a recipe changes what is learnt', () => {
  it.each(tried.map((setting) => ({ name: nameOf(setting), setting })))(
    '$name',
    { tags: 'verify' },
    async ({ setting }) => {
      expect(await effectOf(setting, needs(setting))).toBe('effect');
    },
  );
});

/** Settings about rewards and penalties, with two values of different sizes. */
const levers: readonly {
  readonly path: string;
  readonly values: readonly number[];
  readonly more?: readonly string[];
}[] = [
  { path: 'agents.first.invalidPenalty', values: [0.25, 2] },
  { path: 'agents.first.callCost', values: [0.01, 0.1] },
  { path: 'agents.first.tokenCost', values: [0.01, 0.1] },
  { path: 'agents.first.rewardWeight', values: [0.5, 2] },
  { path: 'training.partWeights.style', values: [0.5, 2] },
  ...['loss', 'reward', 'advantage'].map((place) => ({
    path: 'policies.first.kl.coefficient',
    values: [0.25, 20],
    more: [`policies.first.kl.in=${place}`, 'policies.first.kl.kind=k1', 'policies.first.epochs=2'],
  })),
];
const leverName = ({ path, more = [] }: (typeof levers)[number]) => [path, more[0] ?? ''].join(' ').trim();

/** The choice of an estimator, and the settings that it needs. */
function chosenEstimator(type: string): string[] {
  const chosen = [`advantage.type=${type}`];
  return [...chosen, ...needs({ path: '', chosen, values: [] })];
}

/** Each estimator, for each score of an episode that it can have. */
const estimators = standard.estimators.flatMap(({ type, schema }) => {
  const chosen = chosenEstimator(type);
  const scores = 'episodeScore' in schema.shape ? ['mean', 'outcome+penalties', 'outcome', 'first'] : [undefined];
  return scores.map((score) => ({
    name: [type, score].join(' ').trim(),
    chosen: score === undefined ? chosen : [...chosen, `advantage.episodeScore=${score}`],
  }));
});

/** The daily tests try one score of an episode under each estimator, the slow ones the other scores. */
const isDaily = ({ chosen }: (typeof estimators)[number]) =>
  !chosen.some((each) => /^advantage\.episodeScore=(?!mean$)/.test(each));
const daily = estimators.filter(isDaily);
const otherScores = estimators.filter((each) => !isDaily(each));

/** The effect of a lever; `warned` if its size has none and the run says so. */
async function effectOfLever(lever: (typeof levers)[number], chosen: readonly string[]): Promise<string> {
  const { path, values, more = [] } = lever;
  const effect = await effectOf({ path, chosen, values }, more);
  if (effect !== 'none') return effect;
  const warnings = weakSettings(choiceRecipe(policiesFor(chosen), [...chosen, ...more, `${path}=${values[0]}`]));
  const isTooLarge = /counts as much as success|have any size/; // the contrary of no effect
  return warnings.some(({ message }) => message.includes(path) && !isTooLarge.test(message)) ? 'warned' : 'none';
}

describe('penalties, costs, weights and a KL change what is learnt, or are refused, or cause a warning', () => {
  it.each(estimators)('under $name', { tags: 'verify' }, async ({ chosen }) => {
    for (const lever of levers)
      expect(`${leverName(lever)}: ${await effectOfLever(lever, chosen)}`).not.toMatch(/: none$/);
  });

  it.each([
    ['magrpo', 'policies.first.kl.coefficient policies.first.kl.in=reward', 'effect'],
    ['advantage-alignment', 'policies.first.kl.coefficient policies.first.kl.in=reward', 'effect'],
    ['grpo outcome', 'policies.first.kl.coefficient policies.first.kl.in=reward', /^refused: .*leaves out/],
    ['grpo-passk outcome', 'agents.first.invalidPenalty', /^refused: .*leaves penalties out/],
    ['gdpo', 'policies.first.kl.coefficient policies.first.kl.in=reward', /^refused: .*takes out the coefficient/],
    ['gdpo', 'training.partWeights.style', /^refused: .*advantage.weights/],
  ])('%s: %s', async (estimator, name, expected) => {
    const [chosen] = estimators.filter((each) => each.name === estimator).map((each) => each.chosen);
    const lever = levers.find((each) => leverName(each) === name);
    if (chosen === undefined || lever === undefined) throw new Error(`no ${estimator}, or no ${name}`);
    expect(await effectOfLever(lever, chosen)).toMatch(expected);
  });
});

describe('numbers beside the loss change what is learnt under each loss', () => {
  const beside = [
    ...levers.filter(({ path }) => !path.includes('partWeights')),
    { path: 'policies.first.entropyCoefficient', values: [0.25, 2] },
    { path: 'policies.first.clipNorm', values: [1e-3, 0.1] },
    { path: 'policies.first.epochs', values: [1, 3] },
    { path: 'policies.first.miniBatches', values: [1, 3] },
  ];
  const losses = standard.losses.map(({ type, weighsDemonstrations }) => ({
    type,
    chosen: [`loss.type=${type}`, ...(weighsDemonstrations === true ? chosenEstimator('rejection') : [])],
  }));

  it.each(losses)('$type', { tags: 'verify' }, async ({ chosen }) => {
    for (const lever of beside)
      expect(`${leverName(lever)}: ${await effectOfLever(lever, chosen)}`).not.toMatch(/: none$/);
  });

  it('cross-entropy refuses the KL in the advantage', async () => {
    const chosen = ['advantage.type=rejection', 'loss.type=cross-entropy'];
    const lever = levers.find((each) => leverName(each).endsWith('kl.in=advantage'));
    expect(lever && (await effectOfLever(lever, chosen))).toMatch(/^refused: .*some negative/);
  });
});

describe('a choice without effect beside the others', () => {
  it.each([
    ['epsilon', 'advantage.type=drmas', 'advantage.spread=none', 'advantage.epsilon=0.5'],
    ['minimumSpread', 'advantage.type=shrinkage', 'advantage.spread=none', 'advantage.minimumSpread=0.5'],
    ['gamma', 'advantage.type=gigpo', 'advantage.stepWeight=0', 'advantage.gamma=0.5'],
    ['episodeScore', 'advantage.type=rloo', 'advantage.byAgent=true', 'advantage.episodeScore=outcome'],
    ['shareStatistics', 'advantage.type=gdpo', 'advantage.shareStatistics=[["first","second"]]'],
  ])('is refused by name: %s', async (name, ...overrides) => {
    const refused = await learntBy(overrides).catch((error) => error);
    expect(String(refused.message)).toMatch(new RegExp(`^advantage\\.${name}: has no effect with the other`));
    expect(refused).toBeInstanceOf(RecipeError);
  });
});

describe('a setting without effect in the recipe', () => {
  const curriculum = 'training.curriculum.by=level';
  it.each([
    [
      'a target with one candidate',
      'curriculum.target: has no effect with one candidate',
      ['training.curriculum.target=0.2', 'training.curriculum.candidates=1'],
    ],
    [
      'a target when a step plays all tasks',
      'curriculum.target: has no effect, because a step plays all 8 tasks',
      ['training.curriculum.target=0.2', 'training.tasksPerStep=8'],
    ],
    [
      'a decay with one candidate',
      'curriculum.decay: has no effect with one candidate',
      ['training.curriculum.decay=0.2', 'training.curriculum.candidates=1'],
    ],
    [
      'a decay when a step plays all tasks',
      'curriculum.decay: has no effect, because a step plays all 8 tasks',
      ['training.curriculum.decay=0.2', 'training.tasksPerStep=8'],
    ],
    [
      'sizes of groups that leave nothing to divide',
      'curriculum.groupSizes.least: .*expected fewer',
      ['training.curriculum.groupSizes.least=4'],
    ],
    [
      'sizes of one group',
      'curriculum.groupSizes: .*tasksPerStep to be at least 2',
      ['training.curriculum.groupSizes.least=2', 'training.tasksPerStep=1'],
    ],
    [
      'a filter by variance of one group',
      'filter.type: .*tasksPerStep to be at least 2',
      ['training.filter.type=variance', 'training.tasksPerStep=1'],
    ],
    [
      'a refill when a step plays all tasks',
      'filter.refill: .*a step plays all 8',
      ['training.filter={"type":"equal-outcomes","refill":{"maxRounds":3}}', 'training.tasksPerStep=8'],
    ],
  ])('is refused: %s', async (_, message, overrides) => {
    const needed = overrides.some((each) => each.includes('curriculum')) ? [curriculum, ...overrides] : overrides;
    const refused = await learntBy(needed).catch((error) => error);
    expect(refused).toBeInstanceOf(RecipeError);
    expect(String(refused.message)).toMatch(new RegExp(`^training\\.${message}`));
  });

  const alone = ['training.groupSize=1', 'training.tasksPerStep=6'];
  const enough = 'one episode of a task is refused, warned about, or enough: $name';
  it.each(daily)(enough, oneEpisode);
  it.each(otherScores)(enough, { tags: 'verify' }, oneEpisode);

  async function oneEpisode({ name, chosen }: (typeof estimators)[number]): Promise<void> {
    const overrides = [...chosen, ...alone];
    const steps = await learnSteps(choiceRecipe(policiesFor(chosen), overrides)).catch((error) => error);
    const own = ['gae', 'rejection', 'reinforce++', 'remax', 'ema', 'counterfactual', 'drmas-batch'];
    if (steps instanceof RecipeError) {
      expect(steps.message).toMatch(
        /^training\.groupSize: .*compares the .*expected at least 2|^advantage\.\w+: has no effect/,
      );
      return;
    }
    const [warning] = weakSettings(choiceRecipe(policiesFor(chosen), overrides)).filter(({ message }) =>
      /groupSize is 1/.test(message),
    );
    expect(warning === undefined).toBe(own.includes(name.split(' ')[0] ?? ''));
    const learnt = (steps as { learnt: Learnt }[]).flatMap(({ learnt }) => learnt.advantages.turns);
    if (warning === undefined)
      expect(learnt.flatMap(({ advantage }) => advantage).some((each) => each !== 0)).toBe(true);
  }

  it('a choice that needs several episodes of a task is refused for one', async () => {
    const rejection = ['advantage.type=rejection', 'advantage.above=0.3', 'advantage.keep=best'];
    await expect(learntBy([...rejection, ...alone])).rejects.toThrow(/^advantage\.keep: has no effect on one episode/);
    await learntBy([...rejection, ...alone, 'training.groupSize=2']);
  });

  it.each(['grpo', 'drmas-episode', 'rloo'])('one episode of a task without a substitute is refused: %s', (type) =>
    expect(learntBy([`advantage.type=${type}`, 'advantage.singleton=zero', ...alone])).rejects.toThrow(
      /^training\.groupSize: .*one episode teaches nothing with advantage\.singleton=zero: expected at least 2/,
    ),
  );

  it('is warned about: a policy without a reward', () => {
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, overrides)).map(({ message }) => message.split(':')[0]);
    const message = "the policy 'first' learns from no reward, because agents.first.rewardWeight is 0";
    expect(said('agents.first.rewardWeight=0')).toEqual([message]);
    expect(said('agents.first.rewardWeight=0.1')).toEqual([]);
    const teacher = 'policies.first.kl={"in":"advantage","kind":"k1","coefficient":1}';
    expect(said('agents.first.rewardWeight=0', teacher)).toEqual([]);
  });

  const bonus = ['policies.first.entropyCoefficient=0.5'];
  const ofAllRewards = 'is warned about: a weight of all rewards of a policy under $type, $more';
  it.each(optimizerTypes.map((type) => ({ type, more: [] })))(ofAllRewards, weightOfRewards);
  it.each(optimizerTypes.map((type) => ({ type, more: bonus })))(ofAllRewards, { tags: 'verify' }, weightOfRewards);

  async function weightOfRewards({ type, more }: { type: string; more: readonly string[] }): Promise<void> {
    const overrides = (weight: number) => [
      ...['training.steps=5', `policies.first.optimizer={"type":"${type}","learningRate":0.05}`, ...more],
      `agents.first.rewardWeight=${weight}`,
    ];
    const logprobs = async (weight: number) =>
      (await learnSteps(choiceRecipe({}, overrides(weight)))).flatMap(({ played }) =>
        played.all.flatMap(({ episodes }) =>
          episodes.flatMap(({ turns }) => turns.flatMap(({ agent, logprobs }) => (agent === 'first' ? logprobs : []))),
        ),
      );
    const [one, less] = [await logprobs(1), await logprobs(0.25)];
    const hasEffect = one.some((each, i) => Math.abs(each - (less[i] ?? 0)) > 1e-3);
    const said = (...settings: string[]) =>
      weakSettings(choiceRecipe({}, settings)).filter(({ message }) => message.includes('size of gradients'));
    expect(said(...overrides(0.25)).length).toBe(hasEffect ? 0 : 1);
    expect(said(...overrides(1))).toEqual([]);
  }

  const ofAllParts = 'is warned about: one weight of all parts of the reward: $name';
  it.each(daily)(ofAllParts, oneWeight);
  it.each(otherScores)(ofAllParts, { tags: 'verify' }, oneWeight);

  async function oneWeight({ chosen }: (typeof estimators)[number]): Promise<void> {
    const team = game({
      reward: (rounds) => ({ correct: Number(rounds[0]?.first === 'a'), style: rounds.length / 4 }),
    });
    const learnt = async (weight: number) => {
      const path = chosen[0] === 'advantage.type=gdpo' ? 'advantage.weights' : 'training.partWeights';
      const weights = ['correct', 'style'].map((part) => `${path}.${part}=${weight}`);
      const recipe = choiceRecipe({ team, ...policiesFor(chosen) }, [...chosen, ...weights, 'training.steps=1']);
      const [{ played, learnt }] = (await learnSteps(recipe)) as [PlayedAndLearnt];
      const advantages = learnt.advantages.turns.flatMap(({ advantage }) => advantage);
      return { advantages, warned: scaledParts(recipe, played, learnt.advantages).length };
    };
    const one = await learnt(1).catch((error) => error);
    if (one instanceof RecipeError) return;
    const three = await learnt(3);
    const far = one.advantages.some((each: number, i: number) => Math.abs(each - (three.advantages[i] ?? 0)) > 1e-2);
    expect([one.warned, three.warned]).toEqual([0, far ? 0 : 1]);
  }

  it('is warned about: a filter that drops what a teacher says', async () => {
    const teacher = 'policies.first.kl={"in":"advantage","kind":"k1","coefficient":1}';
    const filter = 'training.filter.type=equal-outcomes';
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, overrides)).filter(({ message }) => /filter drops groups by their/.test(message));
    expect([said(teacher, filter).length, said(teacher).length, said(filter).length]).toEqual([1, 0, 0]);
    // Equal rewards: without the filter the teacher's advantages are not 0 once the policy has moved from it.
    const largest = async (...overrides: string[]) => {
      const moved = game({ reward: ([round]) => Number(played++ < 16 && round?.first === 'a') });
      let played = 0;
      const steps = await learnSteps(choiceRecipe({ team: moved }, [teacher, 'training.steps=4', ...overrides]));
      return Math.max(
        ...(steps.at(-1)?.learnt.advantages.turns ?? []).flatMap(({ advantage }) => advantage).map(Math.abs),
      );
    };
    expect(await largest()).toBeGreaterThan(0);
    expect(await largest(filter)).toBe(-Infinity);
  });

  it.each([
    ['agents.second.invalidPenalty', 'agents.second.invalidPenalty=0.5'],
    ['advantage.shareStatistics', 'advantage.shareStatistics=[["first","second"]]'],
    ['advantage.episodeAgents', 'advantage={"type":"hierarchical-grpo","episodeAgents":["second"]}'],
  ])('is warned about: what concerns only agents that learn, of a frozen one: %s', (path, override) => {
    const second = frozen({ complete: async () => ({ text: 'a' }) });
    const held = { assign: { first: 'first', second }, policies: { first: { model: letters } } };
    const said = (changes: object) => weakSettings(choiceRecipe(changes, [override])).map(({ message }) => message);
    expect(said(held)).toEqual([expect.stringContaining(`'second' is frozen, so ${path} changes nothing`)]);
    expect(said({})).toEqual([]);
  });

  it('is warned about: a KL that does not hold its policy near the reference', () => {
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, ['policies.first.kl.coefficient=1', ...overrides])).map(({ message }) => message);
    expect(said('policies.first.kl.kind=k1')[0]).toMatch(/'k1' is 0 in the loss, so policies\.first\.kl does not/);
    for (const other of ['kind=k3', 'kind=k2', 'in=reward']) expect(said(`policies.first.kl.${other}`)).toEqual([]);
    for (const kind of ['k2', 'k3', 'abs'])
      expect(said('policies.first.kl.in=reward', `policies.first.kl.kind=${kind}`)).toEqual([
        expect.stringContaining(`in the reward, '${kind}' punishes tokens that are too unlikely too`),
      ]);
  });

  it.each(
    standard.losses.flatMap(({ type }) => [
      { type, named: 'a KL in the advantage', chosen: ['policies.first.kl={"in":"advantage","coefficient":1}'] },
      {
        type,
        named: 'a KL in the reward of reinforce++',
        chosen: ['policies.first.kl={"in":"reward","coefficient":1}', 'advantage.type=reinforce++'],
      },
      { type, named: 'gae', chosen: ['advantage.type=gae'] },
      { type, named: 'a KL in the reward of drmas', chosen: ['policies.first.kl={"in":"reward","coefficient":1}'] },
      { type, named: 'reinforce++', chosen: ['advantage.type=reinforce++'] },
    ]),
  )('is warned about: single tokens under a loss that takes their mean: $type, $named', ({ type, named, chosen }) => {
    if (type === 'cross-entropy') return; // refused: these advantages are no weights
    const recipe = choiceRecipe(policiesFor(chosen), [...chosen, `loss.type=${type}`]);
    const said = weakSettings(recipe).filter(({ message }) => message.includes('takes the mean of their advantages'));
    // One response of two tokens with opposite advantages, on policy.
    const row = { logprobs: [[-1, -1]], behaviourLogprobs: [[-1, -1]], advantages: [[1, -1]], mask: [[1, 1]] };
    const [[slope = 0] = []] = policyLoss(row, lossNamed(recipe.loss, recipe.lists.ownLosses)).gradient;
    const apart = named !== 'reinforce++' && !named.endsWith('drmas');
    expect(said.length > 0).toBe(apart && slope === 0);
  });

  it.each([
    ['drmas', [], 1],
    ['grpo', [], 1],
    ['at-grpo', [], 1],
    ['drmas', ['advantage.spread=none'], 0],
    ['dr-grpo', [], 0],
    ['rloo', [], 0],
    ['shrinkage', [], 0],
    ['reinforce++-baseline', [], 0],
    ['gdpo', [], 0], // has a warning of its own
    ['drmas', ['training.filter={"type":"equal-outcomes","score":"success"}'], 0],
  ])('is warned about: a small cost beside a spread: %s %s', (type, more, count) => {
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, [`advantage.type=${type}`, ...more, ...overrides])).filter(({ message }) =>
        /a cost of any size counts as much as success/.test(message),
      ).length;
    expect([said('agents.first.tokenCost=1e-5'), said('agents.second.callCost=0.1'), said()]).toEqual([
      count,
      count,
      0,
    ]);
  });

  it.each(['advantage.restWeight=1', 'advantage.restWeight=0'])(
    'is warned about: costs that an estimator divides by their spread: %s',
    (rest) => {
      const said = (...overrides: string[]) =>
        weakSettings(choiceRecipe({}, ['advantage.type=gdpo', rest, ...overrides])).map(({ message }) => message);
      for (const cost of ['agents.first.callCost=0.1', 'agents.second.tokenCost=0.1'])
        expect(said(cost)).toEqual([expect.stringMatching(/sizes have almost no effect \(agents\..*Cost\)/)]);
      expect(said()).toEqual([]);
    },
  );

  it('is not warned about: costs under an own estimator that only weighs the parts of rewards', () => {
    const own = defineEstimator({
      type: 'own',
      schema: {},
      ...{ source: 'this test', formula: 'r', use: 'this test' },
      traits: { weighsParts: true },
      compute: ({ rewards }) => Float64Array.from(rewards),
    });
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe({ use: [own] }, ['advantage.type=own', ...overrides]));
    expect(said('agents.first.callCost=0.1')).toEqual(said());
  });

  it('is warned about: rewards below 0 under an estimator that divides by their mean', async () => {
    const below = { team: game({ reward: (rounds) => Number(rounds[0]?.first === 'a') - 0.5 }) };
    const said = async (type: string, changes: object = below) => {
      const recipe = choiceRecipe(changes, [`advantage.type=${type}`, 'training.steps=1']);
      const steps = await learnSteps(recipe);
      return steps.flatMap(({ played, learnt }) => negativeRewards(recipe, played, learnt.advantages)).length;
    };
    expect([await said('maxrl'), await said('maxrl', {}), await said('grpo')]).toEqual([1, 0, 0]);
  });

  it.each(estimators)(
    'is warned about: what makes advantages of any size: $name',
    { tags: 'verify' },
    async ({ chosen }) => {
      const lowered = [
        'agents.first.callCost=0.5',
        'agents.first.invalidPenalty=0.5',
        'policies.first.kl.coefficient=1',
      ];
      for (const [i, setting] of lowered.entries()) {
        const overrides = [...chosen, setting, ...(i === 2 ? ['policies.first.kl.in=reward'] : [])];
        const recipe = () => choiceRecipe(policiesFor(chosen), overrides);
        const refused = await learntBy(overrides).then(
          () => false,
          (error) => error instanceof RecipeError,
        );
        if (refused) continue;
        // A task whose four episodes earn 0.001 on average.
        const of = (reward: number, episode: number) => ({
          ...{
            task: 't',
            episode: `${episode}`,
            agent: 'first',
            turn: 0,
            envStep: 0,
            length: 1,
            values: [0],
            baseline: 0,
          },
          ...{ reward, outcome: reward, stepReward: reward, agentStepReward: reward, observation: 'o', chain: 0 },
        });
        const turns = [0.304, -0.1, -0.1, -0.1].map(of);
        const advantages = Array.from(recipe().estimator.compute(new TurnBatch(turns))).flat();
        const said = weakSettings(recipe()).some(({ message }) => message.includes('divides by the mean reward'));
        expect([setting, said]).toEqual([setting, advantages.some((each) => Math.abs(each) > 10)]);
      }
    },
  );

  it('is warned about: a bound of values in a single update of the critic', () => {
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe(policiesFor(['advantage.type=gae']), ['advantage.type=gae', ...overrides])).map(
        ({ message }) => message,
      );
    const clip = 'policies.first.critic.clip=0.1';
    expect(said(clip)[0]).toMatch(
      /one update of the critic of 'first', .*policies\.first\.critic\.clip changes nothing/,
    );
    expect([...said(), ...said(clip, 'policies.first.critic.miniBatches=2')]).toEqual([]);
  });

  it('is warned about: a critic that the estimator does not need', () => {
    const said = (...overrides: string[]) =>
      weakSettings(choiceRecipe(policiesFor(overrides), overrides)).filter(({ message }) => /critic/.test(message));
    expect(said('policies.first.critic.epochs=2')[0]?.message).toMatch(/policies\.first\.critic has no effect/);
    expect(said('advantage.type=gae', 'policies.first.critic.epochs=2')).toEqual([]);
  });

  const corrected = 'loss.importanceCorrection={"cap":3}';
  it.each([
    ['clip', ['loss.clip=0.1'], /all ratios are 1, and loss\.clip changes nothing/],
    [
      'clipHigh of one policy',
      ['policies.first.loss={"type":"ppo-clip","clipHigh":0.5}'],
      /policies\.first\.loss\.clipHigh/,
    ],
    ['an importance correction', [corrected], /loss\.importanceCorrection changes nothing/],
    ['a cap below 1', ['loss.importanceCorrection={"cap":0.5}'], undefined],
    ['an aggregation', ['loss.aggregate=episode-mean'], undefined],
    ['several updates', ['loss.clip=0.1', 'policies.first.epochs=2', 'policies.second.miniBatches=2'], undefined],
    ['rollouts ahead', [corrected, 'rollout.staleness=1'], undefined],
    ['a loss that reads the batch', ['loss={"type":"kto"}'], undefined],
  ])('is warned about: a bound of ratios that are all 1: %s', (_, overrides, message) => {
    const said = weakSettings(choiceRecipe({}, overrides)).filter((each) => each.message.includes('ratios are 1'));
    if (message === undefined) expect(said).toEqual([]);
    else expect(said[0]?.message).toMatch(message);
  });

  it('is warned about: a correction for the weights that played, which are those that learn', async () => {
    const several = ['policies.first.epochs=2', 'policies.second.miniBatches=2'];
    const warned = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, overrides)).filter(({ message }) => /played are those.*Correction/.test(message));
    expect(warned(corrected, ...several)).toHaveLength(2);
    expect(warned(...several)).toEqual([]);
    expect(warned('loss.importanceCorrection={"cap":0.5}', ...several)).toEqual([]);
    expect(warned(corrected, 'rollout.staleness=1', ...several)).toEqual([]);
    const learnt = async (...overrides: string[]) =>
      (await learnSteps(choiceRecipe({}, overrides))).map(({ event }) => [event.reward, event.policies]);
    expect(await learnt(corrected, ...several)).toEqual(await learnt(...several));
  });

  it.each([
    ['a temperature of 0', ['evaluation.sampling.temperature=0'], true],
    ['one candidate for each token', ['agents.first.sampling.topK=1', 'agents.second.evaluationSampling.topK=1'], true],
    ['one agent that samples', ['agents.first.sampling.temperature=0'], false],
    ['a single episode', ['evaluation.sampling.temperature=0', 'evaluation.samples=1'], false],
    [
      'single episodes but in between',
      ['evaluation.sampling.temperature=0', 'evaluation.samples=1', 'evaluation.samplesDuring=3'],
      true,
    ],
  ])('is warned about: several samples in evaluations with %s', (_, overrides, warned) => {
    const messages = weakSettings(choiceRecipe({}, overrides)).map(({ message }) => message);
    expect(messages.some((message) => /^evaluation\.samples(During)? is/.test(message))).toBe(warned);
  });
});

describe('costs and weights of parts, if each agent has a reward of its own, cause a warning or change what is learnt', () => {
  const worth = (shown: Round['first']) => 'xcba'.indexOf(shown ?? 'x') / 4;
  const own = game({
    reward: (rounds) => ({
      team: { correct: Number(rounds[0]?.first === 'a'), style: worth(rounds[0]?.second) },
      agents: { first: worth(rounds[0]?.first), second: worth(rounds[0]?.second) },
    }),
  });
  const training = { steps: 3, tasksPerStep: 2, groupSize: 4 };
  const settings = ['agents.first.callCost', 'agents.second.tokenCost', 'training.partWeights.style'];

  /** Estimators that compare the team's reward with a bound, so that not each change of it shows. */
  const compares = /type=(rejection|maxrl) .*episodeScore=outcome/;

  it.each(estimators)('under $name', { tags: 'verify' }, async ({ chosen }) => {
    for (const path of settings) {
      const runOf = async (value: number) => {
        const recipe = choiceRecipe({ team: own, training }, [...chosen, `${path}=${value}`]);
        const steps = await learnSteps(recipe);
        const warned = steps.flatMap(({ played, learnt }) => unheardTeam(recipe, played, learnt.advantages));
        return {
          warned: warned.map(({ message }) => message),
          last: JSON.stringify(steps.at(-1)?.learnt.advantages.turns),
        };
      };
      const one = await runOf(0.05).catch((error) => error);
      if (one instanceof RecipeError) continue;
      const other = await runOf(0.5);
      const hasEffect = stripped(one.last) !== stripped(other.last);
      if (!hasEffect && compares.test(chosen.join(' '))) continue;
      expect(
        one.warned.filter((message: string) => message.includes(path)),
        path,
      ).toHaveLength(hasEffect ? 0 : 1);
    }
  });

  /** The advantages alone: episodes report the cost. */
  const stripped = (turns: string) =>
    JSON.stringify(JSON.parse(turns).map(({ advantage }: { advantage: unknown }) => advantage));
});
