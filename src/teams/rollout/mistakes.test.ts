/** Mistakes of teams that are named as the mistake they are. */

import { isLesson } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, onFakeClock } from '../../../test/support/time-and-chance.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { integer } from '../team/parsers.js';
import { defineTeam, type PlayContext, type Reward, type Team } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import { playEpisode } from './play-episode.js';
import type { RolloutContext } from './rollout-context.js';

const agents = {
  counter: agent({ parse: integer, invalidPenalty: 0.25 }),
  talker: agent(),
  caller: agent({ tools: 'plain' }),
};
type Play = (context: PlayContext<unknown, typeof agents>) => Promise<unknown>;

function played(play: Play, reward: () => unknown = () => 1, changes: Partial<RolloutContext> = {}, script?: Script) {
  const team = defineTeam({ task: z.unknown(), agents, play, reward: reward as () => Reward }) as unknown as Team;
  const context = scriptedContext(team, scriptedSampler(script ?? (() => '7')), changes);
  return playEpisode(context, { team, task: { id: 't', data: 7 }, sample: 0, phase: 'training', step: 1 });
}

const counts: Play = async ({ agents: { counter } }) => (await counter('1')).value;

describe('a forgotten await', () => {
  it('of all calls fails the episode, which has no turn', async () => {
    const { failure, unanswered } = await played(async ({ agents: { counter } }) => void counter('1'));
    expect(failure).toEqual({
      reason: 'error',
      message: "play returned before its call of 'counter' was answered: `await` the call",
      agent: 'counter',
    });
    expect(unanswered).toEqual({ counter: 1 });
  });

  it('of some calls is counted by agent', async () => {
    const { failure, unanswered, turns } = await played(async ({ agents: { counter, talker } }) => {
      await counter('1');
      void talker('a');
      void talker('b');
    });
    expect([failure, turns.length, unanswered]).toEqual([undefined, 1, { talker: 2 }]);
  });

  it('is none if all calls are answered, or given up by a signal', async () => {
    const { unanswered, failure } = await played(async ({ agents: { counter, talker } }) => {
      const controller = new AbortController();
      const given = talker('a', { signal: controller.signal }).catch(() => {});
      controller.abort(new Error('enough'));
      await Promise.all([given, counter('1')]);
    });
    expect([failure, unanswered]).toEqual([undefined, undefined]);
  });

  it.each<[string, (reply: Promise<unknown>) => unknown]>([
    ['outcome.draft', (draft) => ({ draft })],
    ['outcome.steps[1].answer', (answer) => ({ steps: [{}, { answer }] })],
  ])('inside the outcome is found at %s', async (place, outcome) => {
    const { failure } = await played(async ({ agents: { counter } }) => {
      const reply = counter('1');
      await counter('2');
      return outcome(reply);
    });
    expect(failure?.message).toBe(`play returned a promise as ${place}: \`await\` it before play returns`);
  });
});

