import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { type Ask, type AskOptions, defineTeam, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';

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
    [[{ envStep: -1 }], 'counter: envStep is -1, expected an integer >= 0'],
    [[{ envStep: 0.5 }], 'counter: envStep is 0.5, expected an integer >= 0'],
    [[{ envStep: 1 }, {}], 'counter: expected the envStep of every call of the episode, or of none'],
    [[undefined, { envStep: 1 }], 'counter: expected the envStep of every call of the episode, or of none'],
  ])('is refused in %j', async (options, message) => {
    const { failure, turns } = await played(options);
    expect(failure).toEqual({ reason: 'error', message, agent: 'counter' });
    expect(turns).toHaveLength(options.length - 1);
  });
});
