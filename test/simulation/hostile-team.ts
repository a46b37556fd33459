/** A team with all kinds of bad behaviour that a team can have. Its tasks and random numbers choose among them. */

import type { TaskSource } from '@drmas/engine/nouns';
import { z } from 'zod';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';

/** The misdeeds of hostile episodes. */
const deeds = ['throw', 'hang', 'stray', 'unawaited', 'many-turns', 'overlong', 'reward-throws', 'reward-nan'] as const;

/** @param pause Waits as a tool does, for a time that differs from run to run. */
export function hostileTeam(pause: () => Promise<void>, hostility: number) {
  return defineTeam({
    name: 'hostile',
    task: z.object({ question: z.string() }),
    agents: {
      planner: agent({ system: 'Plan', sampling: { maxTokens: 5 } }),
      worker: agent({
        system: 'Work',
        parse: (text) => (/[aeiou]/.test(text) ? text : undefined),
        invalidPenalty: 0.1,
        sampling: { maxTokens: 4 },
      }),
    },
    async play({ task, agents: { planner, worker }, random, signal, log }) {
      const deed = random.chance(hostility) ? random.pick(deeds) : undefined;
      const plan = await planner(task.question);
      await pause();
      const part = async (name: string) => {
        await pause(); // the order of the two parts' calls is not the same in every run
        const { text } = await worker(`${plan.text} ${name}`);
        await pause();
        return text;
      };
      const parts = await Promise.all([part('left'), part('right')]);
      log('length', parts.join('').length);
      if (deed === 'throw') throw new Error(`after ${plan.text.length} letters`);
      if (deed === 'hang') await new Promise(() => {});
      if (deed === 'stray') void Promise.reject(new Error('nobody awaits this'));
      if (deed === 'stray')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      if (deed === 'unawaited') void worker('never read');
      if (deed === 'many-turns') for (;;) await worker(`again ${plan.text}`);
      if (deed === 'overlong') await worker('x'.repeat(500));
      return { text: parts.join(' '), deed };
    },
    reward({ outcome: { text, deed } }) {
      if (deed === 'reward-throws') throw new Error('no reward');
      if (deed === 'reward-nan') return Number.NaN;
      return { team: (text.match(/[a-m]/g)?.length ?? 0) / (text.length + 1), agents: { worker: text.length / 9 } };
    },
  });
}

/** Endless tasks, each a number. */
export const numbers: TaskSource<{ question: string }> = {
  name: 'numbers',
  load: async (split) => ({
    name: `numbers ${split}`,
    size: Number.POSITIVE_INFINITY,
    at: (index) => ({ id: `${split}-${index}`, data: { question: `Number ${index}` } }),
  }),
  trace(random) {
    const number = random.integer(0, 99);
    return {
      agent: random.pick(['planner', 'worker']),
      messages: [{ role: 'user', content: `Number ${number}` }],
      response: String(number),
    };
  },
};