describe('a reward', () => {
  it.each<[string, () => unknown, string]>([
    ...[
      ['a list', [1], 'a list'],
      ['an empty list', [], 'a list'],
      ['a typed array', Float32Array.of(1, 1), 'a Float32Array'],
      ['a Map', new Map([['correct', 1]]), 'a Map'],
      ['a Set', new Set([1]), 'a Set'],
      ['a Date', new Date(0), 'a Date'],
      ['an error with a number', Object.assign(new Error('busy'), { status: 500 }), 'an Error'],
      ['a boxed number', new Number(1), 'a Number'],
      ['a boxed text', new String('1'), 'a String'],
      ['a bigint', 1n, 'the bigint 1n'],
    ].map(([name, value, kind]): [string, () => unknown, string] => [
      name as string,
      () => value,
      `the reward is ${kind}, expected a finite number`,
    ]),
    ['an object without parts', () => ({}), 'the reward is an object without parts, expected a number or named'],
    ['a Map for an agent', () => ({ team: 1, agents: { counter: new Map() } }), "the reward of 'counter' is a Map"],
    [
      'agents without a team',
      () => ({ agents: { counter: 1 } }),
      "has 'agents' and no 'team', expected { team, agents }",
    ],
    ['a text', () => '0.5', 'the reward is the text "0.5", expected a finite number: convert it with Number(...)'],
    [
      'a promise as a part',
      () => ({ right: Promise.resolve(1) }),
      "the part 'right' is a promise, expected a finite number: `await` it",
    ],
    [
      'a promise for the team',
      () => ({ team: Promise.resolve(1) }),
      'the reward is a promise, expected a finite number: `await` it',
    ],
    [
      'a text for an agent',
      () => ({ team: 1, agents: { counter: '1' } }),
      `the reward of 'counter' is the text "1", expected a finite number`,
    ],
    ['a list as a part', () => ({ team: { a: [1] } }), "the part 'a' is a list, expected a finite number"],
    [
      'an undefined part',
      () => ({ right: undefined }),
      "the part 'right' is undefined, expected a finite number: a branch returns nothing",
    ],
    [
      'an object that throws when it is read',
      () => Object.defineProperty({}, 'right', { enumerable: true, get: () => JSON.parse('{') }),
      'JSON at position 1',
    ],
    [
      'an object of too many parts',
      () => Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [i, 1])),
      'the reward has 100000 parts, expected at most 100',
    ],
  ])('that is %s is named', async (_, reward, message) => {
    const { failure, turns } = await played(counts, reward);
    expect(failure).toMatchObject({ reason: 'reward', message: expect.stringContaining(message) });
    expect(turns).toHaveLength(1);
  });

  it('that throws is asked again with the outcome as `play` returned it', async () => {
    let tries = 0;
    const votes = ({ outcome }: { outcome: string[] }) => {
      const vote = outcome.shift();
      if (tries++ === 0) throw new Error('busy');
      return Number(vote);
    };
    const play: Play = async ({ agents: { counter } }) => [(await counter('1')).text, '0'];
    const { score } = await played(play, votes as () => unknown, { rewardRetries: 1 });
    expect([score.team, tries]).toEqual([7, 2]);
  });

  it('that throws is asked again, with pauses if the network is the cause', async () => {
    await onFakeClock(async (pass) => {
      let tries = 0;
      const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:9'), { code: 'ECONNREFUSED' });
      const reward = () => {
        if (++tries < 3) throw new TypeError('fetch failed', { cause: refused });
        return 1;
      };
      const over = played(counts, reward, { rewardRetries: 2, timeoutMs: 60_000 });
      await eventually(() => tries > 0);
      await pass(499);
      expect(tries).toBe(1);
      await pass(1);
      expect(tries).toBe(2);
      await pass(1000);
      expect(tries).toBe(3);
      expect((await over).score.team).toBe(1);
    });
  });

  it('that throws again and again fails the episode with its cause and the number of tries', async () => {
    let tries = 0;
    const reward = () => {
      tries++;
      throw new Error('no scorer', { cause: new Error('no key') });
    };
    const { failure } = await played(counts, reward, { rewardRetries: 2 });
    expect(tries).toBe(3);
    expect(failure).toMatchObject({ reason: 'reward', message: 'no scorer (no key) (the last of 3 tries)' });
  });

  it('that is wrong without an error is not asked again', async () => {
    let tries = 0;
    const reward = () => {
      tries++;
      return Number.NaN;
    };
    await played(counts, reward, { rewardRetries: 2 });
    expect(tries).toBe(1);
  });

  it('that does not come in time leaves only the score missing', { tags: 'verify' }, async () => {
    const { failure } = await onFakeClock(async (pass) => {
      let isAsked = false;
      const reward = () => {
        isAsked = true;
        return new Promise<never>(() => {});
      };
      const over = played(counts, reward, { timeoutMs: 30 });
      await eventually(() => isAsked);
      await pass(2000); // what is left of the reward has a second to end
      return over;
    });
    expect(failure).toEqual({ reason: 'timeout', message: 'not over after 30 ms', scoring: true });
  });
});

