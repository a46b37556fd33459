import { runInNewContext } from 'node:vm';
import { ArgumentError } from '@drmas/engine/errors';
import { assistant, type JsonSchema, type Message, user } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { playScripted, scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { type Ask, type AskOptions, defineTeam, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';
import { promptMessages } from './prompt-messages.js';

/** Plays an episode that makes one call with each of these options. */
async function played(options: readonly (AskOptions | undefined)[]) {
  const team = defineTeam({
    task: z.unknown(),
    agents: { counter: agent({}) },
    async play({ agents }) {
      for (const each of options) await (agents.counter as Ask)('go on', each);
    },
    reward: () => 1,
  }) as unknown as Team;
  const context = scriptedContext(
    team,
    scriptedSampler(() => '1'),
  );
  return playEpisode(context, { team, task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 });
}

describe('the step that a call belongs to', () => {
  it('is kept with its turn if the team names it', async () => {
    const { turns } = await played([{ envStep: 0 }, { envStep: 0, observation: 'start' }, { envStep: 4 }]);
    expect(turns.map(({ envStep }) => envStep)).toEqual([0, 0, 4]);
    for (const turn of (await played([undefined, {}])).turns) expect(turn).not.toHaveProperty('envStep');
  });

  it.each([
    [[{ envStep: -1 }], 'counter.envStep: expected a number >= 0, got -1'],
    [[{ envStep: 0.5 }], 'counter.envStep: expected an integer, got 0.5'],
    [[{ envStep: 1 }, {}], 'counter: expected the envStep of every call of the episode, or of none'],
    [[undefined, { envStep: 1 }], 'counter: expected the envStep of every call of the episode, or of none'],
  ])('is refused in %j', async (options, message) => {
    const { failure, turns } = await played(options);
    expect(failure).toEqual({ reason: 'error', message, agent: 'counter' });
    expect(turns).toHaveLength(options.length - 1);
  });
});

it.each(['temperature', 'topP', 'topK', 'stop', 'seed', 'maxToken'])(
  'refuses %s as an option of a call, where it would have no effect',
  async (option) => {
    const { failure } = await played([{ [option]: 1 }]);
    expect(failure).toMatchObject({ reason: 'error', agent: 'counter' });
    expect(failure?.message).toContain(`counter.${option}: unknown key '${option}'`);
  },
);

it('refuses a signal that is none', async () => {
  expect((await played([{ signal: 'stop' as never }])).failure?.message).toBe(
    'counter.signal: expected an AbortSignal',
  );
});

it('makes one message of a text and puts the system prompt first', () => {
  expect(promptMessages('Solve', '1+1')).toEqual([{ role: 'system', content: 'Solve' }, user('1+1')]);
  expect(promptMessages(undefined, [user('1+1'), assistant('')])).toEqual([user('1+1'), assistant('')]);
});

it.each([
  [3, 'expected a text or a list of messages, got a value of type number'],
  [undefined, 'expected a text or a list of messages, got undefined'],
  [null, 'expected a text or a list of messages, got null'],
  [[user('1+1'), { role: 'user' }], 'message 2: expected a text as its content, got undefined'],
  [[{ role: 'user', content: { text: '1' } }], 'message 1: expected a text as its content, got a value of type object'],
  [['1+1'], 'message 1: expected a text as its content, got undefined'],
  [
    [{ role: 'developer', content: '' }],
    'message 1: expected one of the roles system, user, assistant, tool, got "dev',
  ],
  [[{ role: 'assistant', content: '', tool_calls: [{}] }], 'message 1: expected toolCalls, got tool_calls'],
  [
    [{ role: 'assistant', content: '', reasoning_content: 'a' }],
    'message 1: expected reasoning, got reasoning_content',
  ],
  [[{ role: 'assistant', content: '', reasoning: {} }], 'message 1: expected reasoning as a text, got {}'],
  [[{ role: 'tool', content: '', tool_call_id: 'a' }], 'message 1: expected toolCallId, got tool_call_id'],
  [[{ role: 'assistant', content: '', toolCalls: {} }], 'expected toolCalls as a list of { id, name, arguments }'],
  [
    [{ role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'add', arguments: { a: 1 } }] }],
    'expected toolCalls as a list of { id, name, arguments } with texts, got [{"id":"a",',
  ],
])('refuses %j, which a template would write down as it is', (input, message) => {
  const call = () => promptMessages('Solve', input as unknown as Message[]);
  expect(call).toThrow(ArgumentError);
  expect(call).toThrow(message);
});

