/**
 * One agent on a pretrained language model learns to add: "What is 7 plus 11?". There is no warm start. The model
 * rambles at first, and the last number of its answer counts, so reinforcement has successes to begin with.
 *
 * A LoRA adapter on SmolLM2-135M-Instruct, or on a chat model of yours:
 *
 *     drmas train sums --model path/to/model.gguf
 */
import { agent, checkpoint, defineRecipe, defineTeam, lora, type TaskSource, user } from 'drmas';
import { z } from 'zod';

const LARGEST = 12;
const numbers = Array.from({ length: LARGEST }, (_, i) => i + 1);
const sums = numbers.flatMap((a) => numbers.map((b) => ({ a, b })));
/** A fifth of the sums is held out. */
const isHeld = ({ a, b }: { readonly a: number; readonly b: number }) => (7 * a + 3 * b) % 5 === 0;
const question = ({ a, b }: { readonly a: number; readonly b: number }) => `What is ${a} plus ${b}?`;

const tasks: TaskSource<{ readonly question: string; readonly answer: string }> = {
  name: 'sums in English',
  load: async (split) => {
    const chosen = sums.filter((sum) => isHeld(sum) === (split === 'test'));
    return {
      name: `sums in English (${split})`,
      size: chosen.length,
      at: (index) => {
        // 37 is coprime to both sizes, so that neighbours in a step have other numbers.
        const sum = chosen[(index * 37) % chosen.length] as (typeof sums)[0];
        return { id: question(sum), data: { question: question(sum), answer: String(sum.a + sum.b) } };
      },
    };
  },
  /** A demonstration in the model's own usual form. Without a warm start it is not used. */
  trace(random) {
    const sum = random.pick(sums.filter((each) => !isHeld(each)) as [(typeof sums)[0]]);
    const response = `${sum.a} + ${sum.b} equals ${sum.a + sum.b}.`;
    return { agent: 'solver', messages: [user(question(sum))], response };
  },
};

const team = defineTeam({
  name: 'sums',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({
      system: 'You are a helpful assistant.',
      parse: (text) => text.match(/\d+/g)?.at(-1),
      sampling: { maxTokens: 24 },
    }),
  },
  play: async ({ task, agents: { solver } }) => ({ answer: (await solver(task.question)).value }),
  reward: ({ outcome, task }) => ({ correct: outcome.answer === task.answer }),
});

export default defineRecipe({
  team,
  tasks,
  model: lora(checkpoint('HuggingFaceTB/SmolLM2-135M-Instruct'), { rank: 8 }),
  policies: { solver: { optimizer: { learningRate: 1e-3 }, warmupSteps: 2 } },
  training: { steps: 16, tasksPerStep: 4, groupSize: 16 },
  evaluation: { every: 8, tasks: 30, samples: 4 },
});
