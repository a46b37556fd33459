import type { AgentStep } from '@drmas/engine/events';
import type { Episode } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { step as stepEvent } from '../../../../test/fixtures/run-events.js';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import type { Recipe } from '../../recipe/recipe.js';
import { estimatorHints, numberedTools, uncountedTokens } from './step-warnings.js';
import { Symptoms } from './symptoms.js';

const hintsOf = (
  { advantage, training, agents }: Pick<Recipe, 'advantage' | 'training' | 'agents'>,
  step: number,
  advantages: Parameters<typeof estimatorHints>[2],
) => estimatorHints({ estimator: openEstimator(advantage), training, agents }, step, advantages);

const calls = {
  solver: { share: 1, success: 0.8, overall: 0.8, alone: 0 },
  fixer: { share: 0.25, success: 0.1, overall: 0.8, alone: 0.2 },
};
const diagnosed = { inflation: { solver: 1, fixer: 3.2 }, ownShare: {}, calls };

describe('the tools of an agent', () => {
  const played = (names: readonly (readonly string[])[], step = 1) => {
    const episodes = names.map((tools) => ({
      turns: [{ agent: 'solver', tools: tools.map((name) => ({ name })) }, { agent: 'checker' }],
    }));
    return { step, all: [{ task: { id: 't', data: {} }, episodes }] } as never;
  };
  const numbers = [1, 2, 3, 4];

  it('are named if each episode numbers them anew, in the first step', () => {
    const anew = numbers.map((n) => ['look', `extract-${n}`]);
    expect(numberedTools(played(anew))).toEqual([
      expect.objectContaining({
        agent: 'solver',
        message: expect.stringMatching(/'extract-1' and 'extract-2'.*give the schema a title/),
      }),
    ]);
    expect(numberedTools(played(anew, 2))).toEqual([]);
  });

  it.each([
    ['are the same', numbers.map(() => ['look', 'extract-1'])],
    ['have different names', numbers.map((n) => ['abcd'.slice(0, n)])],
    ['have numbers that come again', numbers.map((n) => [`look-${n % 2}`, 'look-2'])],
    ['are all numbered in the same way', numbers.map(() => ['t1', 't2', 't3', 't4', 't5'])],
    ['are of too few episodes', numbers.slice(1).map((n) => [`extract-${n}`])],
    ['do not exist', numbers.map(() => [])],
  ])('are not named if they %s', (_, names) => {
    expect(numberedTools(played(names))).toEqual([]);
  });
});

describe('an endpoint that reports no numbers of tokens', () => {
  const turnOf = (agent: string, endpoint: object) => ({ agent, endpoint, response: [] });
  const played = (endpoint: object, step = 1) => {
    const turns = [turnOf('judge', endpoint), { agent: 'solver', response: [1] }];
    return { step, all: [{ task: { id: 't', data: {} }, episodes: [{ turns }] }] } as never;
  };
  const run = (tokenCost: number, stopWhen?: object, prices: object = {}) =>
    ({ agents: { solver: {}, judge: { tokenCost } }, training: { stopWhen }, prices }) as never;
  const known = { promptTokens: 3, responseTokens: 2 };

  it('is named with the settings that count them, in the first step', () => {
    const price = { judge: { read: 1, write: 1, train: 0 } };
    expect(uncountedTokens(run(0.1, { tokens: 100, cost: 1 }, price), played({ promptTokens: 3 }))).toEqual([
      expect.objectContaining({
        agent: 'judge',
        message: expect.stringMatching(
          /count as 0 for agents\.judge\.tokenCost, its price, training\.stopWhen\.cost, training\.stopWhen\.tokens$/,
        ),
      }),
    ]);
    expect(uncountedTokens(run(0.1), played({}, 2))).toEqual([]);
  });

  it('is not named if it reports them, or no setting counts them', () => {
    expect(uncountedTokens(run(0.1), played(known))).toEqual([]);
    expect(uncountedTokens(run(0, { minutes: 1 }), played({}))).toEqual([]);
  });
});

