/**
 * A family as a team that drmas trains: its tasks, tiny decoders, and a warm start that teaches the form of answers.
 */
import { agent, defineRecipe, defineTeam, type RecipeDefinition, type TaskSource, tinyDecoder, user } from 'drmas';
import type { RandomStream, Split } from 'drmas/tasks';
import { z } from 'zod';
import type { EstimatorDeclaration } from '../../src/method/advantage.js';
import { assignment, type Family, MOST_ROUNDS, START, tickets } from './families.js';
import {
  type Call,
  codes,
  draw,
  type End,
  type Move,
  type Node,
  owners,
  playFrom,
  signs,
  skilled,
  type Ticket,
  ticketSchema,
} from './game.js';

/** The knob's schema: its range, whole numbers for a count, and its usual value. */
export function knobSchema({ knob }: Family): z.ZodType<number> {
  const range = z.number().min(knob.least).max(knob.most);
  return knob.whole ? range.int() : range;
}

const code = (text: string) => codes.find((word) => word === text.trim());

/** An agent that answers with one code. */
export const oneCode = agent({ parse: code, sampling: { maxTokens: 2 } });

type Reply = { readonly value?: (typeof codes)[number] | undefined } | undefined;

/** Plays a game to its end with the agents' replies. A reply that is no code is a wrong choice. */
export async function playAsked(
  begin: Node,
  ask: (call: Call) => Promise<Reply> | undefined,
  random: RandomStream,
): Promise<End> {
  let node = begin;
  while (node.kind !== 'end') {
    if (node.kind === 'chance') node = node.after(random.chance(node.probability));
    else {
      const reply = await ask(node);
      node = node.after(reply?.value === undefined ? -1 : codes.indexOf(reply.value));
    }
  }
  return node;
}

/** The tickets of a split as tasks, each with a name. */
export function listed<Data extends Ticket>(name: string, list: readonly Data[]) {
  const at = (index: number) => {
    const data = list[index % list.length] as Data;
    return { id: `${owners[data.owner]} ${signs[data.sign]}`, data };
  };
  return { name, size: list.length, at };
}

function teamOf(family: Family, difficulty: number) {
  const names = Object.keys(assignment(family, difficulty));
  return defineTeam({
    name: family.id,
    task: ticketSchema,
    agents: Object.fromEntries(names.map((name) => [name, oneCode])),
    play: ({ task, agents, random }) =>
      playAsked(
        family.begin(task),
        ({ agent: name, prompt, round }) => agents[name]?.(prompt, { envStep: round }),
        random,
      ),
    reward: ({ outcome: { team, agents } }) => ({ team, ...(agents === undefined ? {} : { agents }) }),
    success: ({ outcome }) => outcome.score,
  });
}

function source(family: Family, difficulty: number): TaskSource<Ticket> {
  const lists = tickets(difficulty);
  return {
    name: family.id,
    settings: { difficulty },
    configure: (settings) =>
      source(family, z.strictObject({ difficulty: knobSchema(family) }).parse(settings).difficulty),
    load: async (split) => listed(`${family.id} ${split}`, lists[split]),
    trace(random, split) {
      const { call, answer } = demonstration(family, difficulty, split, random);
      return { agent: call.agent, messages: [user(call.prompt)], response: `${answer} ` };
    },
  };
}

/**
 * A demonstration of the warm start: an answer of the form that the agents need, right as often as a family's `start`.
 */
export function demonstration(
  family: Family,
  difficulty: number,
  split: Split,
  random: RandomStream,
): { readonly call: Call; readonly answer: string } {
  const list = tickets(family.evaluatedAt ?? difficulty)[split] as readonly [Ticket, ...Ticket[]];
  const policy = skilled((name) => family.start[name] ?? START);
  const { moves } = playFrom(family.begin(random.pick(list)), (call) => draw(policy, call, random), random);
  const { call, choice } = random.pick(moves as [Move]);
  return { call, answer: codes[choice] as string };
}

/** All words that prompts and answers consist of. */
const roles = ['worker', 'expert', 'major', 'minor', 'left', 'right', 'planner', 'actor', 'twin', 'rider'];
const moreRoles = ['drafter', 'finisher', 'writer', 'editor'];
const roundNames = Array.from({ length: MOST_ROUNDS }, (_, i) => `r${i}`);
export const vocabulary: readonly string[] = [...codes, ...signs, ...owners, ...roles, ...moreRoles, ...roundNames];

/** The model of each policy. */
export const decoder = tinyDecoder({
  width: 32,
  layers: 1,
  heads: 2,
  feedForward: 64,
  context: 16,
  embeddingDeviation: 0.5,
  tokenizer: {
    type: 'symbols',
    symbols: ['<end>', ': ', ...vocabulary.map((word) => `${word} `)],
    stop: '<end>',
    endOfUser: ': ',
    endOfAssistant: '<end>',
  },
});

/** The budget of all trainings. */
export const BUDGET = { steps: 40, tasksPerStep: 8, groupSize: 8, evaluations: 4, tasks: 38, samples: 4 } as const;

/**
 * The recipe of a family.
 * @param use Further estimators that its `advantage` may name
 * @throws RangeError if the difficulty lies outside the knob's range
 */
export function creditRecipe(
  family: Family,
  difficulty = family.knob.usual,
  use: readonly EstimatorDeclaration[] = [],
): RecipeDefinition {
  const checked = knobSchema(family).safeParse(difficulty);
  if (!checked.success) {
    const { least, most, whole } = family.knob;
    throw new RangeError(
      `${family.id}: expected a ${whole ? 'whole number' : 'number'} from ${least} to ${most}, got ${difficulty}`,
    );
  }
  const train = source(family, difficulty);
  return defineRecipe({
    name: family.id,
    use: [...use],
    team: teamOf(family, difficulty),
    tasks: { train, test: source(family, family.evaluatedAt ?? difficulty) },
    assign: assignment(family, difficulty),
    model: decoder,
    warmStart: { steps: 300, batch: 64, learningRate: 8e-3 },
    training: {
      steps: BUDGET.steps,
      tasksPerStep: BUDGET.tasksPerStep,
      groupSize: BUDGET.groupSize,
      keepEpisodes: false,
      checkpointEvery: 1000,
    },
    evaluation: { every: BUDGET.steps / BUDGET.evaluations, tasks: BUDGET.tasks, samples: BUDGET.samples },
  });
}
