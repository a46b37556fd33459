import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonSchema } from '../../base/core/message.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../team/agent.js';
import { defineTeam } from '../team/team.js';

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
      'responseSchema is a schema, expected a JSON schema',
    );
  });
});
