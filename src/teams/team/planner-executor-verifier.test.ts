import { describe, expect, it } from 'vitest';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../rollout/play-episode.js';
import { type PlannerExecutorVerifierOptions, plannerExecutorVerifier } from './planner-executor-verifier.js';
import type { Team } from './team.js';

/** Plays one episode with these replies, in order. Returns each call: agent and conversation without system prompt. */
async function play(replies: string[], options: PlannerExecutorVerifierOptions = {}) {
  const team = plannerExecutorVerifier(options) as Team;
  const sampler = scriptedSampler(({ index }) => replies[index] ?? '');
  const task = { id: 'task', data: { question: '12(3+4)?', answer: '84' } };
  const context = scriptedContext(team, sampler, { maxTurns: 40 });
  const { turns, outcome, score, failure } = await playEpisode(context, {
    team,
    task,
    sample: 0,
    phase: 'training',
    step: 1,
  });
  return {
    prompts: turns.map(({ agent, messages }) => [agent, ...messages.slice(1).map(({ content }) => content)]),
    agents: turns.map(({ agent }) => agent[0]).join(''),
    penalties: turns.map(({ penalty }) => penalty),
    outcome,
    score: score.team,
    failure,
  };
}

const calculate = (expression: string) => `<calculate>${expression}</calculate>`;
const right = '\\boxed{84}';
const wrong = '\\boxed{48}';

describe('planner, executor and verifier', () => {
  it('plan, calculate, answer and approve', async () => {
    const calls = [calculate('3+4'), calculate('12*7')];
    expect(await play(['add first', ...calls, right, '<approve>'])).toMatchObject({
      prompts: [
        ['planner', '12(3+4)?'],
        ['executor', '12(3+4)?\nadd first'],
        ['executor', '12(3+4)?\nadd first', calls[0], '7'],
        ['executor', '12(3+4)?\nadd first', calls[0], '7', calls[1], '84'],
        ['verifier', '12(3+4)?', right],
      ],
      penalties: [0, 0, 0, 0, 0],
      outcome: { answer: '84', plans: 1 },
      score: 1,
    });
  });

  it('make a new plan in view of the rejected one; the last attempt is not judged and counts', async () => {
    expect(await play(['guess', wrong, 'no: <reject>', 'add', right])).toMatchObject({
      prompts: [
        ['planner', '12(3+4)?'],
        ['executor', '12(3+4)?\nguess'],
        ['verifier', '12(3+4)?', wrong],
        ['planner', '12(3+4)?', 'guess', 'no: <reject>'],
        ['executor', '12(3+4)?\nadd'],
      ],
      outcome: { answer: '84', plans: 2 },
      score: 1,
    });
    expect(await play(['a', right, '<reject>', 'b', wrong])).toMatchObject({ outcome: { answer: '48' }, score: 0 });
    expect((await play(['a', right], { maxLoops: 1 })).agents).toBe('pe');
    const thrice = ['a', wrong, '<reject>', 'b', wrong, '<reject>', 'c', right];
    expect(await play(thrice, { maxLoops: 3 })).toMatchObject({ agents: 'pevpevpe', outcome: { plans: 3 }, score: 1 });
  });

  it('end with a wrong answer too, if it is approved', async () => {
    expect(await play(['a', wrong, '<approve>'])).toMatchObject({ agents: 'pev', score: 0 });
  });

  it('report to the executor, for free, that a calculation has no result', async () => {
    const played = await play(['a', calculate('3/0'), right, '<approve>']);
    expect(played.prompts[2]).toEqual(['executor', '12(3+4)?\na', calculate('3/0'), 'error']);
    expect(played).toMatchObject({ penalties: [0, 0, 0, 0], score: 1 });
  });

  it('end an attempt at one calculation too many, which is neither done nor judged', async () => {
    const sum = calculate('3+4');
    expect(await play(['a', sum, sum, sum, 'b', right], { maxCalls: 2 })).toMatchObject({
      agents: 'peeepe',
      penalties: [0, 0, 0, 0, 0, 0],
      outcome: { answer: '84', plans: 2 },
    });
    expect(await play(['a', sum, 'b', sum], { maxCalls: 0 })).toMatchObject({
      agents: 'pepe',
      outcome: { answer: undefined, plans: 2 },
      score: 0,
    });
    expect((await play(Array(20).fill(sum))).agents).toBe('peeeeepeeeee'); // four calculations by default
  });

  it('end an attempt at a step that is neither, charge for it, and plan again', async () => {
    for (const step of ['84', '', '<calculate>', '<calculate> </calculate>']) {
      const played = await play(['a', step, 'b', right]);
      expect(played).toMatchObject({ agents: 'pepe', penalties: [0, 0.1, 0, 0], score: 1 });
      expect(played.prompts[2]).toEqual(['planner', '12(3+4)?', 'a', '<reject>']);
    }
  });

  it('take a step with both for an answer', async () => {
    expect(await play(['a', `${calculate('1+1')} ${right}`, '<approve>'])).toMatchObject({ agents: 'pev', score: 1 });
  });

  it('carry out the question alone when the plan is empty, and charge for that', async () => {
    const played = await play([' ', right, '<approve>'], { invalidPenalty: 0.5 });
    expect(played).toMatchObject({ penalties: [0.5, 0, 0], score: 1 });
    expect(played.prompts[1]).toEqual(['executor', '12(3+4)?']);
  });

  it('take an unreadable verdict for approval, or by option for rejection, and charge for it', async () => {
    for (const verdict of ['', 'fine', '<approve><reject>']) {
      expect(await play(['a', right, verdict])).toMatchObject({ agents: 'pev', penalties: [0, 0, 0.1] });
      const rejected = await play(['a', wrong, verdict, 'b', right], { onUnreadableVerdict: 'reject' });
      expect(rejected).toMatchObject({ agents: 'pevpe', penalties: [0, 0, 0.1, 0, 0], score: 1 });
      expect(rejected.prompts[3]?.at(-1)).toBe(verdict || '<reject>');
    }
  });

  it('accept other words, system prompts and a calculator', async () => {
    const team = plannerExecutorVerifier({
      planner: { system: 'P' },
      executor: { system: 'E' },
      verifier: { system: 'V' },
    });
    expect(Object.values(team.agents).map(({ system }) => system)).toEqual(['P', 'E', 'V']);
    const words = { approve: 'ok', reject: 'bad', calculator: (expression: string) => `[${expression}]` };
    const played = await play(['a', calculate('x'), right, 'ok'], words);
    expect(played.prompts[2]?.at(-1)).toBe('[x]');
    expect(played.agents).toBe('peev');
  });

  it('refuse options that make no sense', () => {
    const refused = (options: object, message: string | RegExp) =>
      expect(() => plannerExecutorVerifier(options as PlannerExecutorVerifierOptions)).toThrow(message);
    refused({ maxLoops: 0 }, /^plannerExecutorVerifier\(\.\.\.\): maxLoops: /);
    refused({ maxCalls: -1 }, 'maxCalls');
    refused({ approve: 'x', reject: 'x' }, 'approve and reject must differ');
    refused({ calculator: '+' }, 'calculator: expected a function');
    refused({ critic: {} }, 'critic');
  });
});
