import { assistant, user } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { agent } from '../../team/agent.js';
import { defineTeam, type Team } from '../../team/team.js';
import { playEpisode } from '../play-episode.js';
import { cutPrompt } from './call-prompts.js';

const task = { id: 'one', data: {} };

describe('a limit of prompts', () => {
  it.each(['left', 'middle'] as const)('cuts a prompt that is longer than its limit: %s', async (cut) => {
    // The talker's second prompt continues its first turn.
    const team = defineTeam({
      task: z.object({}),
      agents: { talker: agent() },
      async play({ agents: { talker } }) {
        const { text } = await talker('a long question');
        return talker([user('a long question'), assistant(text), user('and another')]);
      },
      reward: () => 1,
    });
    const limit = { tokens: 11, cut };
    const sampler = scriptedSampler(() => 'yes');
    const context = scriptedContext(team as Team, sampler);
    const { talker } = context.agents;
    if (talker === undefined) throw new Error('no talker');
    const limited = { ...context, agents: { ...context.agents, talker: { ...talker, promptLimit: limit } } };
    const { turns, failure } = await playEpisode(limited, { team, task, sample: 0, phase: 'training', step: 0 });
    expect(failure).toBeUndefined();
    const tokenizer = bytesTokenizer();
    const wholes = [[user('a long question')], [user('a long question'), assistant('yes'), user('and another')]].map(
      (messages) => tokenizer.chat(messages),
    );
    expect(turns.map(({ prompt }) => prompt)).toEqual(wholes.map((ids) => cutPrompt(ids, limit)));
    expect(turns.map(({ cut: lost }) => lost)).toEqual(wholes.map((ids) => ids.length - limit.tokens));
    const wide = {
      ...limited,
      agents: { ...context.agents, talker: { ...talker, promptLimit: { tokens: 999, cut } } },
    };
    const whole = await playEpisode(wide, { team, task, sample: 0, phase: 'training', step: 0 });
    expect(whole.turns.map(({ prompt, cut: lost }) => [prompt, lost])).toEqual(wholes.map((ids) => [ids, undefined]));
  });

  it('keeps the tokens of a prompt that verl keeps', () => {
    const ids = [1, 2, 3, 4, 5, 6, 7];
    // By the rules in verl's `postprocess_data`: the last ones; or half of the limit, rounded down, and the rest.
    expect(cutPrompt(ids, { tokens: 4, cut: 'left' })).toEqual([4, 5, 6, 7]);
    expect(cutPrompt(ids, { tokens: 4, cut: 'middle' })).toEqual([1, 2, 6, 7]);
    expect(cutPrompt(ids, { tokens: 5, cut: 'middle' })).toEqual([1, 2, 5, 6, 7]);
    expect(cutPrompt(ids, { tokens: 1, cut: 'middle' })).toEqual([7]);
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.integer({ min: 1, max: 20 }), fc.boolean(), (prompt, tokens, isLeft) => {
        const cut = cutPrompt(prompt, { tokens, cut: isLeft ? 'left' : 'middle' });
        expect(cut).toHaveLength(Math.min(tokens, prompt.length));
        expect(cut.at(-1)).toBe(prompt.at(-1));
      }),
    );
  });
});
