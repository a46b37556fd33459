import {
  assistant,
  type Message,
  system,
  type Tokenizer,
  type Tool,
  type Turn,
  toolResult,
  user,
} from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import type { ToolFormatName } from '@drmas/engine/tool-calls';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { miniTokenizer } from '../../../test/support/qwen3-mini.js';
import { chainsOf } from '../../method/training/samples/chains.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { type Ask, defineTeam, type Reply, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';
import { withoutStop } from './prompts/exact-ids.js';

const look: Tool = { name: 'look', parameters: { type: 'object', properties: { at: { type: 'object' } } } };

/** A part of a framework's memory: a message, or two that were one, and how the rollout is to know it. */
interface Kept {
  readonly messages: readonly Message[];
  readonly reply?: Reply;
  readonly by?: 'exact' | 'byText' | 'byCalls' | 'foreign';
}

type Rewrite = (memory: readonly Kept[], pick: (length: number) => number) => readonly Kept[];

/** Changes one whole reply of the memory. */
const atReply =
  (change: (message: Message, kept: Kept) => Pick<Kept, 'messages' | 'by'>): Rewrite =>
  (memory, pick) => {
    const whole = memory.filter(({ by, messages }) => by !== undefined && by !== 'foreign' && messages.length === 1);
    const chosen = whole[pick(whole.length)];
    return memory.map((kept) => (kept === chosen ? { ...kept, ...change(kept.messages[0] as Message, kept) } : kept));
  };

const respelled = (text: string) =>
  JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse()), null, 2);

const rewrites: Readonly<Record<string, Rewrite>> = {
  nothing: (memory) => memory,
  drop: (memory, pick) => memory.toSpliced(pick(memory.length), 1),
  reorder: (memory, pick) => {
    const at = pick(memory.length);
    return [...memory.slice(at), ...memory.slice(0, at)];
  },
  respell: atReply(({ toolCalls, ...message }) => {
    const calls = toolCalls?.map((call) => ({ ...call, arguments: respelled(call.arguments) }));
    return { messages: [{ ...message, ...(calls && { toolCalls: calls }) }] };
  }),
  /** A message without drmas's ids: only the text or the calls remain. */
  forget: atReply(({ turnId: _, toolCalls, ...message }) => {
    if (toolCalls === undefined) return { messages: [message], by: 'byText' };
    const calls = toolCalls.map((call, i) => ({ ...call, id: `theirs_${i}` }));
    return { messages: [{ ...message, toolCalls: calls }], by: 'byCalls' };
  }),
  change: atReply((message) => ({
    messages: [{ ...message, content: `${message.content}, so to say` }],
    by: 'foreign',
  })),
  split: atReply((message, kept) => {
    const { toolCalls, content, ...head } = message;
    if (kept.by !== 'exact' || toolCalls === undefined) return kept;
    return {
      messages: [
        { role: 'assistant', content },
        { ...head, content: '', toolCalls },
      ],
    };
  }),
  summarise: (memory, pick) => {
    const count = pick(memory.length);
    return [{ messages: [user(`summary of ${count}`)] }, ...memory.slice(count)];
  },
};

const responses = fc.record({
  noise: fc.array(fc.nat(999), { maxLength: 4 }),
  calls: fc.nat(2),
  spaces: fc.nat(2),
});
const rounds = fc.array(
  fc.record({
    rewrite: fc.constantFrom(...Object.keys(rewrites)),
    picks: fc.array(fc.nat(99), { minLength: 5, maxLength: 5 }),
    response: responses,
  }),
  { minLength: 2, maxLength: 7 },
);

type Rounds = typeof rounds extends fc.Arbitrary<infer Value> ? Value : never;

/** Plays a loop whose memory is rewritten before each call. */
async function played(list: Rounds, tokenizer: Tokenizer, format: ToolFormatName) {
  const fed: (readonly Kept[])[] = [];
  const team = defineTeam({
    task: z.unknown(),
    agents: { looker: agent({ tools: format }) },
    async play({ agents }) {
      const looker: Ask = agents.looker;
      let memory: readonly Kept[] = [{ messages: [system('Look.')] }, { messages: [user('What is there?')] }];
      for (const { rewrite, picks } of list) {
        let draws = 0;
        const pick = (length: number) => (picks[draws++ % picks.length] ?? 0) % Math.max(1, length);
        memory = rewrites[rewrite]?.(memory, pick) ?? memory;
        fed.push(memory);
        const reply = await looker(
          memory.flatMap(({ messages }) => messages),
          { tools: [look] },
        );
        const results = reply.toolCalls.map((call, i) => toolResult(call, `a box ${i}`));
        const next = results.length === 0 ? [user('And then?')] : results;
        memory = [
          ...memory,
          { messages: [assistant(reply)], reply, by: 'exact' },
          ...next.map((message) => ({ messages: [message] })),
        ];
      }
    },
    reward: () => 1,
  }) as unknown as Team;
  const sampler = scriptedSampler(({ index, request }) => {
    const { noise, calls, spaces } = list[index]?.response ?? { noise: [], calls: 0, spaces: 0 };
    const gap = ' '.repeat(spaces);
    const values = `{"at":${gap}{"y":${gap}1.0,"x":${index}}}`;
    const text = Array.from({ length: calls }, () =>
      format === 'plain'
        ? `\n@look(${values})`
        : `\n<tool_call>{"name": "look",${gap}"arguments": ${values}}</tool_call>`,
    ).join('');
    // Sampled tokens: some differ from the tokenisation of their text, and some are not text.
    const odd = noise.map((id) => id % tokenizer.vocabSize).filter((id) => !request.stopTokens.includes(id));
    const letters = [...`turn ${index}:${text}`].flatMap((letter) => tokenizer.encode(letter));
    return [...odd, ...letters, ...request.stopTokens.slice(0, 1)];
  }, tokenizer);
  const policies = { looker: sampler.policy('looker', 2 ** 20) };
  const task = { id: 't', data: {} };
  const episode = await playEpisode(scriptedContext(team, sampler, { policies }), {
    team,
    task,
    sample: 0,
    phase: 'training',
    step: 1,
  });
  expect(episode.failure).toBeUndefined();
  return { turns: episode.turns, fed, requests: sampler.calls.map(({ request }) => request) };
}