it.each([null, undefined, '', []])('reads messages whose further fields are %j as those without them', (none) => {
  const absent = { tool_calls: none, reasoning_content: none, tool_call_id: none };
  const written = [{ role: 'assistant', content: 'a', ...absent }] as unknown as Message[];
  expect(promptMessages(undefined, written)).toMatchObject([assistant('a')]);
});

it('reads rows with null for absent fields, and keeps messages of classes and of other realms as they were', () => {
  const nulls = { reasoning: null, toolCalls: null, toolCallId: null, name: null, turnId: null };
  const row = { ...user('a'), ...nulls } as unknown as Message;
  class Said implements Message {
    readonly role = 'user';
    content = 'a';
  }
  const messages = [new Said(), runInNewContext("({ role: 'user', content: 'a' })") as Said];
  const read = promptMessages(undefined, [row, ...messages]);
  for (const message of messages) message.content = 'changed';
  expect(read).toEqual([user('a'), user('a'), user('a')]);
});

const schema = z.toJSONSchema(z.object({ ok: z.boolean(), why: z.array(z.object({ n: z.number().min(1) })) }));

async function turnOf(response: string, responseSchema: JsonSchema = schema, system?: string) {
  const team = defineTeam({
    task: z.object({}),
    agents: {
      judge: agent({ ...(system === undefined ? {} : { system }), parse: (text) => text, invalidPenalty: 0.5 }),
    },
    play: ({ agents: { judge } }) => judge('well?', { responseSchema }),
    reward: () => 1,
  });
  const { turns } = await playScripted(team, {}, { judge: [response] });
  if (turns[0] === undefined) throw new Error('there is no turn');
  return turns[0];
}

describe('a response with a schema', () => {
  it('is quoted at the end of the first system message', async () => {
    const line = `Answer with JSON of this schema alone: ${JSON.stringify(schema)}`;
    const question = { role: 'user', content: 'well?' };
    expect((await turnOf('x')).messages).toEqual([{ role: 'system', content: line }, question]);
    expect((await turnOf('x', schema, 'Judge.')).messages).toEqual([
      { role: 'system', content: `Judge.\n${line}` },
      question,
    ]);
  });

  it('is read by the parser if it fits', async () => {
    const text = '{"ok": true, "why": [{"n": 1}]}';
    expect(await turnOf(text)).toMatchObject({ valid: true, value: text, penalty: 0 });
  });

  it.each([
    'yes',
    '{"ok": true',
    '{"ok": true}',
    '{"ok": 1, "why": []}',
    '{"ok": true, "why": [{"n": 0}]}',
    '{"ok": true, "why": [], "more": 1}',
    `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
  ])('is an invalid turn if it does not fit: %s', async (text) => {
    expect(await turnOf(text)).toMatchObject({ valid: false, value: undefined, penalty: 0.5 });
  });

  it('is any JSON if the schema has keywords that zod does not know', async () => {
    expect(await turnOf('[1]', { $ref: '#/nowhere' })).toMatchObject({ valid: true });
    expect(await turnOf('1]', { $ref: '#/nowhere' })).toMatchObject({ valid: false });
  });

  it('is refused if it is not a schema', async () => {
    await expect(turnOf('x', 'a schema' as never)).rejects.toThrow(
      'responseSchema: expected a JSON schema as plain data',
    );
  });
});

describe('a value that is penalised', () => {
  it('reaches the team, and its turn is invalid', async () => {
    const parse = (text: string) =>
      text.startsWith('yes') ? { value: 'yes', penalised: true as const } : text || undefined;
    const replies: unknown[] = [];
    const team = defineTeam({
      task: z.object({}),
      agents: { judge: agent({ parse, invalidPenalty: 0.5 }) },
      async play({ agents: { judge } }) {
        for (const question of ['1', '2', '3']) {
          const { value, valid } = await judge(question);
          replies.push([value, valid]);
        }
      },
      reward: () => 1,
    });
    const { turns } = await playScripted(team, {}, { judge: ['yes!', 'no', ''] });
    expect(replies).toEqual([
      ['yes', false],
      ['no', true],
      [undefined, false],
    ]);
    expect(turns.map(({ value, valid, penalty }) => [value, valid, penalty])).toEqual([
      ['yes', false, 0.5],
      ['no', true, 0],
      [undefined, false, 0.5],
    ]);
  });
});
