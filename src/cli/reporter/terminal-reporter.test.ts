import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventBody, Step } from '@drmas/engine/events';
import { tinyDecoder } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { evaluation, run as events, spike, stamped, started, step, warmup } from '../../../test/fixtures/run-events.js';
import { type StoredEpisode, writeEpisodes } from '../../method/store/episode-files.js';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { choosePair, pairLines } from './conversation-printer.js';
import { emptyHistory, remember, secondsLeft, stepLegend, stepLines } from './progress-printer.js';
import { type Screen, screenOf } from './screen.js';
import { startLines } from './start-printer.js';
import { TerminalReporter } from './terminal-reporter.js';

const recipe = resolveRecipe(
  {
    type: 'recipe',
    input: {
      name: 'math',
      team: defineTeam({
        name: 'pair',
        task: z.unknown(),
        agents: { solver: agent(), verifier: agent() },
        play: async () => 0,
        reward: () => 0,
      }),
      tasks: { name: 'sums', load: async () => ({ name: 'sums', size: 0, at: () => ({ id: '', data: null }) }) },
      model: tinyDecoder({
        width: 64,
        layers: 3,
        heads: 4,
        feedForward: 176,
        context: 128,
        tokenizer: { type: 'bytes' },
      }),
      warmStart: {},
    },
  },
  { overrides: ['training.steps=3'] },
);

const episode = (id: string, reward: number, text: string): StoredEpisode => ({
  task: { id, data: { question: `what is ${id}?`, answer: '10' } },
  sample: 0,
  score: { team: reward, agents: {}, parts: {} },
  turns: [
    {
      agent: 'solver',
      policy: 'solver',
      policyVersion: 0,
      turn: 0,
      call: 0,
      messages: [],
      prompt: [1],
      response: [2],
      logprobs: [-1],
      temperature: 1,
      finishReason: 'stop',
      text,
      valid: reward > 0,
      penalty: 0,
      reward,
    },
  ],
});

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-report-'));
});
afterEach(() => rm(root, { recursive: true }));

async function report(changes: Partial<Screen>): Promise<string> {
  let shown = '';
  const screen = { width: 60, live: false, colour: false, write: (text: string) => (shown += text), ...changes };
  const reporter = new TerminalReporter(screen, recipe, { request: ['math'], runPath: join('runs', 'math-1') });
  for (const event of events) reporter.write(event);
  const path = (number: number) => join(root, `${number}.jsonl`);
  await writeEpisodes(nodeFiles, path(0), [episode('a', 0, '\\boxed{1}'), episode('b', 0, 'guess')]);
  await writeEpisodes(nodeFiles, path(3), [episode('a', 0, '\\boxed{1}'), episode('b', 1, 'work \\boxed{10}')]);
  await reporter.finish({ evaluationEpisodesPath: path });
  return shown;
}