describe('an output that does not fit', () => {
  /** The same misfit, read by the parser of an agent and by `play`. */
  const read = async (by: 'parse' | 'play', misfit: (text: string) => unknown, text: string) => {
    const whole = { reader: agent({ invalidPenalty: 0.25, ...(by === 'parse' ? { parse: misfit } : {}) }) };
    const team = defineTeam({
      task: z.unknown(),
      agents: whole,
      play: async ({ agents: { reader } }) => {
        const reply = await reader('1');
        return by === 'parse' ? reply.value : misfit(reply.text);
      },
      reward: () => 1,
    }) as unknown as Team;
    const context = scriptedContext(
      team,
      scriptedSampler(() => text),
    );
    return playEpisode(context, { team, task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 });
  };

  it.each<[string, (text: string) => unknown, string]>([
    ['JSON', (text) => JSON.parse(text), 'x'],
    ['a schema', (text) => z.coerce.number().parse(text), 'x'],
    ['JSON that is cut', (text) => z.object({ n: z.number() }).parse(JSON.parse(text)), '{"n": 1'],
    ['JSON of another form', (text) => z.object({ n: z.number() }).parse(JSON.parse(text)), '{"m": 1}'],
    [
      'an error with the cause',
      (text) => {
        try {
          return JSON.parse(text);
        } catch (cause) {
          throw new Error('no number', { cause });
        }
      },
      'x',
    ],
    ['no base64', (text) => atob(`${text}%`), 'x'],
    ['no date', (text) => new Date(text).toISOString(), 'x'],
    ['no address', (text) => new URL(text), 'x'],
    ['no pattern', (text) => new RegExp(text), '('],
    ['no length', (text) => 'a'.repeat(Number(text)), '-1'],
    [
      'several errors in one',
      (text) => {
        throw new AggregateError([new Error('first'), new SyntaxError(text)], 'no candidate fits');
      },
      'x',
    ],
    [
      'an error that quotes half a megabyte of JSON',
      () => {
        throw new SyntaxError('"a" '.repeat(150_000));
      },
      'x',
    ],
  ])('%s: is the same failure by a parser as by play, with the turn and its penalty', async (_, misfit, text) => {
    for (const by of ['parse', 'play'] as const) {
      const episode = await read(by, misfit, text);
      expect(episode.failure, by).toMatchObject({ reason: 'invalid-output', agent: 'reader' });
      expect(episode.turns, by).toMatchObject([{ text, valid: false, penalty: 0.25 }]);
      expect(isLesson(episode), by).toBe(true);
    }
  });

  const found = (text: string) => text.match(/n = (\d+)/) as RegExpMatchArray;
  class Unfit extends Error {}
  it.each<[string, (text: string) => unknown]>([
    ['no match', (text) => found(text)[1]],
    [
      'no match to take apart',
      (text) => {
        const [, n] = found(text);
        return n;
      },
    ],
    ['no line', (text) => (text.split('\n')[1] as string).trim()],
    ['no date', (text) => new Date(text).toISOString()],
    ['no whole number', (text) => BigInt(text)],
    ['no number of digits', (text) => (1).toFixed(Number(`1${text.length}00`))],
    ['no encoding', () => decodeURIComponent('%')],
    [
      'an error of its own',
      () => {
        throw new Unfit('no answer');
      },
    ],
    [
      'a text',
      () => {
        throw 'no answer';
      },
    ],
    [
      'nothing',
      () => {
        throw undefined;
      },
    ],
  ])('each error that a parser throws about its text is a lesson: %s', async (_, misfit) => {
    const episode = await read('parse', misfit, 'x');
    expect(episode.failure).toMatchObject({ reason: 'invalid-output', agent: 'reader' });
    expect(episode.turns).toMatchObject([{ text: 'x', valid: false, penalty: 0.25 }]);
    expect(isLesson(episode)).toBe(true);
  });

  it.each<[string, (text: string) => unknown]>([
    ['a function that does not exist', (text) => (text as unknown as { trimm: () => string }).trimm()],
    ['a name that does not exist', () => (globalThis as unknown as { eval: (code: string) => unknown }).eval('answr')],
    ['a parser that is async', async () => 1],
    [
      'a schema that is async',
      (text) =>
        z
          .string()
          .refine(async () => true)
          .parse(text),
    ],
    [
      'a constant that changes',
      () => {
        throw new TypeError('Assignment to constant variable.');
      },
    ],
  ])('a mistake of a parser is none, and its turn stays too: %s', async (_, mistake) => {
    const episode = await read('parse', mistake, 'x');
    expect(episode.failure).toMatchObject({ reason: 'error', agent: 'reader' });
    expect(episode.turns).toHaveLength(1);
    expect(isLesson(episode)).toBe(false);
  });

  it('no end of calls in play is a mistake, and in a parser may follow from its text', async () => {
    const deep = (text: string): string => `(${deep(text)}`;
    expect((await read('play', deep, 'x')).failure?.reason).toBe('error');
    expect((await read('parse', deep, 'x')).failure?.reason).toBe('invalid-output');
  });

  it.each([
    ...['LengthFinishReasonError', 'AI_NoSuchToolError', 'AI_InvalidToolArgumentsError', 'ToolInputParsingException'],
    ...['ValiError', 'ValidationError', 'TraversalError', 'ParseError', 'YAMLParseError', 'TomlError', 'CsvError'],
    ...['JSONRepairError', 'MalformedJSON'],
  ])('a class of errors may keep the name Error: %s', async (name) => {
    const { [name]: Thrown = Error } = { [name]: class extends Error {} };
    const throws = () => {
      throw new Thrown('no answer');
    };
    for (const by of ['parse', 'play'] as const)
      expect((await read(by, throws, 'x')).failure, by).toMatchObject({ reason: 'invalid-output', agent: 'reader' });
  });

  it('is the output that a guardrail names, and not the verdict of an agent that it asked', async () => {
    const episode = await played(
      async ({ agents: { talker } }) => {
        const { text: agentOutput } = await talker('a');
        await talker('Is it good?');
        const name = 'OutputGuardrailTripwireTriggered';
        throw Object.assign(new Error('triggered'), { name, result: { agentOutput } });
      },
      () => 1,
      {},
      ({ index }) => (index === 0 ? 'bad words' : 'no'),
    );
    expect(episode.failure).toMatchObject({ reason: 'invalid-output', agent: 'talker' });
    expect(episode.turns.map(({ valid }) => valid)).toEqual([false, true]);
  });

  it.each<[string, (text: string) => string, string, string]>([
    ['whole', (text) => text, 'no numbers', 'fine'],
    ['cut off', (text) => text, '{"n": 1', '{"n": 2}'],
    ['out of its answer', (text) => text.slice(3), 'n: none', 'm: fine'],
  ])(
    'is of the agent whose text JSON.parse refused, of agents that were asked at once: %s',
    async (_, cut, bad, good) => {
      const { failure, turns } = await played(
        async ({ agents: { caller, talker } }) => {
          const [first] = await Promise.all([caller('first'), talker('second')]);
          return JSON.parse(cut(first.text));
        },
        () => 1,
        {},
        ({ prompt }) => (prompt.includes('first') ? bad : good),
      );
      expect(failure).toMatchObject({ reason: 'invalid-output', agent: 'caller' });
      expect(turns.map(({ agent: name, valid }) => [name, valid])).toEqual([
        ['caller', false],
        ['talker', true],
      ]);
    },
  );

  it.each([
    [{ id: 'STRUCTURED_OUTPUT_TRUNCATED' }, 'invalid-output'], // Mastra's
    [{ code: 'GUARDRAIL_OUTPUT_BLOCKED' }, 'invalid-output'], // VoltAgent's
    [{ code: 'GUARDRAIL_INPUT_BLOCKED' }, 'error'],
  ])('may be named by a code or an id: %j', async (fields, reason) => {
    const { failure } = await played(async ({ agents: { talker } }) => {
      await talker('a');
      throw Object.assign(new Error('no'), fields);
    });
    expect(failure?.reason).toBe(reason);
  });

  it.each([
    ['ModelBehaviorError', 'cut off', 'invalid-output'], // OpenAI Agents' for a response that is incomplete
    ['LengthFinishReasonError', 'cut off', 'invalid-output'],
    ['ModelBehaviorError', 'whole', 'error'],
    ['SyntaxError', 'cut off', 'error'],
  ])('is an answer that a framework refuses because it was cut off: %s, %s', async (name, end, reason) => {
    const episode = await played(
      async ({ agents: { counter } }) => {
        await counter('1');
        throw Object.assign(new Error('no'), { name });
      },
      () => 1,
      {},
      () => (end === 'whole' ? '7' : [...bytesTokenizer().encode('7')]),
    );
    expect(episode.failure?.reason).toBe(reason);
    expect(episode.turns).toMatchObject([{ valid: reason === 'error', penalty: reason === 'error' ? 0 : 0.25 }]);
  });

  it.each<[string, (signal: AbortSignal) => unknown, string]>([
    ['a TimeoutError', ({ reason }) => reason, 'timeout'],
    ["OpenAI's", () => new (class APIConnectionTimeoutError extends Error {})('Request timed out.'), 'timeout'],
    ['another error', () => new Error('broken'), 'error'],
  ])('is none if the program gave the call up at its time limit: %s', async (_, thrown, reason) => {
    const stop = new AbortController();
    const { failure } = await played(
      async ({ agents: { counter } }) => {
        await counter('1', { signal: stop.signal }).catch(() => {
          throw thrown(stop.signal);
        });
      },
      () => 1,
      {},
      () => {
        stop.abort(new DOMException('too late', 'TimeoutError'));
        return new Promise<string>(() => {});
      },
    );
    expect(failure?.reason).toBe(reason);
    if (reason === 'timeout')
      expect(failure).toMatchObject({
        agent: 'counter',
        message: expect.stringMatching(/^a call of 'counter' was given up at a time limit of the program: /),
      });
  });

  it('is not the time limit of a call that was given up, if the program went on with other calls', async () => {
    const stop = new AbortController();
    const { failure } = await played(
      async ({ agents: { counter } }) => {
        const slow = counter('1', { signal: stop.signal });
        stop.abort();
        await slow.catch(() => counter('2'));
        throw new DOMException('the database is slow', 'TimeoutError');
      },
      () => 1,
    );
    expect(failure).toMatchObject({ reason: 'error', message: 'the database is slow' });
  });

  const parses: Play = async ({ agents: { counter } }) => JSON.parse((await counter('1')).text);

  it('makes a failure of its own kind, with the agent and the penalty of the turn', async () => {
    const { failure, turns, score } = await played(
      parses,
      () => 1,
      {},
      () => '{',
    );
    expect(failure).toMatchObject({ reason: 'invalid-output', agent: 'counter' });
    expect(failure?.message).toMatch(/^the output of 'counter' does not fit: /);
    expect(turns).toMatchObject([{ valid: false, penalty: 0.25 }]);
    expect(score.team).toBe(0);
  });

  it('is none if the turn was valid, or the error is of another kind', async () => {
    const other: Play = async ({ agents: { counter } }) => (await counter('1')).value?.toFixed().at(1)?.at(2)?.at(3);
    expect(
      (
        await played(
          other,
          () => 1,
          {},
          () => 'x',
        )
      ).failure,
    ).toBeUndefined();
    const mistake: Play = async ({ agents: { counter } }) => {
      await counter('1');
      return (undefined as unknown as { answer: string }).answer;
    };
    expect(
      (
        await played(
          mistake,
          () => 1,
          {},
          () => 'x',
        )
      ).failure?.reason,
    ).toBe('error');
    const configuration: Play = async ({ agents: { counter } }) => {
      await counter('1');
      return JSON.parse('{');
    };
    expect(
      (
        await played(
          configuration,
          () => 1,
          {},
          () => '7',
        )
      ).failure?.reason,
    ).toBe('error');
  });
});

