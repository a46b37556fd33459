/**
 * A main agent with sub-agents, each with a loop over tools: the lead names a place, and the scout for that side of
 * town looks for the way there, one door a turn. The course of the episode decides how often each agent is called, and
 * for how many turns. The warm start teaches the names of the doors, but not where each door leads.
 *
 * One invocation of a scout, its whole loop, is one chain. As in M-GRPO (arXiv 2511.13288), `advantage.unit` makes a
 * chain count once in the statistics, and `loss.aggregate` makes it count once in the loss:
 *
 *     npx drmas train examples/sub-agents/recipe.ts --set advantage.unit=chain --set loss.aggregate=chain-mean
 */
import { agent, assistant, defineRecipe, defineTeam, type Message, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const doors = ['left', 'right', 'up', 'down'] as const;
/** The doors that lead to each place, one after another; the scouts must learn them. */
const ways = {
  mill: ['up'],
  dock: ['left', 'down'],
  farm: ['right', 'up', 'left'],
  inn: ['down', 'right'],
  bank: ['right'],
  park: ['down', 'up'],
  fair: ['left', 'left', 'up'],
  well: ['up', 'right'],
} as const;
type Place = keyof typeof ways;
const places = Object.keys(ways) as [Place, ...Place[]];
/** Doors that a scout may try in one invocation, and invocations of an episode. */
const TRIES = 4;
const CALLS = 4;

const scout = (name: string) => agent({ system: `<${name}>`, parse: oneOf(...doors), sampling: { maxTokens: 2 } });

export const team = defineTeam({
  name: 'lead and scouts',
  task: z.object({ errands: z.array(z.enum(places)) }),
  agents: {
    lead: agent({ system: '<lead>', parse: oneOf(...places, '<done>'), sampling: { maxTokens: 2 } }),
    north: scout('north'),
    south: scout('south'),
  },
  async play({ task: { errands }, agents: { lead, north, south } }) {
    const talk: Message[] = [user(errands.join(' '))];
    const invocations: { readonly place: Place; readonly turns: readonly number[]; readonly success: boolean }[] = [];
    const reached = new Set<Place>();
    while (invocations.length < CALLS) {
      const { value: place, text } = await lead(talk);
      if (place === undefined || place === '<done>') break;
      const search = await find(place, places.indexOf(place) < places.length / 2 ? north : south);
      invocations.push({ place, ...search });
      if (search.success) reached.add(place);
      talk.push(assistant(text), user(search.success ? 'found' : 'lost'));
    }
    return { done: errands.filter((place) => reached.has(place)).length / errands.length, invocations };
  },
  // The lead and the team earn the finished part; a scout earns its invocation's result, the same in each of its turns.
  reward: ({ outcome: { done, invocations } }) => ({
    team: done,
    agents: { north: 0, south: 0 },
    turns: invocations.flatMap(({ turns, success }) => turns.map((turn) => ({ turn, value: success }))),
  }),
  metrics: ({ outcome: { invocations } }) => ({
    invocations: invocations.length,
    found:
      invocations.length === 0 ? undefined : invocations.filter(({ success }) => success).length / invocations.length,
  }),
});

type Scout = (messages: readonly Message[]) => Promise<{ value: unknown; text: string; turn: number }>;

/** One invocation of a scout: a loop that ends at the place, or after a fixed number of doors. */
async function find(place: Place, scout: Scout) {
  const way = ways[place];
  const talk: Message[] = [user(place)];
  const turns: number[] = [];
  for (let at = 0; turns.length < TRIES; ) {
    const { value, text, turn } = await scout(talk);
    turns.push(turn);
    const isRight = value === way[at];
    if (isRight) at++;
    if (at === way.length) return { turns, success: true };
    talk.push(assistant(text), user(isRight ? 'hall' : 'wall'));
  }
  return { turns, success: false };
}

/** All lists of one to three different places; every fifth is held out. */
const lists = places.flatMap((a) => [
  [a],
  ...places
    .filter((b) => b !== a)
    .flatMap((b) => [[a, b], ...places.filter((c) => c !== a && c !== b).map((c) => [a, b, c])]),
]) as [Place[], ...Place[][]];
const listsOf = (split: 'train' | 'test') => lists.filter((_, i) => (i % 5 === 0) === (split === 'test'));

export default defineRecipe({
  team,
  tasks: {
    name: 'errands',
    load: async (split) => {
      const ofSplit = listsOf(split);
      const at = (index: number) => {
        const errands = ofSplit[index % ofSplit.length] ?? lists[0];
        return { id: errands.join(' '), data: { errands } };
      };
      return { name: `errands ${split}`, size: ofSplit.length, at };
    },
    trace(random, split) {
      const errands = random.pick(listsOf(split) as [Place[], ...Place[][]]);
      if (random.chance(0.5)) {
        // A lead that works through its list, and repeats or skips a place if the scout got lost.
        const talk: Message[] = [user(errands.join(' '))];
        let next = 0;
        for (const stop = random.integer(0, 3); talk.length < 2 * stop && next < errands.length; ) {
          const found = random.chance(0.5);
          talk.push(assistant(errands[next] ?? ''), user(found ? 'found' : 'lost'));
          if (found || random.chance(0.5)) next++;
        }
        return { agent: 'lead', messages: talk, response: errands[next] ?? '<done>' };
      }
      const place = random.pick(places);
      const talk: Message[] = [user(place)];
      for (let turns = random.integer(0, TRIES - 1); turns > 0; turns--)
        talk.push(assistant(random.pick(doors)), user(random.pick(['hall', 'wall'])));
      const side = places.indexOf(place) < places.length / 2 ? 'north' : 'south';
      return { agent: side, messages: talk, response: random.pick(doors) };
    },
  },
  model: tinyDecoder({
    width: 32,
    layers: 2,
    heads: 2,
    feedForward: 80,
    context: 40,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: [
        '<ask>',
        '<end>',
        '<lead>',
        '<north>',
        '<south>',
        '<done>',
        'found',
        'lost',
        'hall',
        'wall',
        ' ',
        ...doors,
        ...places,
      ],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  policies: {
    lead: { optimizer: { learningRate: 1e-4 } },
    north: { optimizer: { learningRate: 2e-3 } },
    south: { optimizer: { learningRate: 2e-3 } },
  },
  warmStart: { steps: 200, batch: 64, learningRate: 4e-3 },
  training: { steps: 40, tasksPerStep: 8, groupSize: 8, maxTurns: CALLS * (TRIES + 1) + 1 },
  evaluation: { every: 20, tasks: 60, samples: 4 },
});
