import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { agent, defineTeam, type Team } from '../../../teams/index.js';
import { inProcessExecutor } from '../../../teams/rollout.js';
import { baselineWarnings } from '../stability/step-warnings.js';
import { branches } from './branches.js';

type Solver = (prompt: string) => Promise<{ readonly text: string }>;

/** Plays an episode, and each of its turns again. The reward is what `play` returns. */
async function playedAgain(play: (solver: Solver) => Promise<number>, script: Script, failedEpisodes = 'exclude') {
  const team = defineTeam({
    task: z.unknown(),
    agents: { solver: agent() },
    play: ({ agents: { solver } }) => play(solver),
    reward: ({ outcome }) => outcome,
  }) as Team;
  const executor = inProcessExecutor(scriptedContext(team, scriptedSampler(script)));
  const groups = await executor.playGroups({
    team,
    tasks: [{ id: 't', data: {} }],
    groupSize: 1,
    phase: 'training',
    step: 1,
  });
  const run = {
    ...{ team, executor, host: {}, estimator: { type: 'counterfactual', choices: { alternatives: 1 } } },
    training: { failedEpisodes },
  };
  const extra = await branches.play?.(run as never, { step: 1, groups });
  if (extra === undefined) throw new Error('the signal plays nothing');
  const [turns] = groups.map(({ episodes }) => episodes[0]?.turns ?? []);
  const baselines = turns?.map((turn) => extra.byTurn.get(turn)?.baseline);
  return { baselines, warnings: baselineWarnings({ step: 1, extra }) };
}

/** Answers of 1, 2, 3, ... letters. */
function longer(): Script {
  let answers = 0;
  return () => 'a'.repeat(++answers);
}

describe('a turn that is played again', () => {
  const twoTurns = (question: () => string) => async (solver: Solver) => {
    await solver('begin');
    return (await solver(question())).text.length;
  };

  it('is compared with the rewards of its alternatives', async () => {
    // The answers have 1 and 2 letters, answers of the first branch 3 and 5, the answer of the second 4.
    expect(
      await playedAgain(
        twoTurns(() => 'go on'),
        longer(),
      ),
    ).toEqual({ baselines: [5, 4], warnings: [] });
  });

  it('is compared with none of another context, and a warning says so', async () => {
    let time = 0;
    const { baselines, warnings } = await playedAgain(
      twoTurns(() => `it is ${++time} o'clock`),
      longer(),
    );
    expect(baselines).toEqual([5, 2]); // the second turn's own reward: its prompt is another one
    expect(warnings).toMatchObject([{ code: 'baselines.unusable', step: 1 }]);
    expect(warnings[0]?.message).toMatch(
      /1 of 2 episodes .*t\/0 from the turn of 'solver' on, did not come to the same/,
    );
  });

  it('is found if a tool lets calls side by side come in another order', async () => {
    let episodes = 0;
    const both = async (solver: Solver) => {
      const isFirst = ++episodes === 1;
      let endTool = () => {};
      const slowTool = new Promise<void>((resolve) => {
        endTool = resolve;
      });
      const one = async () => {
        await solver('begin one');
        if (isFirst) await slowTool;
        return (await solver('go on one')).text.length;
      };
      const two = async () => {
        await solver('begin two');
        const { length } = (await solver('go on two')).text;
        endTool();
        return length;
      };
      const [first, second] = await Promise.all([one(), two()]);
      return first + second;
    };
    const { baselines, warnings } = await playedAgain(both, ({ index }) => (index < 4 ? 'a' : 'aaa'));
    expect(warnings).toEqual([]);
    expect(baselines).toEqual([6, 6, 6, 4]);
  });

  it('counts as failed if its episode fails before it, and not as one of another context', async () => {
    let episodes = 0;
    const failing = async (solver: Solver) => {
      if (++episodes > 1) throw new Error('the service is down');
      await solver('begin');
      return (await solver('go on')).text.length;
    };
    const { baselines, warnings } = await playedAgain(failing, longer(), 'zero');
    expect(baselines).toEqual([0, 0]);
    expect(warnings).toMatchObject([{ code: 'baselines.failing' }]);
  });
});