describe('an error that a package threw', () => {
  it("is shown where it was thrown, and then by the team's own lines alone", () => {
    const error = new Error('no object');
    const frames = ['/app/node_modules/ai/output.ts:132:15', '/app/node_modules/ai/text.ts:9:1', '/app/desk.ts:22:22'];
    error.stack = ['Error: no object', ...frames.map((place) => `    at async of (${place})`)].join('\n');
    const shown = (thrown: Error) =>
      EpisodeFailure.of('error', thrown)
        .record.stack?.split('\n')
        .map((at) => at.trim());
    expect(shown(error)).toEqual([`at async of (${frames[0]})`, `at async of (${frames[2]})`]);
  });
});

describe('the limit of a framework', () => {
  const limited =
    (name: string, cause?: unknown): Play =>
    async ({ agents: { counter } }) => {
      await counter('1');
      await counter('2');
      throw Object.assign(new Error('the limit of 2 is reached', { cause }), { name });
    };

  it.each([
    ['GraphRecursionError', undefined],
    ['MaxTurnsExceededError', undefined],
    ['ModelCallLimitMiddlewareError', undefined],
    ['ToolCallLimitExceededError', undefined],
    ['TeamError', Object.assign(new Error('inner'), { name: 'GraphRecursionError' })],
  ])('%s: ends the episode with too many turns, which the agents learn from', async (name, cause) => {
    const episode = await played(limited(name, cause));
    expect(episode.failure).toMatchObject({
      reason: 'too-many-turns',
      message: expect.stringMatching(/^the agents did not come to an end: the limit of 2 is reached/),
    });
    expect(isLesson(episode)).toBe(true);
    expect(episode.turns.map(({ valid }) => valid)).toEqual([true, true]);
  });

  it.each([
    ['calls a tool', '@look()', 'too-many-turns'],
    ['is cut off', [120], 'invalid-output'],
    ['is whole', 'x', 'error'],
  ])('is missing output, under any name of a framework, after an answer that %s', async (_, answer, reason) => {
    const { failure } = await played(
      async ({ agents: { caller } }) => {
        await caller('a', { tools: [{ name: 'look', parameters: { type: 'object' } }] });
        const originalError = Object.assign(new Error('No output generated.'), { name: 'AI_NoOutputGeneratedError' });
        throw Object.assign(new Error('Structured output was requested'), { originalError }); // VoltAgent's
      },
      () => 1,
      {},
      () => answer,
    );
    expect(failure?.reason).toBe(reason);
  });

  it('is a mistake of the team if no agent that trains has written a turn', async () => {
    const episode = await played(async () => {
      throw Object.assign(new Error('no way'), { name: 'GraphRecursionError' });
    });
    expect(episode.failure?.reason).toBe('error');
    expect(isLesson(episode)).toBe(false);
  });
});

it.each([
  ['too-many-turns', {}, true],
  ['overlong', {}, true],
  ['invalid-output', {}, true],
  ['too-many-turns', { scoring: true }, false],
  ['error', {}, false],
  ['timeout', {}, false],
  ['reward', {}, false],
  ['backend', {}, false],
] as const)('a failure for %s %o is a lesson: %s', async (reason, facts, lesson) => {
  const { turns } = await played(counts);
  const failure = { reason, message: '', ...facts };
  expect(isLesson({ turns, failure })).toBe(lesson);
  expect(isLesson({ turns: [], failure })).toBe(false); // what no agent wrote teaches none
});
