import { ArgumentError } from '@drmas/engine/errors';
import { onAbort } from '@drmas/engine/host';
import { assistant, toolResult, user } from '@drmas/engine/nouns';
import { ExactMatch, Factuality, Levenshtein } from 'autoevals';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chatServer, json } from '../../../test/support/chat-server.js';
import { eventually, stopwatch } from '../../../test/support/time-and-chance.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../team/agent.js';
import { defineTeam } from '../team/team.js';
import type { Scorer } from './foreign-scorers.js';
import { asScorer, fromScorers, type ScorerReward } from './scorers.js';

type Data = { question: string; answer: string };
const task = { question: 'Capital of France?', answer: 'Paris' };

const teamOf = (reward: ScorerReward<Data, string>) =>
  defineTeam({
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: { solver: agent() },
    play: async ({ task: { question }, agents: { solver } }) => (await solver(question)).text,
    reward,
    metrics: reward.metrics,
  });

const contextOf = (outcome: unknown, signal = new AbortController().signal) => {
  const episode = { task: { id: 'france', data: task }, sample: 0, turns: [] };
  return { task, outcome, episode, agents: {}, signal };
};

describe('fromScorers', () => {
  it('makes named parts of functions of autoevals, scorers of Mastra and judges of vitest-evals', async () => {
    const mastra = {
      name: 'mastra',
      run: async ({ output, groundTruth }: { output: string; groundTruth: string }) => ({
        score: output === groundTruth ? 1 : 0.25,
        reason: 'compared',
      }),
    };
    const vitestEvals = { name: 'length', assess: ({ output }: { output: string }) => ({ score: output.length / 10 }) };
    const reward = fromScorers<Data, string>([
      ExactMatch,
      { scorer: Levenshtein, name: 'near', weight: 0.5 },
      mastra,
      vitestEvals,
    ]);
    const { score } = await playScripted(teamOf(reward), task, { solver: ['Pari'] });
    expect(score.parts).toEqual({ ExactMatch: 0, near: 0.4, mastra: 0.25, length: 0.4 });
    expect(score.team).toBeCloseTo(1.05, 12);
    expect([reward.judges, score.metrics]).toEqual([[], undefined]);
  });

  it("gives messages and tool calls to scorers of Mastra's types, and a session to judges of vitest-evals", async () => {
    const readings: Record<string, unknown> = {};
    const keeping = (name: string) => async (reading: object) => {
      readings[name] = JSON.parse(JSON.stringify(reading));
      return { score: 1 };
    };
    const reward = fromScorers<Data, string>([
      { name: 'agent', scorer: { type: 'agent', run: keeping('agent') } as Scorer },
      { name: 'trajectory', scorer: { type: 'trajectory', run: keeping('trajectory') } as Scorer },
      { name: 'judge', assess: keeping('judge') },
    ]);
    const team = defineTeam({
      ...teamOf(reward),
      agents: { solver: agent({ tools: 'hermes' }) },
      play: async ({ task: { question }, agents: { solver } }) => {
        const [prompt, tools] = [user(question), [{ name: 'look', parameters: {} }]];
        const reply = await solver([prompt], { tools });
        const results = reply.toolCalls.map((call) => toolResult(call, 'found'));
        return (await solver([prompt, assistant(reply), ...results], { tools })).text;
      },
    });
    await playScripted(team, task, {
      solver: [{ toolCalls: [{ name: 'look', arguments: { city: 'Paris' } }] }, 'Paris'],
    });
    const call = { toolCallId: 'call_1', toolName: 'look', args: { city: 'Paris' }, state: 'result', result: 'found' };
    const parts = [
      { type: 'tool-invocation', toolInvocation: call },
      { type: 'text', text: 'Paris' },
    ];
    const messages = [{ role: 'assistant', content: { format: 2, parts } }];
    const input = { inputMessages: [{ content: { parts: [{ text: task.question }] } }] };
    const steps = [{ stepType: 'tool_call', name: 'look', toolArgs: { city: 'Paris' } }];
    const called = { id: 'call_1', name: 'look', arguments: { city: 'Paris' } };
    expect(readings).toMatchObject({
      agent: { input, output: messages, groundTruth: 'Paris' },
      trajectory: { input, output: { steps, rawOutput: messages } },
      judge: {
        input: task.question,
        output: 'Paris',
        expected: 'Paris',
        toolCalls: [{ ...called, status: 'ok', result: 'found' }],
        session: {
          events: [
            { role: 'user', content: task.question },
            { type: 'tool_call', ...called },
            { type: 'tool_result', toolCallId: 'call_1', content: 'found' },
            { role: 'assistant', content: 'Paris' },
          ],
        },
      },
    });
  });

  it('knows the judges of Mastra and of vitest-evals, and gives the latter their model', async () => {
    const judgeHarness = { run: async (prompt: string) => ({ output: `${prompt}: good` }) };
    const judge = {
      name: 'asks',
      judgeHarness,
      assess: async ({ runJudge }: { runJudge: (prompt: string) => Promise<string> }) =>
        Number((await runJudge('How?')) === 'How?: good'),
    };
    const run = async () => 0.5;
    const whole = { name: 'whole', judge: {}, run };
    const inStep = { name: 'step', getSteps: () => [{ name: 'generateScore', type: 'prompt' }], run };
    const computes = { name: 'computes', getSteps: () => [{ name: 'generateScore', type: 'function' }], run };
    const reward = fromScorers<Data, string>([judge, whole, inStep, computes]);
    expect(reward.judges.map(({ name }) => name)).toEqual(['asks', 'whole', 'step']);
    const { score } = await playScripted(teamOf(reward), task, { solver: ['Paris'] });
    expect(score.parts).toEqual({ asks: 1, whole: 0.5, step: 0.5, computes: 0.5 });
  });

  it('names a scorer that throws, and the reason of one that cannot score', async () => {
    const failing = (scorer: Scorer) =>
      expect(playScripted(teamOf(fromScorers([{ scorer, name: 'odd' }])), task, { solver: ['Paris'] })).rejects;
    await failing(() => JSON.parse('{')).toThrow(/the scorer 'odd' failed: .*JSON/);
    const notScorable = { step: 'preprocess', reason: 'no call' };
    await failing({ run: async () => ({ input: 'long', notScorable }) }).toThrow(
      `the scorer 'odd' gave {"notScorable":${JSON.stringify(notScorable)}}; expected a number`,
    );
  });

  it('counts, repeats, limits and remembers the calls of a judge, with its price', async () => {
    let [now, most, requests] = [0, 0, 0];
    // The first two calls and the last one come alone. The others are answered in pairs: each waits for its partner.
    let waiting: (() => void) | undefined;
    const paired = (number: number, answer: () => void) => {
      if ([1, 2, 7].includes(number)) return answer();
      if (waiting === undefined) {
        waiting = answer;
        return;
      }
      waiting();
      waiting = undefined;
      answer();
    };
    const { url } = await chatServer((_, response) => {
      most = Math.max(most, ++now);
      const number = ++requests;
      paired(number, () => {
        now--;
        if (number === 1) return json(response, { error: { message: 'broken' } }, 400);
        const arguments_ = JSON.stringify({ choice: 'C', reasons: 'equal' });
        const tool_calls = [{ id: '1', type: 'function', function: { name: 'select_choice', arguments: arguments_ } }];
        json(response, {
          choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls }, finish_reason: 'stop' }],
        });
      });
    });
    const scorer = async (args: { input: string; output: string; expected: string }) =>
      await Factuality({ ...args, openAiApiKey: 'none', openAiBaseUrl: url, model: 'judge' });
    const judge = { price: 0.01 };
    const reward = fromScorers<Data, string>([ExactMatch, { scorer, name: 'facts', judge }], { concurrency: 2 });
    expect(reward.judges).toEqual([{ name: 'facts', price: 0.01 }]);
    expect(fromScorers([Factuality]).judges).toEqual([{ name: 'Factuality', price: 0 }]);
    const play = (text: string) => playScripted(teamOf(reward), task, { solver: [text] });
    const first = await play('Paris');
    expect(first.score).toMatchObject({
      parts: { ExactMatch: 1, facts: 1 },
      metrics: { judge_calls: 2, judge_cost: 0.02 },
    });
    expect((await play('Paris')).score.metrics).toEqual({ judge_calls: 0, judge_cached: 1 });
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(play));
    expect([requests, most]).toEqual([7, 2]);
  });

  it('shares no verdict of a judge between outcomes that JSON does not tell apart', async () => {
    const scorer = ({ output }: { output: ReadonlyMap<string, number> }) => output.get('score') ?? 0;
    const reward = fromScorers<Data, unknown>([{ scorer, name: 'judge', judge: true }]);
    const partsOf = (outcome: unknown) => reward(contextOf(outcome));
    expect(await partsOf(new Map([['score', 0.2]]))).toEqual({ judge: 0.2 });
    expect(await partsOf(new Map([['score', 0.7]]))).toEqual({ judge: 0.7 });
    expect(await partsOf(Object.assign(new Map([['score', 0.5]]), { tokens: 3n }))).toEqual({ judge: 0.5 });
  });

  it('asks a judge again if the episode that asked first is over', async () => {
    let asked = 0;
    const assess = ({ signal }: { signal: AbortSignal }) =>
      ++asked > 1 ? 1 : new Promise<number>((_, reject) => onAbort(signal, () => reject(signal.reason)));
    const reward = fromScorers<Data, unknown>([{ scorer: { name: 'judge', assess }, judge: true }]);
    const first = new AbortController();
    const ended = reward(contextOf('Paris', first.signal));
    const other = reward(contextOf('Paris'));
    await eventually(() => asked === 1);
    first.abort(new Error('the episode is over'));
    await expect(ended).rejects.toThrow('the episode is over');
    expect([await other, asked]).toEqual([{ judge: 1 }, 2]);
  });

  it('keeps to a number of calls a minute', async () => {
    const times: number[] = [];
    const seconds = stopwatch(); // the first call may be late, and the others do not wait for it
    const scorer = async () => times.push(seconds()) * 0;
    const reward = fromScorers<Data, string>([{ scorer, name: 'slow', judge: true }], { perMinute: 600 });
    await Promise.all(['a', 'b', 'c'].map((text) => playScripted(teamOf(reward), task, { solver: [text] })));
    expect(times[2] ?? 0).toBeGreaterThan(0.19);
  });

  it('leaves an episode without a score if a scorer gives none', async () => {
    const none = fromScorers<Data, string>([{ scorer: () => ({ score: null }), name: 'none' }]);
    await expect(playScripted(teamOf(none), task, { solver: ['Paris'] })).rejects.toThrow(
      /the scorer 'none' gave {"score":null}; expected a number/,
    );
  });

  it('accepts scorers of other packages with further fields', () => {
    const scorer = { name: 'exact', description: 'as evalite has it', scorer: ExactMatch };
    expect(() => fromScorers([scorer])).not.toThrow();
  });

  it.each([
    [[], /expected at least one scorer/],
    [[ExactMatch, ExactMatch], /two scorers are named 'ExactMatch'/],
    [[{ scorer: 5 }], /scorer 1 is no function, and has neither run nor assess/],
    [[() => 1], /scorer 1 needs a `name`/],
    [[{ scorer: ExactMatch, weight: Number.NaN }], /fromScorers: scorer 1: weight: .*NaN/],
    [[{ scorer: ExactMatch, wieght: 2 }], /fromScorers: scorer 1: unknown key 'wieght'; did you mean 'weight'/],
    [[{ scorer: ExactMatch, judge: { price: -1 } }], /fromScorers: scorer 1: judge/],
    [{ match: ExactMatch }, /fromScorers: .*expected an array/],
  ])('refuses %j', (scorers, message) => {
    expect(() => fromScorers(scorers as unknown as Scorer[])).toThrow(ArgumentError);
    expect(() => fromScorers(scorers as unknown as Scorer[])).toThrow(message);
  });

  it.each([
    [{ concurrency: 0 }, /fromScorers: concurrency: /],
    [{ perMinute: 0 }, /fromScorers: perMinute: /],
    [{ retries: -1 }, /fromScorers: retries: /],
    [{ cache: Number.NaN }, /fromScorers: cache: /],
    [{ arguments: () => ({}) }, /fromScorers: arguments: unknown key/],
  ])('refuses the options %j', (options, message) => {
    expect(() => fromScorers([ExactMatch], options as object)).toThrow(ArgumentError);
    expect(() => fromScorers([ExactMatch], options as object)).toThrow(message);
  });

  it('accepts judges without a limit a minute', () => {
    expect(fromScorers([ExactMatch], { perMinute: Number.POSITIVE_INFINITY }).judges).toEqual([]);
  });
});

it("gives a team's reward to the runners of other packages", async () => {
  const scorer = asScorer(teamOf(fromScorers<Data, string>([ExactMatch, { scorer: Levenshtein, weight: 2 }])));
  expect(await scorer({ input: task, output: 'Paris' })).toEqual({
    name: 'team',
    score: 3,
    metadata: { ExactMatch: 1, Levenshtein: 2 },
  });
});

it.each([['0.5'], [''], [null], [undefined], [Number.NaN], [[1]], [{ correct: '' }], [{ team: null }]])(
  "gives no score for a team's reward that is no number: %j",
  async (reward) => {
    const scorer = asScorer({ name: 'team', reward: () => reward as never });
    await expect(scorer({ input: task, output: 'Paris' } as never)).rejects.toThrow('expected a finite number');
  },
);
