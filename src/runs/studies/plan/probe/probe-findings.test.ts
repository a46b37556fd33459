import { readFileSync } from 'node:fs';
import { remedyOfFailure } from '@drmas/engine/host';
import type { Episode, EpisodeGroup, FailureReason, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../../../test/support/tiny-run.js';
import { openEstimator } from '../../../../method/advantage/estimators/index.js';
import type { Recipe } from '../../../../method/recipe/recipe.js';
import { stepAdvantages } from '../../../../method/training/advantages/advantages.js';
import { passFilter } from '../../../../method/training/play/group-sizes.js';
import { advise } from './probe-advice.js';
import { probeFindings } from './probe-findings.js';

interface Sample {
  readonly reward: number;
  readonly invalid?: boolean;
  readonly cut?: boolean;
  readonly text?: string;
  readonly failed?: boolean | FailureReason;
  readonly agentReward?: number;
  /** The costs of calls, taken off the reward. */
  readonly cost?: number;
}

/** A group of one-turn episodes. */
function group(task: number, samples: readonly Sample[]): EpisodeGroup {
  const data = { id: String(task), data: null };
  const episodes = samples.map(
    ({ reward, invalid = false, cut = false, text, failed = false, agentReward, cost }, sample): Episode => {
      const turn: Turn = {
        agent: 'solver',
        policy: 'solver',
        policyVersion: 0,
        turn: 0,
        call: 0,
        messages: [],
        prompt: [1],
        response: [1, 2],
        logprobs: [-1, -1],
        temperature: 1,
        finishReason: cut ? 'length' : 'stop',
        text: text ?? String(sample),
        value: 1,
        valid: !invalid,
        penalty: invalid ? 0.1 : 0,
      };
      const score = {
        team: reward,
        agents: agentReward === undefined ? {} : { solver: agentReward },
        parts: failed ? {} : { right: reward + (cost ?? 0), ...(cost !== undefined && { calls: -cost }) },
      };
      const failure = { reason: failed === true ? 'overlong' : failed || 'error', message: 'too long' } as const;
      return { task: data, sample, turns: [turn], outcome: null, score, ...(failed ? { failure } : {}) };
    },
  );
  return { task: data, episodes };
}

const right = { reward: 1 };
const wrong = { reward: 0 };
let tasks = 0;
const groups = (count: number, ...samples: Sample[]) => Array.from({ length: count }, () => group(tasks++, samples));

function probed(
  played: readonly EpisodeGroup[],
  overrides: readonly string[] = [],
  warmStart = true,
  assign: Readonly<Record<string, string>> = {},
) {
  const { warmStart: shown, ...whole } = tinyRecipe({}, overrides);
  const rest = { ...whole, assign: { solver: 'solver', ...assign } };
  const recipe: Recipe = warmStart && shown !== undefined ? { ...rest, warmStart: shown } : rest;
  const kept = passFilter(played, recipe.training.filter);
  const advantages = stepAdvantages({ estimator: openEstimator(recipe.advantage), agents: recipe.agents }, kept);
  const episodes = played.flatMap((each) => each.episodes); // all that were played, as in probeRecipe
  const findings = probeFindings(recipe, played, { ...advantages, episodes });
  const advice = advise(recipe, findings);
  return { findings, advice, codes: advice.map(({ code, weight }) => `${code} ${weight}`) };
}

describe('probeFindings', () => {
  it('counts groups by the rewards of their episodes', () => {
    const played = [
      group(0, [right, wrong]),
      group(1, [right, right]),
      group(2, [wrong, wrong]),
      group(3, [wrong, { reward: 0, invalid: true }]),
    ];
    const { findings } = probed(played);
    const counted = { count: 4, mixed: 1, allRight: 1, allWrong: 2, signal: 2, penaltiesOnly: 1, dropped: 0 };
    expect(findings.groups).toEqual(counted);
    expect(findings.success.mean).toBeCloseTo(3 / 8, 12);
    expect(findings.best).toBe(0.5);
    expect(findings.reward).toBeCloseTo(3 / 8, 12);
    expect(findings).not.toHaveProperty('metrics');
    expect(findings.agents.solver).toMatchObject({ turns: 8, invalid: 1 / 8, responseTokens: 2, callsPerEpisode: 1 });
    expect(findings.parts).toEqual({ right: 3 / 8 });
  });

  it('counts repeated episodes, failures and own rewards', () => {
    const same = { reward: 1, text: 'x' };
    const { findings } = probed([group(0, [same, same, same, { reward: 0, failed: true, agentReward: 0.5 }])]);
    expect(findings.repeated).toBe(0.5);
    expect(findings.failures).toEqual({ overlong: 1 });
    expect(findings.ownRewards).toEqual({ solver: (1 + 1 + 1 + 0.5) / 4 });
  });

  it('averages parts and own rewards over all episodes with a score, so that parts sum to the reward', () => {
    const failed = { reward: 0, failed: true };
    const { findings } = probed(groups(3, { reward: 1, agentReward: 0.5 }, failed, failed, wrong));
    expect(findings.parts).toEqual({ right: 0.25 });
    expect(findings.reward).toBeCloseTo(0.25, 12);
    expect(findings.ownRewards).toEqual({ solver: 0.125 });
    const unscored = probed(groups(3, right, { reward: 0, failed: 'reward' }, wrong)).findings;
    expect([unscored.parts, unscored.reward]).toEqual([{ right: 0.5 }, 0.5]);
  });

  it('counts groups that differ by the cost of calls alone as the step does: nothing of the task differs', () => {
    const price = ['agents.solver.tokenCost=0.001'];
    const costs = [0.001, 0.002, 0.003].map((cost) => ({ reward: -cost, cost }));
    const { findings, codes } = probed(groups(5, ...costs), price);
    expect(findings.groups).toMatchObject({ mixed: 0, allWrong: 5, penaltiesOnly: 5 });
    expect(codes).toContain('penalties-only stops');
    // Without a price the part is the team's own.
    expect(probed(groups(5, ...costs)).findings.groups).toMatchObject({ mixed: 5 });
  });
});

describe('a filter of groups', () => {
  const variance = 'training.filter={"type":"variance","keep":0.2}';
  const equal = 'training.filter={"type":"equal-outcomes","score":"success"}';
  const better = { reward: 0.4 };
  const filtered = (override: string, played: readonly EpisodeGroup[]) => {
    const { findings, advice } = probed(played, [override, 'advantage.type=grpo']);
    const { count, signal, dropped } = findings.groups;
    return { groups: [count, signal, dropped], findings, advice };
  };

  it('that keeps a share of the groups is no reason why groups teach nothing', () => {
    const { groups: counts, advice } = filtered(variance, groups(10, right, wrong));
    expect([counts, advice]).toEqual([[10, 2, 8], []]);
    const few = filtered(variance, [
      ...groups(1, right, wrong),
      ...groups(5, right, right),
      ...groups(5, wrong, wrong),
    ]);
    expect(few.groups).toEqual([11, 1, 0]);
    expect(few.advice).toMatchObject([{ code: 'few-groups', says: expect.stringMatching(/^9 % .* earn the same/) }]);
  });

  it('that drops groups whose rewards differ is named', () => {
    const { groups: counts, advice } = filtered(equal, [...groups(8, wrong, better), ...groups(1, right, right)]);
    expect(counts).toEqual([9, 0, 8]);
    expect(advice).toMatchObject([
      { code: 'no-spread', says: expect.stringMatching(/filter drops 89 %/), remedy: expect.stringMatching(/score/) },
    ]);
    // It drops groups that differ by penalties alone on purpose.
    expect(filtered(equal, groups(8, wrong, { reward: 0, invalid: true })).groups).toEqual([8, 0, 0]);
  });

  it('leaves the same groups to each estimator that is compared', () => {
    const alone = filtered(equal, groups(4, right, wrong, better)).findings.estimators;
    const beside = filtered(equal, [...groups(4, right, wrong, better), ...groups(9, wrong, better)]).findings
      .estimators;
    expect(beside).toEqual(alone);
  });
});

describe('advise', () => {
  it('changes no estimator for an agent of weight 0, which learns from no reward', () => {
    const settings = ['advantage.type=drmas', 'advantage.singleton=zero'];
    const codes = (weight: number) =>
      probed(groups(5, right), [...settings, `agents.solver.rewardWeight=${weight}`]).codes;
    expect(codes(1)).toContain('alone hinders');
    expect(codes(0)).not.toContain('alone hinders');
  });

  const invalid = { reward: 0, invalid: true };
  it.each<[string, EpisodeGroup[], string[], string[]]>([
    ['nothing if outcomes differ', groups(10, right, wrong), [], []],
    ['nothing to reinforce', groups(10, wrong, wrong), [], ['all-wrong stops']],
    ['nothing left to learn', groups(10, right, right), [], ['all-right stops']],
    ['no spread inside groups', [...groups(10, right, right), ...groups(10, wrong, wrong)], [], ['no-spread stops']],
    [
      'few groups that teach',
      [...groups(2, right, wrong), ...groups(5, right, right), ...groups(5, wrong, wrong)],
      [],
      ['few-groups hinders'],
    ],
    ['mostly garbage', groups(10, invalid, invalid, right), [], ['invalid-outputs stops']],
    ['some garbage', groups(10, invalid, right, wrong), [], ['invalid-outputs hinders']],
    [
      'only penalties to learn from',
      groups(10, wrong, wrong, wrong, invalid),
      [],
      ['penalties-only stops', 'all-wrong hinders'],
    ],
    [
      'own rewards if outcomes teach nothing',
      groups(10, { reward: 0, agentReward: 1 }, wrong),
      [],
      ['all-wrong hinders'],
    ],
    ['failures', groups(10, right, { reward: 0, failed: true }, wrong), [], ['failures hinders']],
    [
      'advantages without bound',
      groups(10, { reward: 0, agentReward: 1 }, { reward: 0, agentReward: 1 }, { reward: 1, agentReward: 1 }),
      ['advantage.type=drmas-std', 'advantage.minimumSpread=0', 'advantage.episodeScore=outcome'],
      ['inflation hinders', 'large-advantages hinders'],
    ],
  ])('%s', (_, played, overrides, codes) => {
    expect(probed(played, overrides).codes).toEqual(codes);
  });

  it('has a remedy', () => {
    const remedy = (...input: Parameters<typeof probed>) => probed(...input).advice[0]?.remedy;
    const cut = { reward: 0, invalid: true, cut: true };
    expect(remedy(groups(4, cut, cut, right))).toMatch(/raise agents\.solver\.sampling\.maxTokens/);
    const mixed = [...groups(4, right, right), ...groups(4, wrong, wrong)];
    const cold = ['solver', 'verifier'].map((agent) => `agents.${agent}.sampling.temperature=0`);
    expect(remedy(mixed, cold)).toMatch(/A temperature above 0/);
    expect(remedy(mixed, ['training.groupSize=1'])).toMatch(/groupSize of at least 2/);
    const same = { reward: 1, text: 'x' };
    expect(
      remedy([...groups(4, same, same, same), ...groups(4, { ...same, reward: 0 }, { ...same, reward: 0 })]),
    ).toMatch(/repeat a sibling/);
    expect(remedy(groups(4, { reward: 0, failed: true }))).toMatch(/longer context/);
  });

  it('has the remedy of the most frequent failure, whichever came first', () => {
    const of = (reason: FailureReason, count: number) =>
      Array.from({ length: count }, (): Sample => ({ reward: 0, failed: reason }));
    const reasons = ['error', 'invalid-output', 'overlong', 'timeout', 'too-many-turns', 'backend'] as const;
    for (const rare of reasons)
      for (const frequent of reasons) {
        if (rare === frequent) continue;
        const [first] = probed(groups(1, right, ...of(rare, 1), ...of(frequent, 4))).advice;
        expect(first?.remedy, `${rare}, ${frequent}`).toBe(remedyOfFailure(frequent));
        expect(first?.says).toMatch(new RegExp(`\\(${frequent} 4, ${rare} 1\\)`));
      }
  });

  it('looks at the sampling before it blames the tasks', () => {
    const settings = [
      [['temperature=0', 'topK=0'], /A temperature above 0/],
      [['topK=1'], /A topK above 1/],
      [['topP=0.01'], /A larger topP/],
    ] as const;
    for (const [changes, remedy] of settings) {
      const overrides = changes.flatMap((change) =>
        ['solver', 'verifier'].map((agent) => `agents.${agent}.sampling.${change}`),
      );
      const same = { reward: 0, text: 'x' };
      const [first, ...others] = probed(groups(10, same, same, same), overrides).advice;
      expect(first).toMatchObject({ code: 'no-spread', weight: 'stops', remedy: expect.stringMatching(remedy) });
      expect(others).toEqual([]);
      // One agent that samples is enough.
      expect(probed(groups(10, same, same), overrides.slice(0, 1)).codes).toEqual(['all-wrong stops']);
    }
  });

  it('names agents that learn and that no episode calls', () => {
    const assign = { verifier: 'verifier' };
    const { advice } = probed(groups(10, right, wrong), [], true, assign);
    expect(advice).toMatchObject(
      [{ code: 'not-called', weight: 'hinders', says: /'verifier' is called in none of 20/ }].map(
        ({ says, ...rest }) => ({ ...rest, says: expect.stringMatching(says) }),
      ),
    );
  });

  it('speaks of a longer or shorter warm start only if there is one', () => {
    const same = { reward: 1, text: 'x' };
    const cut = { reward: 0, invalid: true, cut: true };
    const kinds = [
      groups(10, wrong, wrong),
      groups(10, invalid, invalid, right),
      groups(4, cut, cut, right),
      [...groups(4, same, same, same), ...groups(4, { ...same, reward: 0 }, { ...same, reward: 0 })],
    ];
    for (const played of kinds) {
      const said = (warmStart: boolean) =>
        probed(played, [], warmStart)
          .advice.map(({ remedy }) => remedy)
          .join(' ');
      expect(said(true)).toMatch(/(longer|shorter|in the) warm start|shorter answers in the warm start/);
      expect(said(false)).not.toMatch(/(longer|shorter|in the) warm start/i);
    }
  });

  it('has a remedy for outputs that do not fit, whose page shows how', () => {
    const [, page = ''] = /drmas demonstrate.*(docs\/[\w-]+\.md)/.exec(remedyOfFailure('invalid-output')) ?? [];
    const text = readFileSync(new URL(`../../../../../${page}`, import.meta.url), 'utf8');
    expect(text).toMatch(/^npx drmas demonstrate .*playScripted.*recordDemonstrations\('/ms);
  });
});