const sampledOf = ({ response, finishReason }: Turn, tokenizer: Tokenizer) =>
  withoutStop(response, finishReason, tokenizer);

/** The position at which one list contains another, from a start on; -1 if it does not. */
function placeOf(part: readonly number[], whole: readonly number[], from: number): number {
  for (let at = from; at + part.length <= whole.length; at++)
    if (part.every((id, i) => whole[at + i] === id)) return at;
  return -1;
}

describe.each([
  ['bytes', 'plain', bytesTokenizer(), 100],
  ['a Qwen3', 'hermes', miniTokenizer(), 20],
  ['a Qwen3 that does not think', 'hermes', miniTokenizer(undefined, { enable_thinking: false }), 15],
] as const)('a history that a framework rewrites, in %s', (_, format, tokenizer, numRuns) => {
  it('is read with the ids that were sampled, as far as the model wrote it', async () => {
    const seen = { exact: 0, byText: 0, byCalls: 0, foreign: 0 };
    await fc.assert(
      fc.asyncProperty(rounds, async (list) => {
        const { turns, fed, requests } = await played(list, tokenizer, format);
        expect(new Set(turns.map(({ id }) => id)).size).toBe(list.length);
        turns.forEach((turn, i) => {
          const { prompt, history } = turn;
          expect(requests[i]?.prompt).toEqual(prompt);
          const expected = { exact: 0, byText: 0, byCalls: 0, foreign: 0 };
          let at = 0;
          for (const { by, reply } of fed[i] ?? []) {
            if (by === undefined) continue;
            expected[by]++;
            seen[by]++;
            if (by === 'foreign') continue;
            const place = placeOf(sampledOf(turns[reply?.turn ?? -1] as Turn, tokenizer), prompt, at);
            expect(place).toBeGreaterThanOrEqual(at);
            at = place + sampledOf(turns[reply?.turn ?? -1] as Turn, tokenizer).length;
          }
          const none = Object.values(expected).every((count) => count === 0);
          expect(history).toEqual(none ? undefined : expected);
          const before = turns[i - 1];
          const goesOn = ['nothing', 'respell', 'split'].includes(list[i]?.rewrite ?? '') && before !== undefined;
          if (!goesOn) return;
          const chain = [...before.prompt, ...before.response];
          expect(prompt.slice(0, chain.length)).toEqual(chain);
        });
      }),
      { numRuns, seed: 7 },
    );
    for (const [kind, count] of Object.entries(seen)) expect([kind, count > 3]).toEqual([kind, true]);
  });
});

describe('a reply that another agent reads', () => {
  const team = defineTeam({
    task: z.unknown(),
    agents: { boss: agent(), helper: agent() },
    play: async ({ agents: { boss, helper } }) => {
      const reply = await boss('Who is there?');
      await helper([system('Help.'), user('Who is there?'), assistant(reply), user('And now?')]);
    },
    reward: () => 1,
  }) as unknown as Team;
  const request = { team, task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 } as const;

  it('is read with the ids that were sampled, and that agent does not learn from it', async () => {
    const tokenizer = bytesTokenizer();
    const marker = tokenizer.vocabSize - 1; // what it is called as a text has other ids
    const written = [marker, ...tokenizer.encode('me'), ...tokenizer.stopTokens];
    const sampler = scriptedSampler(({ policy }) => (policy === 'boss' ? written : 'fine'), tokenizer);
    const { turns, failure } = await playEpisode(scriptedContext(team, sampler), request);
    expect(failure).toBeUndefined();
    const [spoken, heard] = turns as [Turn, Turn];
    expect(heard).toMatchObject({ agent: 'helper', history: { exact: 1, foreign: 0 } });
    expect(placeOf(sampledOf(spoken, tokenizer), heard.prompt, 0)).toBeGreaterThan(0);
    expect(chainsOf(turns)).toEqual([[spoken], [heard]]);
  });

  it.each([false, true])(
    'has the beginning of its thinking, which its prompt has (also in the history: %s)',
    async (keeps) => {
      const bytes = bytesTokenizer();
      const begun = bytes.encode('<think>\n');
      const chat: typeof bytes.chat = (messages, exact, tools) => [
        ...bytes.chat(
          messages,
          exact && ((message) => exact(message) && [...(keeps ? begun : []), ...(exact(message) ?? [])]),
          tools,
        ),
        ...begun,
      ];
      const tokenizer = { ...bytes, chat };
      const sampler = scriptedSampler(
        ({ policy }) => (policy === 'boss' ? 'Hm</think>me' : 'so</think>fine'),
        tokenizer,
      );
      const { turns } = await playEpisode(scriptedContext(team, sampler), request);
      const heard = tokenizer.decode(turns[1]?.prompt ?? []);
      expect(heard.split('<think>\n')).toHaveLength(3);
      expect(heard).toContain('<think>\nHm</think>me');
    },
  );
});
