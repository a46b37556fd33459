import type { TextBackend, TextRequest, Utterance } from '@drmas/engine/contract';
import { assistant, type Message, type Tool, toolResult, user } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { integer } from '../team/parsers.js';
import { type Ask, type AskOptions, defineTeam, type Reply, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';

const add: Tool = {
  name: 'add',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
};

type Play = (adder: Ask<number | undefined>, talker: Ask) => Promise<unknown>;

function teamOf(play: Play): Team {
  return defineTeam({
    task: z.unknown(),
    agents: { adder: agent({ parse: integer, tools: 'plain', invalidPenalty: 0.5 }), talker: agent() },
    play: ({ agents: { adder, talker } }) => play(adder, talker),
    reward: () => 1,
  }) as unknown as Team;
}

const episodeRequest = { task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 } as const;

async function played(lines: readonly string[], play: Play) {
  const team = teamOf(play);
  const sampler = scriptedSampler(({ index }) => lines[index] ?? '');
  const episode = await playEpisode(scriptedContext(team, sampler), { team, ...episodeRequest });
  return { ...episode, prompts: sampler.calls.map(({ prompt }) => prompt), requests: sampler.calls };
}

async function reply(line: string, options: AskOptions = { tools: [add] }) {
  const { outcome, failure, turns } = await played([line], (adder) => adder('1+2', options));
  expect(failure).toBeUndefined();
  return { reply: outcome as Reply, turn: turns[0] };
}

describe('an agent with tools', () => {
  it('calls them, reads their results, and answers', async () => {
    const episode = await played(['Hm.\n@add( 1, 2)', '3'], async (adder) => {
      const messages: Message[] = [user('1+2')];
      const first = await adder(messages, { tools: [add] });
      messages.push(assistant(first), ...first.toolCalls.map((call) => toolResult(call, '3')));
      return [first, await adder(messages, { tools: [add] })];
    });
    expect(episode.failure).toBeUndefined();
    const [turn, last] = episode.turns;
    const toolCalls = [{ id: `call_${turn?.id}_0`, name: 'add', arguments: '{"a":1,"b":2}' }];
    expect(turn).toMatchObject({ tools: [add], content: 'Hm.', toolCalls, valid: true, value: undefined, penalty: 0 });
    expect(episode.outcome).toMatchObject([
      { id: turn?.id, text: 'Hm.\n@add( 1, 2)', content: 'Hm.', toolCalls, valid: true, value: undefined },
      { id: last?.id, text: '3', content: '3', toolCalls: [], valid: true, value: 3 },
    ]);
    const list = '<|system|>@add(a, b)<|end|><|user|>1+2<|end|><|assistant|>';
    expect(episode.prompts).toEqual([list, `${list}Hm.\n@add( 1, 2)<|end|><|user|>3<|end|><|assistant|>`]);
    expect(last?.messages.slice(1)).toEqual([
      { role: 'assistant', content: 'Hm.', toolCalls, turnId: turn?.id },
      { role: 'tool', content: '3', toolCallId: toolCalls[0]?.id, name: 'add' },
    ]);
  });

  it.each(['@add(1', '@sub(1, 2)', '@add(1, x)', '@add(1)'])('pays for %j, which is a text', async (line) => {
    const { reply: invalid, turn } = await reply(line);
    expect(invalid).toMatchObject({ text: line, content: line, toolCalls: [], valid: false, value: undefined });
    expect(turn).toMatchObject({ valid: false, penalty: 0.5 });
    expect(turn).not.toHaveProperty('toolCalls');
  });

  it('is read by its parser if it calls none, also with tool choice none', async () => {
    expect((await reply('7')).reply).toMatchObject({ valid: true, value: 7, toolCalls: [] });
    expect((await reply('@add(1, 2)', {})).reply).toMatchObject({ valid: false, toolCalls: [] });
    const none = await reply('@add(1, 2)', { tools: [add], toolChoice: 'none' });
    expect(none.reply).toMatchObject({ valid: false, content: '@add(1, 2)', toolCalls: [] });
  });

  it.each([
    ['required', 'add(1, 2)', '@'],
    [{ name: 'add' }, '1, 2)', '@add('],
  ] as const)('has to call one with tool choice %j: the beginning is context', async (toolChoice, line, opening) => {
    const { reply: forced, turn } = await reply(line, { tools: [add], toolChoice });
    expect(forced).toMatchObject({ valid: true, text: '@add(1, 2)', toolCalls: [{ arguments: '{"a":1,"b":2}' }] });
    const { encode, stopTokens } = bytesTokenizer();
    expect(turn?.prompt.slice(-opening.length)).toEqual(encode(opening));
    expect(turn).toMatchObject({ prefilled: opening.length, response: [...encode(line), ...stopTokens] });
    expect((await reply(')', { tools: [add], toolChoice })).reply.valid).toBe(false);
  });

  it('may be given fewer tokens than its own, and never more', async () => {
    const { requests } = await played(['1', '2'], async (adder) => {
      await adder('a', { maxTokens: 3 });
      await adder('b', { maxTokens: 300 });
    });
    expect(requests.map(({ request }) => request.maxTokens)).toEqual([3, 16]);
  });

  it('keeps its reasoning apart', async () => {
    const { reply: thoughtful, turn } = await reply('<think>\nadd them\n</think>\n\n@add(1, 2)');
    expect(thoughtful).toMatchObject({ reasoning: 'add them', content: '', toolCalls: [{ name: 'add' }] });
    expect(turn).toMatchObject({ reasoning: 'add them', content: '' });
    for (const begin of ['<think>', '[THINK]'])
      expect((await reply(`${begin}and so on`)).reply).toMatchObject({
        reasoning: 'and so on',
        content: '',
        valid: false,
      });
  });

  it('keeps apart what it thinks if its template opens the thinking, also when it is cut off', async () => {
    const bytes = bytesTokenizer();
    const chat: typeof bytes.chat = (...given) => [...bytes.chat(...given), ...bytes.encode('<think>\n')];
    const team = teamOf((adder) => adder('1+2'));
    const thinking = (line: string) =>
      playEpisode(
        scriptedContext(
          team,
          scriptedSampler(() => line, { ...bytes, chat }),
        ),
        { team, ...episodeRequest },
      );
    const [whole, cut] = [await thinking('add them</think>3'), await thinking('add th')];
    expect(whole.turns[0]).toMatchObject({ reasoning: 'add them', content: '3' });
    expect(cut.turns[0]).toMatchObject({ text: 'add th', reasoning: 'add th', content: '', valid: false });
    const [number] = (await thinking('3')).turns; // which the parser must not take for the answer
    expect(number).toMatchObject({ text: '3', reasoning: '3', content: '', valid: false });
  });

  it('may write the end of thinking in its answer and in its calls', async () => {
    expect((await reply('a </think> b')).turn).toMatchObject({ text: 'a </think> b' });
    expect((await reply('a </think> b')).turn).not.toHaveProperty('reasoning');
    const { turn } = await reply('Write </think>.\n@add(1, 2)');
    expect(turn).toMatchObject({ content: 'Write </think>.', toolCalls: [{ name: 'add' }] });
  });

  it.each([
    [{ tools: [add, add] }, 'adder: two tools have the same name: add, add'],
    [{ tools: [add], toolChoice: { name: 'sub' } }, 'adder: toolChoice is {"name":"sub"}, but the tools are: add'],
    [{ toolChoice: 'required' }, 'adder: toolChoice is "required", but the tools are: none'],
    [{ toolChoice: 'always' }, "adder.toolChoice: expected 'auto', 'none', 'required' or { name }"],
    [{ tools: [{ name: 'x' }] }, 'adder.tools.0.parameters: expected a JSON schema as plain data'],
    [{ tools: [{ ...add, parameters: z.object({}) }] }, 'adder.tools.0.parameters: expected a JSON schema as plain'],
    [{ tools: [{ ...add, name: '' }] }, 'adder.tools.0.name: expected a text that is not empty'],
  ])('is not called with %j', async (options, message) => {
    const { failure } = await played([], (adder) => adder('x', options as AskOptions));
    expect(failure).toMatchObject({ reason: 'error', agent: 'adder', message: expect.stringContaining(message) });
  });

  it('may be offered tools with fields of their own, such as the function that runs them', async () => {
    for (const fields of [{ run: () => 3 }, { strict: null }, { strict: 'yes' }]) {
      const { turn } = await reply('@add(1, 2)', { tools: [{ ...add, ...fields } as Tool] });
      expect(turn?.toolCalls).toMatchObject([{ name: 'add' }]);
      expect(JSON.stringify(turn?.tools)).toBe(JSON.stringify([add]));
    }
  });

  it('has a format in which it calls them', async () => {
    const { failure } = await played([], (_, talker) => talker('x', { tools: [add] }));
    expect(failure?.message).toContain(
      "talker: is offered tools, but has no format for calls; expected agent({ tools: 'p",
    );
  });
});

describe('an endpoint with tools', () => {
  async function answered(answer: Utterance, options: AskOptions = { tools: [add] }) {
    const requests: TextRequest[] = [];
    const endpoint: TextBackend = {
      complete: async (request) => {
        requests.push(request);
        return answer;
      },
    };
    const team = teamOf((_, talker) => talker('1+2', options));
    const context = scriptedContext(
      team,
      scriptedSampler(() => ''),
      { policies: { talker: { endpoint }, adder: { endpoint } } },
    );
    return { requests, ...(await playEpisode(context, { team, ...episodeRequest })) };
  }

  const call = { id: 'theirs', name: 'add', arguments: '{"a": 1, "b": 2}' };

  it('is offered them, and its calls belong to a turn', async () => {
    const options: AskOptions = { tools: [add], toolChoice: 'required' };
    const { requests, outcome, turns } = await answered({ text: '', finishReason: 'stop', toolCalls: [call] }, options);
    expect(requests[0]).toMatchObject(options);
    expect(outcome).toMatchObject({ valid: true, toolCalls: [{ ...call, id: `call_${turns[0]?.id}_0` }] });
  });

  it('reads its reasoning and the data of its server with its calls again, which frameworks drop', async () => {
    const read: TextRequest['messages'][] = [];
    const providerData = { signature: 'AbC==' };
    const endpoint: TextBackend = {
      complete: async ({ messages }) => {
        read.push(messages);
        const toolCalls = messages.length === 1 ? [call] : [];
        return { text: '', reasoning: 'add them', finishReason: 'stop', toolCalls, providerData };
      },
    };
    const team = teamOf(async (_, talker) => {
      const { content, toolCalls } = await talker('1+2', { tools: [add] });
      const result = { role: 'tool', content: '3', toolCallId: toolCalls[0]?.id ?? '' } as const;
      await talker([user('1+2'), { role: 'assistant', content, toolCalls }, result]);
    });
    const policies = { talker: { endpoint }, adder: { endpoint } };
    const context = scriptedContext(
      team,
      scriptedSampler(() => ''),
      { policies },
    );
    const { turns } = await playEpisode(context, { team, ...episodeRequest });
    expect(read[1]?.map(({ reasoning }) => reasoning)).toEqual([undefined, 'add them', undefined]);
    expect(read[1]?.map((message) => message.providerData)).toEqual([undefined, providerData, undefined]);
    expect(Object.keys(turns[1]?.messages[1] ?? {})).toEqual(['role', 'content', 'toolCalls']);
  });

  it.each(['', ' '])('may call a tool without arguments by writing none: %j', async (none) => {
    const options: AskOptions = { tools: [{ name: 'now', parameters: { type: 'object', properties: {} } }] };
    const answer: Utterance = {
      text: '',
      finishReason: 'stop',
      toolCalls: [{ id: 'a', name: 'now', arguments: none }],
    };
    const { outcome } = await answered(answer, options);
    expect(outcome).toMatchObject({ valid: true, toolCalls: [{ name: 'now', arguments: '{}' }] });
  });

  it('writes an invalid turn if it calls another tool, or calls none though it had to', async () => {
    const other = { ...call, name: 'sub' };
    expect((await answered({ text: 'x', finishReason: 'stop', toolCalls: [other] })).outcome).toMatchObject({
      valid: false,
    });
    const required: AskOptions = { tools: [add], toolChoice: 'required' };
    expect((await answered({ text: 'x', finishReason: 'stop' }, required)).outcome).toMatchObject({ valid: false });
  });

  it('has seeds that depend on its prompt, tools and choice included', async () => {
    const seedOf = async (options: AskOptions) =>
      (await answered({ text: 'x', finishReason: 'stop' }, options)).requests[0]?.seed;
    const seeds = [{}, { tools: [add] }, { tools: [add], toolChoice: 'none' as const }];
    expect(new Set(await Promise.all(seeds.map(seedOf))).size).toBe(3);
    expect(await seedOf({ tools: [] })).toBe(await seedOf({}));
  });
});
