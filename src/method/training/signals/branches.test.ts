import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { agent, defineTeam, type Team } from '../../../teams/index.js';
import { inProcessExecutor } from '../../../teams/rollout.js';
import { baselineWarnings } from '../stability/step-warnings.js';
import { branches } from './branches.js';

/** Plays an episode of two turns, and each turn again. The reward is the length of the second answer. */
async function playedAgain(question: () => string) {
  const team = defineTeam({
    task: z.unknown(),
    agents: { solver: agent() },
    async play({ agents: { solver } }) {
      await solver('begin');
      return (await solver(question())).text.length;
    },
    reward: ({ outcome }) => outcome,
  }) as Team;
  let answers = 0;
  const executor = inProcessExecutor(
    scriptedContext(
      team,
      scriptedSampler(() => 'a'.repeat(++answers)),
    ),
  );
  const groups = await executor.playGroups({
    team,
    tasks: [{ id: 't', data: {} }],
    groupSize: 1,
    phase: 'training',
    step: 1,
  });
  const run = {
    ...{ team, executor, host: {}, estimator: { type: 'counterfactual', choices: { alternatives: 1 } } },
    training: { failedEpisodes: 'exclude' },
  };
  const extra = await branches.play?.(run as never, { step: 1, groups });
  if (extra === undefined) throw new Error('the signal plays nothing');
  const [turns] = groups.map(({ episodes }) => episodes[0]?.turns ?? []);
  const baselines = turns?.map((turn) => extra.byTurn.get(turn)?.baseline);
  return { baselines, warnings: baselineWarnings({ step: 1, extra }) };
}

describe('a turn that is played again', () => {
  it('is compared with the rewards of its alternatives', async () => {
    // The answers have 1 and 2 letters, those of the first branch 3 and 5, that of the second 4.
    expect(await playedAgain(() => 'go on')).toEqual({ baselines: [5, 4], warnings: [] });
  });

  it('is compared with none of another context, and a warning says so', async () => {
    let time = 0;
    const { baselines, warnings } = await playedAgain(() => `it is ${++time} o'clock`);
    expect(baselines).toEqual([5, 2]); // the second turn's own reward: its prompt is another one
    expect(warnings).toMatchObject([{ code: 'baselines.unusable', step: 1 }]);
    expect(warnings[0]?.message).toMatch(
      /1 of 2 episodes .*t\/0 from the turn of 'solver' on, did not come to the same/,
    );
  });
});
