import type { Step } from '@drmas/engine/events';
import { isSilent } from '@drmas/engine/host';
import { describe, expect, it } from 'vitest';
import { step as stepEvent } from '../../../../test/fixtures/run-events.js';
import { tinyRecipe, watchedRun } from '../../../../test/support/tiny-run.js';
import type { Updates } from '../update/update-result.js';
import { Silence } from './silence.js';

const run = watchedRun(tinyRecipe());

/** The health of an agent whose turns on a task earn the same. */
const still = { duplicates: 0, groups: { allRight: 2, allWrong: 2, mixed: 0, penaltyOnly: 0 }, groupSpread: 0 };

/** A step in which these agents learn. The others earn the same in each of their groups. */
function lesson(number: number, learns: readonly string[], changes: Partial<Step> = {}): Step {
  const recorded = stepEvent(number, changes);
  const agents = Object.fromEntries(
    Object.entries(recorded.agents).map(([name, agent]) => [
      name,
      learns.includes(name) ? agent : { ...agent, health: still, maxAbsAdvantage: 1e-17, gradientNorm: 1e-11 },
    ]),
  );
  return { ...recorded, agents };
}

const trained = Object.fromEntries(
  ['solver', 'verifier'].map((name) => [name, { outcome: 'applied', agents: { [name]: {} } }]),
) as unknown as Updates;

const both = ['solver', 'verifier'];
const wrong = { allRight: 0, allWrong: 4, mixed: 0, penaltyOnly: 0 };

/** The steps with a warning, and the agent that it is about. */
function warnedAt(steps: number, learns: (step: number) => readonly string[], silence = new Silence(run)) {
  return Array.from({ length: steps }, (_, i) => silence.judge(lesson(i + 1, learns(i + 1)), trained))
    .flat()
    .map(({ step, agent, code }) => [step, code, agent]);
}

