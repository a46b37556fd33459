/**
 * Teams of two agents from the families of CreditBench, in one recipe: settings of the tasks choose the family, its
 * difficulty and how often each agent is right before reinforcement. `first` acts before `second`.
 */
import { defineRecipe, defineTeam, type RecipeDefinition, type TaskSource, user } from 'drmas';
import { z } from 'zod';
import { families, tickets as heldOut } from '../creditbench/families.js';
import { type Call, codes, draw, type End, type Move, playFrom, skilled, ticketSchema } from '../creditbench/game.js';
import { decoder, listed, oneCode, playAsked } from '../creditbench/recipe.js';

const share = z.number().min(0).max(1);
const knobs = z.strictObject({
  family: z.string().default('rare-caller'),
  difficulty: z.number().default(0.5),
  /** The share of the warm start's demonstrations in which an agent is right. */
  first: share.default(0.25),
  second: share.default(0.25),
});
type Knobs = z.output<typeof knobs>;

const taskSchema = ticketSchema.extend(knobs.shape);
type Task = z.output<typeof taskSchema>;

function beginning(task: Task) {
  const family = families.find(({ id }) => id === task.family);
  if (family === undefined) throw new RangeError(`there is no family '${task.family}'`);
  const { sign, owner, difficulty } = task;
  return { names: Object.keys(family.assign), node: family.begin({ sign, owner, difficulty }) };
}

const team = defineTeam({
  name: 'two-agents',
  task: taskSchema,
  agents: { first: oneCode, second: oneCode },
  async play({ task, agents, random }): Promise<End> {
    const { names, node } = beginning(task);
    const ask = ({ agent, prompt, round }: Call) =>
      (agent === names[0] ? agents.first : agents.second)(prompt, { envStep: round });
    const end = await playAsked(node, ask, random);
    const [first = '', second = ''] = names;
    return end.agents === undefined
      ? end
      : { ...end, agents: { first: end.agents[first] ?? 0, second: end.agents[second] ?? 0 } };
  },
  reward: ({ outcome: { team, agents } }) => ({ team, ...(agents === undefined ? {} : { agents }) }),
  success: ({ outcome }) => outcome.score,
});

/** CreditBench's tickets with the settings. */
function tickets(settings: Knobs): TaskSource<Task> {
  const { train, test } = heldOut(settings.difficulty);
  const asTasks = (list: typeof train): Task[] => list.map((ticket) => ({ ...ticket, ...settings }));
  const lists = { train: asTasks(train), test: asTasks(test) };
  return {
    name: 'two-agents',
    settings,
    configure: (changed) => tickets(knobs.parse(changed)),
    load: async (split) => listed(`two-agents ${split}`, lists[split]),
    trace(random, split) {
      const { names, node } = beginning(random.pick(lists[split] as [Task, ...Task[]]));
      const policy = skilled((name) => (name === names[0] ? settings.first : settings.second));
      const { moves } = playFrom(node, (call) => draw(policy, call, random), random);
      const { call, choice } = random.pick(moves as [Move]);
      return {
        agent: call.agent === names[0] ? 'first' : 'second',
        messages: [user(call.prompt)],
        response: `${codes[choice]} `,
      };
    },
  };
}

const recipe: RecipeDefinition = defineRecipe({
  team,
  tasks: tickets(knobs.parse({})),
  model: decoder,
  warmStart: { steps: 300, batch: 64, learningRate: 8e-3 },
  training: { steps: 40, tasksPerStep: 8, groupSize: 8, keepEpisodes: false, checkpointEvery: 1000 },
  evaluation: { every: 10, tasks: 38, samples: 8 },
});

export default recipe;
