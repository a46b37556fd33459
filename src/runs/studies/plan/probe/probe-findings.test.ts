import { readFileSync } from 'node:fs';
import { remedyOfFailure } from '@drmas/engine/host';
import type { Episode, EpisodeGroup, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../../../test/support/tiny-run.js';
import { openEstimator } from '../../../../method/advantage/estimators/index.js';
import type { Recipe } from '../../../../method/recipe/recipe.js';
import { stepAdvantages } from '../../../../method/training/advantages/advantages.js';
import { advise } from './probe-advice.js';
import { probeFindings } from './probe-findings.js';

interface Sample {
  readonly reward: number;
  readonly invalid?: boolean;
  readonly cut?: boolean;
  readonly text?: string;
  readonly failed?: boolean;
  readonly agentReward?: number;
}

/** A group of one-turn episodes. */
function group(task: number, samples: readonly Sample[]): EpisodeGroup {
  const data = { id: String(task), data: null };
  const episodes = samples.map(
    ({ reward, invalid = false, cut = false, text, failed = false, agentReward }, sample): Episode => {
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
        parts: { right: reward },
      };
      const failure = { reason: 'overlong', message: 'too long' } as const;
      return { task: data, sample, turns: [turn], outcome: null, score, ...(failed ? { failure } : {}) };
    },
  );
  return { task: data, episodes };
}

const right = { reward: 1 };
const wrong = { reward: 0 };
let tasks = 0;
const groups = (count: number, ...samples: Sample[]) => Array.from({ length: count }, () => group(tasks++, samples));

function probed(played: readonly EpisodeGroup[], overrides: readonly string[] = [], warmStart = true) {
  const { warmStart: shown, ...rest } = tinyRecipe({}, overrides);
  const recipe: Recipe = warmStart && shown !== undefined ? { ...rest, warmStart: shown } : rest;
  const findings = probeFindings(
    recipe,
    played,
    stepAdvantages({ estimator: openEstimator(recipe.advantage), agents: recipe.agents }, played),
  );
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
    const counted = { count: 4, mixed: 1, allRight: 1, allWrong: 2, signal: 2, penaltiesOnly: 1 };
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
    expect(findings.ownRewards).toEqual({ solver: 0.5 });
  });
});

describe('advise', () => {
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