describe('Silence', () => {
  it('warns in the first step if nothing is learnt, then in the third in a row, the sixth, the twelfth', () => {
    expect(warnedAt(15, () => []).map(([step]) => step)).toEqual([1, 3, 6, 12]);
    expect(warnedAt(15, (step) => (step % 3 === 1 ? both : []))).toEqual([]);
    expect(warnedAt(9, (step) => (step < 5 ? both : []))).toEqual([[7, 'nothing-learnt', undefined]]);
  });

  it('names an agent that learns nothing while another does', () => {
    expect(warnedAt(25, () => ['solver'])).toEqual([
      [10, 'agent-learns-nothing', 'verifier'],
      [20, 'agent-learns-nothing', 'verifier'],
    ]);
  });

  it('continues the count of a checkpoint', () => {
    const first = new Silence(run);
    warnedAt(8, () => ['solver'], first);
    const state = JSON.parse(JSON.stringify(first.state));
    const resumed = new Silence(run, state);
    const later = [9, 10].flatMap((at) => resumed.judge(lesson(at, ['solver']), trained));
    expect(later.map(({ step }) => step)).toEqual([10]);
  });

  it('ignores agents that do not learn: frozen, with weight 0, or waiting for a critic', () => {
    const { agents } = run;
    const weightless = { ...agents, verifier: { ...agents.verifier, rewardWeight: 0 } } as typeof agents;
    expect(warnedAt(10, () => ['solver'], new Silence({ ...run, agents: weightless }))).toEqual([]);
    const learners = run.trained.filter(({ name }) => name === 'solver'); // the verifier is frozen
    expect(warnedAt(10, () => ['solver'], new Silence({ ...run, trained: learners }))).toEqual([]);
    const warmStarted = { name: 'verifier', agents: ['verifier'], settings: undefined };
    expect(warnedAt(10, () => ['solver'], new Silence({ ...run, trained: [...learners, warmStarted] }))).toEqual([]);
    const waiting = { ...trained, solver: { agents: {} }, verifier: { agents: {} } } as unknown as Updates;
    expect(new Silence(run).judge(lesson(1, []), waiting)).toEqual([]);
  });

  it('tells policies that have never learnt from others, also after steps that waited for a critic', () => {
    const waiting = { solver: { agents: {} }, verifier: { agents: {} } } as unknown as Updates;
    const said = (learns: (step: number) => readonly string[], steps: number, waits: number) => {
      let silence = new Silence(run);
      for (let at = 1; ; at++) {
        const solved = lesson(at, learns(at), { groups: { ...wrong, allWrong: 0, allRight: 4 } });
        const [warning] = silence.judge(solved, at <= waits ? waiting : trained);
        if (at === steps) return warning?.message;
        silence = new Silence(run, silence.state, silence.learnt); // as a run that resumes
      }
    };
    const never = /If a wrong answer would succeed too/;
    for (const waits of [0, 2]) {
      expect(said(() => [], waits + 1, waits)).toMatch(never); // the first step in which a policy could learn
      expect(said(() => [], waits + 3, waits)).toMatch(never);
      const later = said((at) => (at === waits + 1 ? both : []), waits + 4, waits);
      expect(later).toMatch(/Harder tasks/);
      expect(later).not.toMatch(never);
    }
  });

  it.each<[string, Partial<Step>, readonly string[], RegExp]>([
    ['all wrong', { groups: wrong }, [], /4 groups earn the same, because none of them succeeds.*longer warm start/],
    ['all right', { groups: { ...wrong, allWrong: 0, allRight: 4 } }, [], /all of them succeed.*[Hh]arder tasks/],
    [
      'all right but those that failed',
      { episodes: { played: 32, failed: 10 }, groups: { ...wrong, allWrong: 0, allRight: 4 } },
      [],
      /all that did not fail succeed, and 10 of 32 episodes failed\. .*failedEpisodes=zero/,
    ],
    ['equal', { groups: { ...wrong, allRight: 4 } }, [], /each of 8 groups earn the same.*medium difficulty/],
    [
      'mostly failed',
      { episodes: { played: 32, failed: 30 }, groups: { ...wrong, allRight: 2 } },
      [],
      /30 of 32 episodes failed/,
    ],
    [
      'nobody called',
      { agents: {}, episodes: { played: 8, failed: 0 } },
      [],
      /`play` called no agent in any of 8 episodes/,
    ],
    [
      'nothing awaited',
      { agents: {}, episodes: { played: 8, failed: 0, unanswered: { solver: 8 } } },
      [],
      /before its calls of 'solver' were answered: `await` them/,
    ],
    ['failed', { episodes: { played: 8, failed: 8 } }, [], /every episode failed/],
    ['filtered', { filter: filterOf(0) }, [], /training\.filter left none of 8 groups/],
    [
      'priced, and wrong',
      { groups: wrong, reward: { mean: -0.05, std: 0.1 }, parts: { calls: -0.05 }, success: 0 },
      [],
      /because none of them succeeds/,
    ],
    [
      'priced by the same cost, and wrong',
      { groups: wrong, reward: { mean: -0.05, std: 0 }, parts: { calls: -0.05 }, success: 0 },
      [],
      /because none of them succeeds/,
    ],
    [
      'priced, and right in part',
      { groups: wrong, reward: { mean: 0.2, std: 0.1 }, parts: { calls: -0.05 }, success: 0.25 },
      [],
      /because none of them succeeds/,
    ],
  ])('says why: %s', (_, changes, learns, expected) => {
    const [warning] = new Silence(run).judge(lesson(1, learns, changes), trained);
    expect(warning?.message).toMatch(expected);
  });

  it('speaks of a longer warm start only if there is one', () => {
    const [warning] = new Silence({ ...run, warmStartShare: undefined }).judge(
      lesson(1, [], { groups: wrong }),
      trained,
    );
    expect(warning?.message).toMatch(/none of them succeeds\..*Else: a warm start/);
  });

  it('has its own reason if turns have advantages but the gradient is 0', () => {
    const { agents, ...rest } = stepEvent(1);
    const still = Object.fromEntries(Object.entries(agents).map(([name, of]) => [name, { ...of, gradientNorm: 0 }]));
    const [warning] = new Silence(run).judge({ ...rest, agents: still }, trained);
    expect(warning?.message).toContain('the gradient is 0');
  });

  it('counts an agent that is not called as one that learns nothing', () => {
    expect(isSilent(undefined)).toBe(true);
    const { verifier, ...others } = stepEvent(1).agents;
    const silence = new Silence(run);
    const last = Array.from({ length: 10 }, (_, i) => silence.judge({ ...stepEvent(i + 1), agents: others }, trained));
    expect(last.at(-1)?.[0]?.message).toContain('the team does not call it');
  });
});

function filterOf(kept: number): NonNullable<Step['filter']> {
  return { rounds: 1, played: 8, refilled: 0, dropped: 8 - kept, surplus: 0, kept };
}
