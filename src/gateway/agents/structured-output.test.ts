import { generateObject, generateText, NoObjectGeneratedError, Output, stepCountIs, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent, defineTeam, type PlayContext, type Team } from '../../teams/index.js';
import { playEpisode } from '../../teams/rollout/play-episode.js';
import { applyFailureRule } from '../../teams/rollout.js';

const agents = { triage: agent({ tools: 'plain', invalidPenalty: 0.3 }) };
type Play = (context: PlayContext<unknown, typeof agents>) => Promise<unknown>;

/** Whole numbers from 1 to 5: the schema that the agent is shown lacks the rule about even numbers. */
const schema = z.object({
  queue: z.enum(['refund', 'shipping']),
  level: z.number().refine((level) => level % 2 === 0),
});

async function played(play: Play, text: string | Script) {
  const team = defineTeam({ task: z.unknown(), agents, play, reward: () => 0.5 }) as unknown as Team;
  const task = { id: 't', data: {} };
  const context = scriptedContext(team, scriptedSampler(typeof text === 'string' ? () => text : text));
  const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 1 });
  return { episode, kept: applyFailureRule([{ task, episodes: [episode] }], 'exclude').length };
}

const whole: Play = async ({ agents: { triage } }) =>
  (await generateObject({ model: triage.model, schema, prompt: 'a ticket', maxRetries: 0 })).object;
const output: Play = async ({ agents: { triage } }) =>
  (await generateText({ model: triage.model, output: Output.object({ schema }), prompt: 'a ticket' })).output;

describe.each([
  ['generateObject', whole],
  ['Output.object', output],
])('an output of %s that does not fit the schema', (_, play) => {
  it.each([
    ['is no JSON', 'refund please'],
    ['breaks the schema', '{"queue": "other", "level": 2}'],
    ['breaks a rule that no JSON schema has', '{"queue": "refund", "level": 3}'],
  ])('and %s is an invalid turn that pays, in an episode that counts', async (_, text) => {
    const { episode, kept } = await played(play, text);
    expect(episode.failure).toMatchObject({ reason: 'invalid-output', agent: 'triage' });
    expect(episode.turns).toMatchObject([{ valid: false, penalty: 0.3 }]);
    expect(episode.score.team).toBe(0);
    expect(kept).toBe(1);
  });

  it('is an error that play may catch; then the team says what the episode earns', async () => {
    let seen: unknown;
    const { episode } = await played(async (context) => {
      try {
        return await play(context);
      } catch (error) {
        seen = error;
        return 'a person looks at it';
      }
    }, 'refund please');
    expect(NoObjectGeneratedError.isInstance(seen)).toBe(true);
    expect(episode.failure).toBeUndefined();
    expect(episode).toMatchObject({ outcome: 'a person looks at it', score: { team: 0.5 } });
    expect(episode.turns).toMatchObject([{ valid: false, penalty: 0.3 }]);
  });

  it('is valid if it fits', async () => {
    const { episode } = await played(play, '{"queue": "refund", "level": 2}');
    expect(episode).toMatchObject({ outcome: { queue: 'refund', level: 2 }, turns: [{ valid: true, penalty: 0 }] });
  });
});

it('an output that is missing is the fault of the loop that ended without it, whoever speaks last', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'again' });
  const { episode } = await played(
    async ({ agents: { triage } }) => {
      const settings = { model: triage.model, prompt: 'look', tools: { look }, stopWhen: stepCountIs(2) };
      const looped = await generateText({ ...settings, output: Output.object({ schema }) });
      await generateText({ model: triage.model, prompt: 'a ticket' });
      return looped.output;
    },
    ({ prompt }) => (prompt.includes('look') ? '@look()' : 'fine'),
  );
  expect(episode.failure?.reason).toBe('too-many-turns');
  expect(episode.turns.map(({ valid }) => valid)).toEqual([true, true, true]);
});

it('an output that a loop of tool calls does not reach is too many turns, and an episode that counts', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'again' });
  const { episode, kept } = await played(async ({ agents: { triage } }) => {
    const settings = { model: triage.model, prompt: 'a ticket', tools: { look }, stopWhen: stepCountIs(3) };
    return (await generateText({ ...settings, output: Output.object({ schema }) })).output;
  }, '@look()');
  expect(episode.failure).toMatchObject({ reason: 'too-many-turns', message: expect.stringContaining('to an end') });
  expect(episode.turns.map(({ valid }) => valid)).toEqual([true, true, true]);
  expect(kept).toBe(1);
});
