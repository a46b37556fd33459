/**
 * The shipped team of a solver and a verifier on small stories with numbers ("Tom has 7 apples. Mia gives him 5 more.
 * How many apples does Tom have now?"), on a pretrained model: research/plans/stories.md. Nothing in it was built for
 * an effect of an estimator: both agents are called in each episode and share the team's reward.
 */
import { assistant, checkpoint, defineRecipe, lora, solverVerifier, type TaskSource, type Trace, user } from 'drmas';

const names = ['Tom', 'Mia', 'Ben', 'Lucy', 'Sam', 'Anna'] as const;
const things = ['apples', 'books', 'coins', 'stamps', 'cards', 'shells'] as const;

/** The events: the second sentence of a story, its result, and the sign that a solution writes. */
const events = [
  {
    tell: (who: string, other: string, n: number) => `${other} gives ${who} ${n} more.`,
    sign: '+',
    result: (a: number, n: number) => a + n,
  },
  {
    tell: (who: string, _: string, n: number) => `${who} loses ${n} of them.`,
    sign: '-',
    result: (a: number, n: number) => a - n,
  },
  {
    tell: (who: string, other: string, n: number) => `${other} has ${n} more than ${who}.`,
    sign: '+',
    result: (a: number, n: number) => a + n,
  },
] as const;

interface Story {
  readonly question: string;
  readonly answer: string;
  readonly solution: string;
  readonly isHeld: boolean;
}

/** All stories: three events, numbers from 1 to 9 for the change, from 10 to 30 for the beginning. */
const stories: readonly Story[] = events.flatMap(({ tell, sign, result }, e) =>
  Array.from({ length: 21 }, (_, i) => 10 + i).flatMap((a) =>
    Array.from({ length: 9 }, (_, i) => i + 1).map((n) => {
      const who = names[(a + n) % 6] as string;
      const other = names[(a + n + 1 + (a % 5)) % 6] as string;
      const thing = things[(a * 5 + n) % 6] as string;
      const asked = e === 2 ? `How many ${thing} does ${other} have?` : `How many ${thing} does ${who} have now?`;
      const answer = String(result(a, n));
      return {
        question: `${who} has ${a} ${thing}. ${tell(who, other, n)} ${asked}`,
        answer,
        solution: `${a} ${sign} ${n} = \\boxed{${answer}}`,
        isHeld: (7 * a + 3 * n + e) % 5 === 0,
      };
    }),
  ),
);
const learnt = stories.filter(({ isHeld }) => !isHeld) as [Story, ...Story[]];

const tasks: TaskSource<{ readonly question: string; readonly answer: string }> = {
  name: 'stories with numbers',
  load: async (split) => {
    const chosen = stories.filter(({ isHeld }) => isHeld === (split === 'test'));
    return {
      name: `stories with numbers (${split})`,
      size: chosen.length,
      at: (index) => {
        // 101 is coprime to both sizes, so that neighbours in a step are different stories.
        const { question, answer } = chosen[(index * 101) % chosen.length] as Story;
        return { id: question, data: { question, answer } };
      },
    };
  },
  /** The forms of both agents: right solutions, and verdicts on drafts of which half are wrong. */
  trace(random): Trace {
    const { question, answer, solution } = random.pick(learnt);
    if (random.chance(0.5)) return { agent: 'solver', messages: [user(question)], response: solution };
    if (random.chance(0.5))
      return { agent: 'verifier', messages: [user(question), assistant(solution)], response: '<approve>' };
    const wrong = String(Number(answer) + random.pick([-3, -2, -1, 1, 2, 3]));
    const draft = solution.replace(`{${answer}}`, `{${wrong}}`);
    return { agent: 'verifier', messages: [user(question), assistant(draft)], response: '<reject>' };
  },
};

export default defineRecipe({
  team: solverVerifier({
    solver: { system: 'Solve the problem. End with the answer in \\boxed{...}.' },
    verifier: { system: 'Is the solution right? Write <approve> or <reject>.' },
  }),
  tasks,
  model: lora(checkpoint('HuggingFaceTB/SmolLM2-135M-Instruct'), { rank: 8 }),
  agents: { solver: { sampling: { maxTokens: 24 } }, verifier: { sampling: { maxTokens: 8 } } },
  policies: { solver: { warmupSteps: 2 }, verifier: { warmupSteps: 2 } },
  warmStart: { steps: 8, batch: 16, learningRate: 2e-3, warmupSteps: 3 },
  training: { steps: 24, tasksPerStep: 4, groupSize: 8, checkpointEvery: 8, keepCheckpoints: 1 },
  evaluation: { every: 8, tasks: 32, samples: 4 },
});