it.each(['grpo', 'grpo-turn', 'dr-grpo', 'drmas-std'] as const)(
  '%s: a warning at step 1, for the agent that is inflated',
  (type) => {
    const recipe = tinyRecipe({ advantage: { type } });
    expect(hintsOf(recipe, 1, diagnosed)).toEqual([
      {
        type: 'warning',
        code: 'inflation',
        step: 1,
        agent: 'fixer',
        message: expect.stringMatching(/^fixer is called/),
      },
    ]);
    expect(hintsOf(recipe, 2, diagnosed)).toEqual([]);
    expect(hintsOf(recipe, 1, { ...diagnosed, inflation: { solver: 1, fixer: 1.9 } })).toEqual([]);
    const drowned = hintsOf(recipe, 1, { inflation: { solver: 1, fixer: 1 }, ownShare: { fixer: 0.49 }, calls });
    expect(drowned).toMatchObject([
      { agent: 'fixer', message: expect.stringMatching(/49 % of its learning signal comes from its own rewards/) },
    ]);
  },
);

it('there is none for an agent of weight 0, which learns from no reward', () => {
  const { training } = tinyRecipe();
  const agents = (rewardWeight: number) => ({ fixer: { rewardWeight } }) as unknown as Recipe['agents'];
  const often = { ...diagnosed, calls: { fixer: { ...calls.fixer, alone: 0.3 } } };
  for (const advantage of [{ type: 'grpo' }, { type: 'drmas', singleton: 'zero' }] as Recipe['advantage'][]) {
    expect(hintsOf({ advantage, training, agents: agents(1) }, 1, often)).toHaveLength(1);
    expect(hintsOf({ advantage, training, agents: agents(0) }, 1, often)).toEqual([]);
  }
});

it('there is none if every agent is measured by its own turns', () => {
  expect(hintsOf(tinyRecipe({ advantage: { type: 'drmas' } }), 1, diagnosed)).toEqual([]);
  expect(hintsOf(tinyRecipe({ advantage: { type: 'drmas-mean' } }), 1, diagnosed)).toEqual([]);
});

it('there is one for an agent that often acts once, if groups of one are skipped', () => {
  const often = { ...diagnosed, calls: { ...calls, fixer: { ...calls.fixer, alone: 0.3 } } };
  const hints = (advantage: Parameters<typeof tinyRecipe>[0]) => hintsOf(tinyRecipe(advantage), 1, often);
  for (const type of ['drmas', 'drmas-mean', 'drmas-episode'] as const)
    expect(hints({ advantage: { type, singleton: 'zero' } })).toEqual([
      {
        type: 'warning',
        code: 'alone',
        step: 1,
        agent: 'fixer',
        message: expect.stringMatching(/^In 30 % of the tasks/),
      },
    ]);
  expect(hints({ advantage: { type: 'drmas' } })).toEqual([]);
  expect(hints({ advantage: { type: 'drmas-batch' } })).toEqual([]);
  expect(hints({ advantage: { type: 'gae' } })).toEqual([]);
});

type Agent = Omit<Partial<AgentStep>, 'health' | 'entropy'> & {
  readonly health?: Partial<AgentStep['health']>;
  readonly entropy?: number | undefined;
};

/** The codes of the warnings in a run of such steps, with the step at which each begins. */
function raised(steps: readonly Agent[], symptoms = new Symptoms()): string[] {
  const usual = stepEvent(1).agents.solver as AgentStep;
  return steps.flatMap((changes, i) => {
    const solver = { ...usual, ...changes, health: { ...usual.health, ...changes.health } } as AgentStep;
    return symptoms.judge({ step: i + 1, agents: { solver } }).map(({ code, step }) => `${code} ${step}`);
  });
}
const times = (count: number, agent: Agent) => Array.from({ length: count }, () => agent);
const healthy: Agent = { rewardMean: 0.2, rewardStd: 0.4, entropy: 1, responseTokens: 40 };
const better = { rewardMean: 0.6 };