describe('the report of a run', () => {
  it('is made of plain lines of at most 60 columns where there is no terminal', async () => {
    const shown = await report({});
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
    expect(shown.split('\n').filter((line) => line.length > 60)).toEqual([]);
    expect(shown).toMatchSnapshot();
  });

  it('explains no numbers of agents where none has any', () => {
    expect(stepLegend([])).toBe("reward: mean of the step's episodes");
    expect(stepLegend(['solver'])).toMatch(/^reward: mean of the step's episodes; solver: mean of its turns /);
  });

  it('prints the same without colour, and overwrites one line on a terminal', async () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are taken away
    const plain = (text: string) => text.replaceAll(/\u001b\[\d+m/g, '');
    const coloured = await report({ live: true, colour: true });
    expect(coloured).toContain('\u001b[');
    expect(plain(coloured)).toBe(await report({ live: true }));
    expect(coloured).toMatch(/\rwarm start .* 100\/2000.*\rwarm start .* 1600\/2000/);
  });

  it('keeps about twenty lines of steps on a terminal, those with trouble, and all lines in a log', () => {
    const long = { ...recipe, training: { ...recipe.training, steps: 100 } };
    const written = (live: boolean) => {
      let shown = '';
      const screen = { width: 60, live, colour: false, write: (text: string) => (shown += text) };
      const reporter = new TerminalReporter(screen, long, { request: ['math'], runPath: 'runs/math-1' });
      for (let number = 1; number <= 100; number++) {
        reporter.write(stamped(step(number)));
        if (number === 2) reporter.write(stamped(spike)); // its step is the second
        reporter.progress({ phase: 'training', step: number + 1, episodes: 128, done: 5, failed: 0 });
      }
      reporter.notify('end');
      return shown.split('\n').map((line) => line.split('\r').at(-1) ?? '');
    };
    const numbers = (lines: readonly string[]) => lines.flatMap((line) => /^step +(\d+)\/100/.exec(line)?.[1] ?? []);
    const wanted = ['1', ...Array.from({ length: 20 }, (_, i) => `${5 * (i + 1)}`), '2'];
    expect(numbers(written(true))).toEqual(wanted.sort((a, b) => Number(a) - Number(b)));
    expect(numbers(written(false))).toHaveLength(100);
  });

  it('marks the agent that spiked in the step it spiked in', async () => {
    const shown = await report({ width: 100 });
    expect(shown).toMatch(/^step 1\/3 .* verifier 0\.60 \(0\.92\) {2}/m);
    expect(shown).toMatch(/^step 2\/3 .* verifier 0\.60 \(0\.92!\) {2}/m);
    expect(shown).toMatch(/! spike: verifier 3\.20, 8\.00 x the median {2}clipped {2}16a\+8b-3c\/4/);
  });

  it('prints no progress of a warm start that an earlier command trained', () => {
    let shown = '';
    const screen = { width: 80, live: false, colour: false, write: (text: string) => (shown += text) };
    const reporter = new TerminalReporter(screen, recipe, { request: ['math'], runPath: 'runs/math-1' });
    reporter.write(stamped(started));
    reporter.write({ ...stamped(warmup(100)), time: '2026-01-01T00:00:00.000Z' });
    reporter.notify('end');
    expect(shown).toMatch(/math-1\n\nend\n$/);
    reporter.write(stamped(warmup(100)));
    expect(shown).toMatch(/warm start .*100\/2000.*\n$/);
  });

  it('continues after earlier events without repeating them', async () => {
    let shown = '';
    const screen = { width: 80, live: false, colour: false, write: (text: string) => (shown += text) };
    const reporter = new TerminalReporter(screen, recipe, { request: ['math'], runPath: 'runs/math-1' });
    reporter.resume([warmup(100), step(1)].map(stamped));
    expect(shown).toBe('resuming after step 1\n');
    shown = '';
    for (const event of [step(2), spike]) reporter.write(stamped(event));
    await Promise.resolve();
    expect(shown).toMatch(/^step 2\/3 .*verifier 0\.60 \(0\.92!\).*left\n.*spike: verifier.*\n$/);
    reporter.interrupted();
    expect(shown).toMatch(/npx drmas resume runs\/math-1\n$/);
  });
});

describe('during a step', () => {
  const opened = (changes: Partial<Screen>) => {
    const screen = { width: 49, live: true, colour: false, write: () => {}, ...changes };
    return new TerminalReporter(screen, recipe, { request: ['math'], runPath: 'runs/math-1' });
  };
  const played = { phase: 'training', step: 1, episodes: 128, failed: 0 } as const;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('shows how many episodes are over, now and then, below what stays', () => {
    let shown = '';
    const reporter = opened({ write: (text) => (shown += text) });
    reporter.write(stamped(evaluation(0, 0.5)));
    for (let done = 1; done <= 128; done++) {
      vi.advanceTimersByTime(25);
      reporter.progress({ ...played, done, failed: done > 100 ? 2 : 0 });
    }
    const lines = shown.split('\r').slice(1);
    expect(lines.length).toBeLessThan(12); // 3.2 s
    expect(lines[0]).toMatch(/^step 1\/3 {2}\d+ of 128 episodes *$/);
    expect(lines.at(-1)).toMatch(/failed 2 *$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(49);
    shown = '';
    reporter.write(stamped(step(1)));
    reporter.write(stamped(step(2)));
    expect(shown).toMatch(/^\rstep 1\/3 {2}reward 0\.605 .*\n {2}solver 0\.60 .*\n$/);
  });

  it('tells of the step that comes next, not of those that are played ahead of it', () => {
    let shown = '';
    const reporter = opened({ write: (text) => (shown += text) });
    for (const step of [1, 2, 3]) {
      vi.advanceTimersByTime(1000);
      reporter.progress({ ...played, step, done: 1 });
    }
    expect(shown.match(/step \d/g)).toEqual(['step 1']);
  });

  it.each([20, 49, 60, 80, 100])('tells the reward of every agent of a step in %i columns', (width) => {
    let shown = '';
    const reporter = opened({ live: false, width, write: (text) => (shown += text) });
    const { solver } = step(1).agents;
    const named = ['solver', 'verifier', 'summariser'];
    const agents = Object.fromEntries(named.flatMap((name) => (solver === undefined ? [] : [[name, solver]])));
    for (const number of [1, 2]) reporter.write(stamped(step(number, { agents })));
    for (const name of named) expect(shown).toContain(`${name} 0.60`);
    expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width);
    expect(shown.match(/^ /m) === null).toBe(width > 60);
  });

  it('leaves no line of progress in front of what ends a run', () => {
    let shown = '';
    const reporter = opened({ write: (text) => (shown += text) });
    vi.advanceTimersByTime(1000);
    reporter.progress({ ...played, done: 1 });
    reporter.write(stamped({ type: 'run.finished', reason: 'failed', steps: 1, seconds: 1 }));
    expect(shown).toMatch(/^\rstep 1\/3 {2}1 of 128 episodes\r +\r$/);
  });

  it('shows it where there is no terminal after 15 seconds of silence', () => {
    let shown = '';
    const reporter = opened({ live: false, write: (text) => (shown += text) });
    vi.advanceTimersByTime(14_000);
    reporter.progress({ ...played, done: 1 });
    expect(shown).toBe('');
    vi.advanceTimersByTime(2_000);
    reporter.progress({ ...played, done: 2 });
    reporter.progress({ ...played, done: 3 });
    expect(shown).toBe('step 1/3  2 of 128 episodes\n');
    vi.advanceTimersByTime(15_000);
    reporter.progress({ ...played, done: 4 });
    expect(shown).toBe('step 1/3  2 of 128 episodes\nstep 1/3  4 of 128 episodes\n');
  });

  it('prints the first failure of each reason with advice, and counts the rest in the line of the step', () => {
    let shown = '';
    const reporter = opened({ live: false, width: 80, write: (text) => (shown += text) });
    const failed = (reason: string): EventBody => ({
      type: 'episode.failed',
      step: 2,
      task: 'a',
      episode: 1,
      reason,
      message: 'no',
      action: 'exclude',
    });
    for (const reason of ['timeout', 'timeout', 'error']) reporter.write(stamped(failed(reason)));
    reporter.write(stamped(step(2, { episodes: { played: 128, failed: 3 } })));
    reporter.write(stamped(step(3)));
    expect(shown.match(/first failed episode/g)).toHaveLength(2);
    expect(shown).toContain('training.episodeTimeoutMs');
    expect(shown).toMatch(/^step 2\/3 .*failed 3\/128/m);
  });

  it('does not repeat the place of a failure that a warning has shown', () => {
    let shown = '';
    const reporter = opened({ live: false, width: 80, write: (text) => (shown += text) });
    const failure = { reason: 'error', message: 'my bug', stack: '    at play (team.ts:4:70)' } as const;
    const message = `72 of 72 evaluation episodes failed, the first because: (error) my bug\n${failure.stack}`;
    reporter.write(stamped({ type: 'warning', code: 'test', message }));
    reporter.write(stamped({ type: 'episode.failed', step: 1, task: 'a', episode: 0, action: 'exclude', ...failure }));
    expect(shown.match(/team\.ts:4:70/g)).toHaveLength(1);
    expect(shown).toContain('first failed episode: step 1, a/0 (error), as above\n  Fix the team first');
  });

  it('leaves frozen agents out of the line of a step, since nothing trains them', () => {
    let shown = '';
    const reporter = opened({ live: false, width: 80, write: (text) => (shown += text) });
    const { solver, verifier } = step(2).agents;
    reporter.write(stamped(step(2, { agents: { solver, verifier: { ...verifier, frozen: true } } as never })));
    reporter.write(stamped(step(3)));
    const line = shown.split('\n').find((each) => each.startsWith('step 2/3'));
    expect(line).toContain('solver');
    expect(line).not.toContain('verifier');
  });

  it('marks the best evaluation, and says why a run ends early', async () => {
    let shown = '';
    const write = (text: string) => (shown += text);
    const reporter = opened({ live: false, width: 90, write });
    reporter.write(stamped(step(1)));
    reporter.write(stamped(evaluation(1, 0.5)));
    reporter.write(stamped({ type: 'best', step: 1, by: 'averageAtK', score: 0.5 }));
    const message = 'the run has cost 5, and training.stopWhen.cost is 4';
    reporter.write(stamped({ type: 'stop', step: 1, rule: 'cost', message }));
    expect(shown).toMatch(
      /^evaluation at step 1 .*\n {2}the best so far \(averageAtK 0\.5\d*\): its checkpoint stays$/m,
    );
    expect(shown).toContain(`ending after step 1: ${message}`);
    const missing = (number: number) => join(root, `${number}.jsonl`);
    await reporter.finish({ evaluationEpisodesPath: missing });
    expect(shown).toMatch(/best evaluation: step 1 \(averageAtK 0\.5/);
    expect(shown).toMatch(/drmas evaluate .* --checkpoint best/);
  });

  it('marks a step in which nothing is learnt', () => {
    let shown = '';
    const reporter = opened({ live: false, width: 49, write: (text) => (shown += text) });
    const { agents } = step(1);
    const still = Object.fromEntries(Object.entries(agents).map(([name, of]) => [name, { ...of, gradientNorm: 0 }]));
    reporter.write(stamped(step(1, { agents: still })));
    reporter.write(stamped(step(2)));
    expect(shown).toMatch(/^step 1\/3 {2}reward 0\.605 {2}nothing learned/);
    expect(shown.split('\n')[0]?.length).toBeLessThanOrEqual(49);
  });
});

describe('the conversation that is shown', () => {
  it('is of the task that improved most', () => {
    const before = [episode('a', 0, 'x'), episode('a', 1, 'x'), episode('b', 0, 'x'), episode('b', 0, 'y')];
    const after = [episode('a', 1, 'z'), episode('a', 1, 'z'), episode('b', 0, 'x'), episode('b', 1, 'z')];
    const pair = choosePair(before, [...after, episode('b', 1, 'z')]);
    expect([pair?.before.task.id, pair?.before.score.team, pair?.after.score.team]).toEqual(['b', 0, 1]);
  });

  it('is none where nothing improved or everything failed', () => {
    expect(choosePair([episode('a', 1, 'x')], [episode('a', 1, 'y')])).toBeUndefined();
    const failed = { ...episode('a', 0, 'x'), failure: { reason: 'timeout', message: '' } } as const;
    expect(choosePair([failed], [episode('a', 1, 'y')])).toBeUndefined();
  });

  it('fits the width and shows what is not printable', () => {
    const long = `${'ab '.repeat(60)}\u001b[2J\u0007`;
    const lines = pairLines({ before: episode('a', 0, long), after: episode('a', 1, '') }, 40);
    expect(lines.every((line) => line.length <= 40)).toBe(true);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(lines.join('\n')).not.toMatch(/[\u001b\u0007]/);
    expect(lines.join('\n')).toMatch(/\(nothing\)/);
  });
});

describe('screenOf', () => {
  const terminal = { write: () => {}, isTTY: true, columns: 61 };
  it('follows the terminal, NO_COLOR and TERM', () => {
    expect(screenOf(terminal, {})).toMatchObject({ width: 60, live: true, colour: true });
    expect(screenOf(terminal, { NO_COLOR: '1' })).toMatchObject({ live: true, colour: false });
    expect(screenOf(terminal, { TERM: 'dumb' })).toMatchObject({ live: false, colour: false });
    expect(screenOf({ write: () => {} }, {})).toMatchObject({ width: 80, live: false, colour: false });
  });
});

describe('the lines of a step', () => {
  it('name every agent that trains, whatever else there is to say, at any width', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1, maxLength: 8 });
    const share = fc.option(fc.record({ played: fc.integer({ min: 8, max: 4096 }), failed: fc.nat(8) }), {
      nil: undefined,
    });
    fc.assert(
      fc.property(names, share, fc.boolean(), fc.integer({ min: 40, max: 100 }), (agents, episodes, spikes, width) => {
        const { solver } = step(2).agents;
        const event = step(2, {
          agents: Object.fromEntries(agents.map((name) => [name, solver as never])),
          ...(episodes && { episodes }),
        }) as Step;
        const lines = stepLines(event, 20, new Set(spikes ? agents : []), 3600, width);
        for (const name of agents) expect(lines.join(' ')).toMatch(new RegExp(`\\b${name} \\d`));
        expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      }),
    );
  });
});

