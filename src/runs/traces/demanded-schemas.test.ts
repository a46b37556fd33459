import type { Message, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { demandedSchema, promptMessages } from '../../teams/rollout.js';
import { PlayedPrompts } from './demanded-schemas.js';
import type { DemonstrationRow } from './demonstration-rows.js';

function asPlayed(rows: readonly DemonstrationRow[], turns: readonly Turn[], prompted?: readonly string[]) {
  const prompts = new PlayedPrompts(turns, prompted);
  const demonstrations = rows.map((row) => prompts.asPlayed(row));
  return { demonstrations, warnings: prompts.warnings };
}

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const count = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
const ask = (system: string, text = 'To Oslo.'): Message[] => [
  { role: 'system', content: system },
  { role: 'user', content: text },
];
const turn = (agent: string, input: Message[] | string, schema?: object) =>
  ({ agent, messages: promptMessages(undefined, input, schema as never) }) as unknown as Turn;
const row = (agent: string, input: Message[], answer: string) => ({
  agent,
  messages: [...input, { role: 'assistant' as const, content: answer }],
});
const demandsOf = (rows: readonly { readonly messages: readonly Message[] }[]) =>
  rows.map(({ messages: [first] }) => (first?.role === 'system' ? demandedSchema(first.content) : undefined));

describe('demonstrations of traces', () => {
  const turns = [
    turn('reader', ask('Which city?'), city),
    turn('reader', ask('How many?'), count),
    turn('reader', ask('Say it.')),
    turn('other', ask('Either.'), city),
    turn('other', ask('Either.'), count),
    turn('bare', 'To Oslo.', city),
  ];
  const rows = [
    row('reader', ask('Which city?'), '{"city":"Oslo"}'),
    row('reader', ask('How many?'), '{"count":1}'),
    row('reader', ask('Say it.'), 'Oslo'),
    row('other', ask('Either.'), '{"count":1}'),
    row('other', ask('Either.'), '{"city":"Oslo"}'),
    row('bare', [{ role: 'user', content: 'To Oslo.' }], '{"city":"Oslo"}'),
  ];

  it('get the schema that the agent must keep to when it is called with their prompt', () => {
    const { demonstrations, warnings } = asPlayed(rows, turns);
    expect(demandsOf(demonstrations)).toEqual([city, count, undefined, count, city, city]);
    expect(warnings).toEqual([]);
    expect(demonstrations[0]?.messages.slice(0, 2)).toEqual(turns[0]?.messages);
    expect(demonstrations[5]?.messages.slice(0, 2)).toEqual(turns[5]?.messages);
  });

  it('get the line once, and lose one that play does not have', () => {
    const once = asPlayed(rows, turns).demonstrations;
    expect(asPlayed(once, turns).demonstrations).toEqual(once);
    const old = rows.map((each) => ({ ...each, messages: promptMessages(undefined, each.messages, { type: 'null' }) }));
    expect(asPlayed(old, turns).demonstrations).toEqual(once);
    const any = [turn('reader', ask('Which city?'), { type: 'object' })];
    const free = asPlayed(rows.slice(0, 1), any).demonstrations;
    expect(free[0]?.messages[0]?.content).toBe('Which city?\nAnswer with JSON alone.');
    expect(asPlayed(free, any).demonstrations).toEqual(free);
  });

  it('stay as they are if the team does not call their agent, or it is not clear which schema an answer keeps to', () => {
    expect(asPlayed(rows, [])).toEqual({ demonstrations: rows, warnings: [] });
    const loose = { type: 'object', properties: {} };
    const two = [turn('other', ask('Either.'), city), turn('other', ask('Either.'), loose)];
    expect(asPlayed(rows.slice(4, 5), two)).toEqual({
      demonstrations: rows.slice(4, 5),
      warnings: [expect.stringMatching(/^1 demonstrations of 'other' stay without a schema/)],
    });
  });

  it('whose system prompt is not that of the team are counted, unless the team gives its own', () => {
    const older = [row('bare', ask('Old prompt.'), '{"city":"Oslo"}'), ...rows];
    const { demonstrations, warnings } = asPlayed(older, turns);
    expect(demandsOf(demonstrations)[0]).toEqual(city);
    expect(warnings).toEqual([expect.stringMatching(/^1 demonstrations of 'bare' .*In the traces: "Old prompt\."/)]);
    expect(asPlayed(older, turns, ['bare']).warnings).toEqual([]);
  });
});