describe('a symptom', () => {
  it.each<[string, Agent]>([
    ['entropy-collapse', { entropy: 0.05 }],
    ['length-collapse', { responseTokens: 10 }],
    ['echo-trap', { health: { groupSpread: 0.1, duplicates: 0.7 } }],
    ['rewarded-invalid', { invalid: 0.2, health: { rewardedInvalid: 0.5 } }],
  ])('%s shows once the latest five steps differ from the first five, and is reported once', (code, ill) => {
    expect(raised(times(60, healthy))).toEqual([]);
    expect(raised([...times(5, healthy), ...times(20, { ...healthy, ...ill })])).toEqual([`${code} 10`]);
  });

  it('does not take an entropy that was not measured for one that fell', () => {
    const still = { ...healthy, entropy: undefined };
    expect(raised([...times(6, healthy), ...times(20, still)])).toEqual([]);
    expect(raised([...times(6, still), ...times(20, healthy)])).toEqual([]);
    expect(raised([...times(6, healthy), ...times(20, still), ...times(5, { ...healthy, entropy: 0.05 })])).toEqual([
      'entropy-collapse 27',
    ]);
  });

  it('does not occur in an agent that does not train', () => {
    const quiet: Agent = { ...healthy, responseTokens: 1, frozen: true };
    expect(raised([...times(5, { ...healthy, frozen: true }), ...times(20, quiet)])).toEqual([]);
  });

  it('is reported again if it occurs again', () => {
    const ill = { ...healthy, entropy: 0.05 };
    const steps = [...times(5, healthy), ...times(5, ill), ...times(5, healthy), ...times(5, ill)];
    expect(raised(steps)).toEqual(['entropy-collapse 10', 'entropy-collapse 20']);
  });

  it.each<[string, Agent]>([
    ['entropy', { entropy: 0.01 }],
    ['length', { responseTokens: 3 }],
    ['agreement', { health: { groupSpread: 0, duplicates: 1 } }],
  ])('does not occur if %s fell but the reward rose', (_, changed) => {
    expect(raised([...times(5, healthy), ...times(20, { ...healthy, ...changed, ...better })])).toEqual([]);
  });

  it('does not occur if more episodes succeed, though each failure has more turns than a success', () => {
    const turnsOf = (count: number) => Array.from({ length: count }, () => ({ agent: 'solver', penalty: 0 }));
    /** Ten episodes; a failure takes eight turns. */
    const played = (successes: number, turns: number) =>
      Array.from({ length: 10 }, (_, i) => ({
        turns: turnsOf(i < successes ? turns : 8),
        score: { team: Number(i < successes), agents: {}, parts: {} },
      })) as unknown as Episode[];
    const judged = (step: number, agent: Agent, episodes: readonly Episode[]) => {
      const rewards = episodes.flatMap(({ turns, score }) => turns.map(() => score.team));
      const rewardMean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
      return { step, agents: { solver: { ...agent, rewardMean, rewardStd: 0.5 } as AgentStep }, episodes };
    };
    const warned = (after: readonly Episode[]) => {
      const symptoms = new Symptoms();
      return [...times(5, healthy), ...times(5, { ...healthy, entropy: 0.05 })].flatMap((agent, i) => {
        const { episodes, ...step } = judged(i + 1, agent, i < 5 ? played(5, 8) : after);
        return symptoms.judge(step, episodes).map(({ code }) => code);
      });
    };
    expect(warned(played(8, 1))).toEqual([]); // 8 of 24 turns succeed, 40 of 80 before
    expect(warned(played(5, 1))).toEqual(['entropy-collapse']);
  });

  it('of rewarded garbage occurs with any reward', () => {
    const hacked = { ...healthy, ...better, invalid: 0.2, health: { rewardedInvalid: 0.5 } };
    expect(raised([...times(5, healthy), ...times(5, hacked)])).toEqual(['rewarded-invalid 10']);
  });

  it('is found at the same step by a watch that was saved and read in between', () => {
    const steps = [...times(5, healthy), ...times(20, { ...healthy, entropy: 0.05 })];
    for (let cut = 0; cut < 12; cut++) {
      const before = new Symptoms();
      const first = raised(steps.slice(0, cut), before);
      const after = new Symptoms(JSON.parse(JSON.stringify(before.state)));
      expect([...first, ...raised(steps.slice(cut), after)]).toHaveLength(1);
    }
  });
});