it('the time that is left counts each evaluation that is not over', () => {
  const left = (steps: number, ...bodies: EventBody[]) =>
    secondsLeft(bodies.map(stamped).reduce(remember, emptyHistory()), steps, 2);
  const [pace, long] = [step(1).seconds, evaluation(0, 0).seconds];
  const one = [evaluation(0, 0), step(1)];
  expect(left(5, ...one)).toBeCloseTo(4 * pace + 3 * long, 12); // at steps 2, 4 and 5
  expect(left(5, ...one, step(2))).toBeCloseTo(3 * pace + 3 * long, 12);
  expect(left(5, ...one, step(2), evaluation(2, 0))).toBeCloseTo(3 * pace + 2 * long, 12);
  expect(left(4, ...one, step(2), evaluation(2, 0), step(3), step(4))).toBeCloseTo(long, 12);
});

describe('the plan at the start of a run', () => {
  it('has the number of held-out tasks if the log knows it', () => {
    const plan = (evaluated: object) => startLines(recipe, { ...started, ...evaluated }, 'r', 80).join('\n');
    expect(plan({ evaluated: 13 })).toMatch(/evaluation on 13 held-out tasks x/);
    expect(plan({})).toMatch(/evaluation on at most \d+ held-out tasks x/);
  });
});
