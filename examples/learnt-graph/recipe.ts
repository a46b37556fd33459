/**
 * A team that learns its communication graph (Graph-GRPO, AdaptOrch). Each of three experts has a book that answers one
 * kind of question, and each call of an expert has a cost. Before a question the agent `graph` opens or closes the edge
 * to each expert. The agent is not a language model: its policy is a table with two logits for each pair of kind and
 * expert, sampled, recorded and trained like any other policy. The groups of a task are groups of sampled graphs. With
 * the credit `graph` each edge earns the reward of its graph. With `edge` it earns the mean reward of the group's
 * graphs with the same state of this edge, so its advantage compares these graphs with the whole group.
 *
 *     npx drmas ablate examples/learnt-graph/recipe.ts --vary tasks.train.graph=learnt,full --seeds 5
 *     npx drmas ablate examples/learnt-graph/recipe.ts --vary tasks.train.credit=graph,edge --seeds 5
 */
import { agent, choiceTable, defineRecipe, defineTeam, oneOf, tinyDecoder } from 'drmas';
import { z } from 'zod';

const kinds = ['colour', 'city', 'pet'] as const;
type Kind = (typeof kinds)[number];
const words: Record<Kind, readonly [string, ...string[]]> = {
  colour: ['red', 'green', 'blue', 'white'],
  city: ['Rome', 'Oslo', 'Lima', 'Bonn'],
  pet: ['cat', 'dog', 'fish', 'bird'],
};
const names = ['Ada', 'Bob', 'Cid', 'Dan', 'Eve', 'Fay', 'Gus', 'Hal'] as const;
/** The entry for a name in the expert's book. */
const entry = (kind: Kind, name: (typeof names)[number]) => {
  const [index, of] = [names.indexOf(name), words[kind]];
  return of[(index * 3 + Math.floor(index / 4) + kinds.indexOf(kind)) % of.length] ?? '';
};

/** The cost of a call of an expert. */
const price = 0.1;

const edges = ['open', 'shut'] as const;
/** The name of the edge to an expert, for questions of a kind. */
const edge = (kind: Kind, expert: Kind) => `${kind}>${expert}`;
const expert = (kind: Kind) => agent({ system: `<${kind}>`, parse: oneOf(...words[kind]), sampling: { maxTokens: 2 } });

export const team = defineTeam({
  name: 'learnt graph',
  task: z.object({
    kind: z.enum(kinds),
    name: z.enum(names),
    graph: z.enum(['learnt', 'full']),
    credit: z.enum(['graph', 'edge']),
  }),
  agents: {
    graph: agent({ parse: oneOf(...edges), sampling: { maxTokens: 1 } }),
    colour: expert('colour'),
    city: expert('city'),
    pet: expert('pet'),
    answerer: agent({ system: '<answerer>', sampling: { maxTokens: 2 } }),
  },
  async play({ task: { kind, name, graph: which }, agents: { graph, answerer, ...experts } }) {
    const heard: string[] = [];
    for (const each of kinds) {
      const isOpen = which === 'full' || (await graph(edge(kind, each))).value === 'open';
      if (isOpen) heard.push((await experts[each](name)).text);
    }
    const { text } = await answerer([kind, ...heard].join(' '));
    return { text, asked: heard.length };
  },
  reward: ({ outcome: { text }, task: { kind, name } }) => ({ correct: text === entry(kind, name) }),
  rewardGroup({ task: { kind, name, credit }, episodes }) {
    const graphs = episodes.map(({ outcome: { text, asked }, turns }) => {
      const correct = text === entry(kind, name);
      return {
        correct,
        earned: Number(correct) - price * asked,
        edges: turns.filter(({ agent }) => agent === 'graph'),
      };
    });
    if (credit === 'graph') return graphs.map(({ correct }) => ({ correct }));
    const meanWith = (edge: number, state: string) => {
      const alike = graphs.filter(({ edges }) => edges[edge]?.text === state);
      return alike.reduce((sum, { earned }) => sum + earned, 0) / alike.length;
    };
    return graphs.map(({ correct, edges }) => ({
      team: { correct },
      agents: { graph: 0 },
      turns: edges.map(({ turn, text }, edge) => ({ turn, value: meanWith(edge, text) })),
    }));
  },
  metrics: ({ outcome: { asked } }) => ({ asked }),
});

type Data = z.infer<typeof team.task>;

/** All questions occur in training: the team learns which expert to ask. */
const tasks = (settings: Pick<Data, 'graph' | 'credit'>) => ({
  name: 'books',
  settings,
  configure: (changed: unknown) => tasks(changed as typeof settings),
  load: async (split: 'train' | 'test') => {
    const at = (index: number) => {
      const kind = kinds[index % kinds.length] ?? 'colour';
      const name = names[Math.floor(index / kinds.length) % names.length] ?? 'Ada';
      return { id: `${kind} ${name}`, data: { kind, name, ...settings } };
    };
    return { name: `books ${split}`, size: kinds.length * names.length, at };
  },
  trace(random: { pick<T>(from: readonly [T, ...T[]]): T; chance(share: number): boolean }) {
    const kind = random.pick(kinds);
    const name = random.pick(names);
    if (random.chance(0.5))
      return { agent: kind, messages: [{ role: 'user' as const, content: name }], response: entry(kind, name) };
    const heard = kinds.flatMap((each) => (random.chance(0.5) ? [[each, random.pick(words[each])] as const] : []));
    const response = heard.find(([each]) => each === kind)?.[1] ?? random.pick(words[kind]);
    const content = [kind, ...heard.map(([, word]) => word)].join(' ');
    return { agent: 'answerer', messages: [{ role: 'user' as const, content }], response };
  },
});

const systems = ['<answerer>', ...kinds.map((kind) => `<${kind}>`)];

export default defineRecipe({
  team,
  tasks: tasks({ graph: 'learnt', credit: 'graph' }),
  model: tinyDecoder({
    width: 24,
    layers: 1,
    heads: 2,
    feedForward: 64,
    context: 16,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: ['<ask>', '<end>', ' ', ...systems, ...kinds, ...names, ...kinds.flatMap((kind) => words[kind])],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  policies: {
    graph: {
      model: choiceTable({ choices: edges, features: kinds.flatMap((kind) => kinds.map((each) => edge(kind, each))) }),
      optimizer: { learningRate: 0.1 },
    },
    colour: { optimizer: { learningRate: 1e-4 } },
    city: { optimizer: { learningRate: 1e-4 } },
    pet: { optimizer: { learningRate: 1e-4 } },
    answerer: { optimizer: { learningRate: 1e-4 } },
  },
  agents: { colour: { callCost: price }, city: { callCost: price }, pet: { callCost: price } },
  warmStart: { steps: 400, batch: 64, learningRate: 8e-3, share: 'policy' },
  training: { steps: 40, tasksPerStep: 8, groupSize: 16 },
  evaluation: { every: 20, tasks: 24, samples: 8 },
});
