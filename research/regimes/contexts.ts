/**
 * A team for one measurement: does an agent learn its contexts apart? An expert has eight contexts and eight codes, one
 * code right in each. It is called in a random share of the episodes; all others succeed. A clerk acts in every
 * episode, so that these episodes count, and nothing depends on its answer. The warm start teaches only the form of an
 * answer. research/plans/mechanism.md
 */
import {
  agent,
  defineRecipe,
  defineTeam,
  type ModelInput,
  type RecipeDefinition,
  type TaskSource,
  tinyDecoder,
  user,
} from 'drmas';
import type { RandomStream } from 'drmas/tasks';
import { z } from 'zod';

const faults = ['silent', 'slow', 'hot', 'frozen', 'blank', 'loud', 'lost', 'full'] as const;
export const codes = ['k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8'] as const;
const fillers = ['dear', 'expert', 'please', 'look', 'at', 'this', 'one', 'now'] as const;
const CLERK = 'clerk ';

const knobs = z.strictObject({
  /** The share of episodes that call the expert. */
  rare: z.number().min(0).max(1).default(0.25),
  /** The number of further words in the expert's prompt, the same in all contexts. */
  words: z.int().min(0).max(fillers.length).default(0),
});
type Knobs = z.output<typeof knobs>;
const ticketSchema = knobs.extend({ fault: z.enum(faults) });
type Ticket = z.output<typeof ticketSchema>;

const promptOf = ({ fault, words }: Omit<Ticket, 'rare'>) =>
  [...fillers.slice(0, words), fault].map((word) => `${word} `).join('');
/** The expert's prompts. */
export const contexts = (settings: unknown): string[] =>
  faults.map((fault) => promptOf({ fault, words: knobs.parse(settings).words }));
const codeOf = ({ fault }: Ticket) => codes[(faults.indexOf(fault) * 3 + 1) % codes.length] ?? '';

const oneWord = (words: readonly string[]) => (text: string) => words.find((word) => word === text.trim());

/** @param maxTokens The most tokens of the expert's answer, its end included */
const contextsTeam = (maxTokens: number) =>
  defineTeam({
    name: 'contexts',
    task: ticketSchema,
    agents: {
      clerk: agent({ parse: oneWord(codes), sampling: { maxTokens: 3 } }),
      expert: agent({ parse: oneWord(codes), sampling: { maxTokens } }),
    },
    async play({ task, agents: { clerk, expert }, random }) {
      const isRare = random.chance(task.rare);
      await clerk(CLERK);
      if (!isRare) return { solved: true };
      return { solved: (await expert(promptOf(task))).value === codeOf(task) };
    },
    reward: ({ outcome: { solved } }) => ({ solved: Number(solved) }),
  });

function tickets(settings: Knobs): TaskSource<Ticket> {
  const all = faults.map((fault) => ({ ...settings, fault }));
  return {
    name: 'contexts',
    settings,
    configure: (changed) => tickets(knobs.parse(changed)),
    load: async (split) => ({
      name: `contexts ${split}`,
      size: all.length,
      at: (index) => {
        const data = all[index % all.length] as Ticket;
        return { id: data.fault, data };
      },
    }),
    trace(random: RandomStream) {
      const [prompt, name] = random.chance(0.2) ? [CLERK, 'clerk'] : [promptOf(random.pick(all as [Ticket])), 'expert'];
      return { agent: name, messages: [user(prompt)], response: `${random.pick(codes)} ` };
    },
  };
}

/**
 * The recipe with a model of the expert. The clerk is a decoder, so that there is a warm start; a table has none.
 * @param maxTokens The most tokens of the expert's answer, its end included
 */
export const contextsRecipe = (expert: ModelInput, maxTokens: number): RecipeDefinition =>
  defineRecipe({
    team: contextsTeam(maxTokens),
    tasks: tickets(knobs.parse({})),
    policies: { clerk: { model: decoder(16) }, expert: { model: expert } },
    warmStart: { steps: 300, batch: 64, learningRate: 4e-3, share: 'policy' },
    training: { steps: 100, tasksPerStep: 16, groupSize: 16, keepEpisodes: false, checkpointEvery: 1000 },
    evaluation: { every: 25, tasks: 64, samples: 8 },
  });

const spelt = [...new Set([...faults, ...codes, ...fillers, CLERK.trim()])];
/** A decoder of two layers whose feed-forward part is twice as wide. */
const decoder = (width: number) =>
  tinyDecoder({
    width,
    layers: 2,
    heads: 4,
    feedForward: 2 * width,
    context: 16,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: ['<end>', ': ', ...spelt.map((word) => `${word} `)],
      stop: '<end>',
      endOfUser: ': ',
      endOfAssistant: '<end>',
    },
  });

export default contextsRecipe(decoder(64), 3);
