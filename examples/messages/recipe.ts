/**
 * Learned messages (HAMMER, arXiv 2102.00824). A hub sees two rooms and sends a word; each of two local agents sees
 * only its own room and must name the object in the other room. In the demonstrations the local agents use words as
 * hints, each in its own, unreliable way, and the hub sends random words. The hub must learn which word to send to
 * which agent: one word each (`private`), or one word for both (`shared`), which suffices since each agent knows one of
 * the rooms. Without words (`none`) a local agent can only guess:
 *
 *     npx drmas ablate examples/messages/recipe.ts --vary tasks.train.message=private,shared,none --seeds 5
 */
import { agent, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const things = ['lamp', 'rug', 'vase'] as const;
const words = ['ba', 'di', 'ko'] as const;
const kinds = ['private', 'shared', 'none'] as const;

const sampling = { maxTokens: 2 };
const local = (name: string) => agent({ system: `<${name}>`, parse: oneOf(...things), sampling });

export const team = defineTeam({
  name: 'messages',
  task: z.object({ left: z.enum(things), right: z.enum(things), message: z.enum(kinds) }),
  agents: {
    hub: agent({ system: '<hub>', parse: oneOf(...words), sampling }),
    left: local('left'),
    right: local('right'),
  },
  async play({ task, agents: { hub, left, right } }) {
    const rooms = `${task.left}${task.right}`;
    const say = async (to: string) => (task.message === 'none' ? '' : (await hub(`${to}${rooms}`)).text);
    const shared = task.message === 'shared' ? await say('<both>') : undefined;
    const asLeft = await left(`${task.left}${shared ?? (await say('<left>'))}`);
    const asRight = await right(`${task.right}${shared ?? (await say('<right>'))}`);
    return { left: asLeft.value === task.right, right: asRight.value === task.left };
  },
  reward: ({ outcome: { left, right } }) => (Number(left) + Number(right)) / 2,
  success: ({ outcome: { left, right } }) => (Number(left) + Number(right)) / 2,
});

/** A local agent's reading of a word: an offset from its own object. */
export function hinted(name: 'left' | 'right', thing: (typeof things)[number], word: (typeof words)[number]): string {
  const steps = words.indexOf(word) * (name === 'left' ? 1 : -1);
  return things[(things.indexOf(thing) + steps + things.length) % things.length] ?? '';
}

type Kind = (typeof kinds)[number];

/** All pairs of rooms occur in training; the evaluation samples new words. */
const tasks = ({ message }: { readonly message: Kind }) => ({
  name: 'rooms',
  settings: { message },
  configure: (changed: unknown) => tasks(changed as { readonly message: Kind }),
  load: async () => ({
    name: 'rooms',
    size: things.length ** 2,
    at: (index: number) => {
      const [left = '', right = ''] = [things[index % things.length], things[Math.floor(index / things.length)]];
      return { id: `${left}-${right}`, data: { left, right, message } };
    },
  }),
  trace(random: { pick<T>(from: readonly [T, ...T[]]): T; chance(share: number): boolean }) {
    const [thing, other, word] = [random.pick(things), random.pick(things), random.pick(words)];
    const name = random.pick(['hub', 'left', 'right'] as const);
    if (name === 'hub') {
      const messages = [user(`${random.pick(['<left>', '<right>', '<both>'])}${thing}${other}`)];
      return { agent: name, messages, response: word };
    }
    const heard = random.chance(0.8);
    const guess = heard && random.chance(0.6) ? hinted(name, thing, word) : other;
    return { agent: name, messages: [user(`${thing}${heard ? word : ''}`)], response: guess };
  },
});

const optimizer = { learningRate: 1e-3 };

export default defineRecipe({
  team,
  tasks: tasks({ message: 'private' }),
  model: tinyDecoder({
    width: 32,
    layers: 2,
    heads: 2,
    feedForward: 64,
    context: 16,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: ['<end>', '<ask>', '<hub>', '<left>', '<right>', '<both>', ...things, ...words],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  policies: { hub: { optimizer }, left: { optimizer }, right: { optimizer } },
  warmStart: { steps: 100, batch: 64, learningRate: 4e-3 },
  training: { steps: 100, tasksPerStep: 9, groupSize: 16 },
  evaluation: { every: 100, tasks: 9, samples: 32 },
});
