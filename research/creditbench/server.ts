/**
 * The families over HTTP, for trainers in any language. The server keeps nothing between requests: a client sends the
 * answers that an episode has so far, and gets the next call or the end. So a client that is killed goes on.
 * The server trusts its clients not to try out other answers of the same episode.
 */

import { DrmasError, messageOf } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { z } from 'zod';
import { familyOf } from './cells.js';
import { assignment, type Family, families, tickets } from './families.js';
import { codes, type Node, rewardOf, type Ticket, ticketSchema } from './game.js';
import { BUDGET, demonstration, knobSchema, vocabulary } from './recipe.js';

const count = z.coerce.number().int().min(1).max(10_000);
const familyQuery = z.object({
  family: z.string(),
  difficulty: z.coerce.number().optional(),
  seed: z.coerce.number().int().min(0),
});
const tasksQuery = familyQuery.extend({
  split: z.enum(['train', 'test']),
  /** The step of training that the tasks are for; evaluations have the same tasks at every step. */
  step: z.coerce.number().int().min(0).default(0),
});
const demonstrationsQuery = familyQuery.extend({ count });
const episodeSchema = z.strictObject({
  family: z.string(),
  task: ticketSchema,
  seed: z.int().min(0),
  step: z.int().min(0),
  /** The number of the episode among the episodes of its task. */
  sample: z.int().min(0),
  /** The texts that the agents have answered so far, in the order of the calls. */
  answers: z.array(z.string()),
});
const playBody = z.strictObject({ episodes: z.array(episodeSchema).min(1).max(4096) });

/** A request that asks for something that there is not. */
class WrongRequest extends Error {}

/** @throws WrongRequest */
function checked(id: string, difficulty: number | undefined): { family: Family; difficulty: number } {
  try {
    const family = familyOf(id);
    const value = knobSchema(family).safeParse(difficulty ?? family.knob.usual);
    if (value.success) return { family, difficulty: value.data };
  } catch (error) {
    throw new WrongRequest(messageOf(error));
  }
  throw new WrongRequest(`${id}: the difficulty ${difficulty} is out of the range of its knob`);
}

/** The tasks of a step of training, or of an evaluation. */
function tasksOf(query: z.output<typeof tasksQuery>): Ticket[] {
  const { family, difficulty } = checked(query.family, query.difficulty);
  if (query.split === 'test') return tickets(family.evaluatedAt ?? difficulty).test.slice(0, BUDGET.tasks);
  const random = new RandomStream('creditbench tasks', family.id, query.seed, query.step);
  const list = tickets(difficulty).train as readonly [Ticket, ...Ticket[]];
  return Array.from({ length: BUDGET.tasksPerStep }, () => random.pick(list));
}

/** The state of an episode after its answers. */
function stateOf(episode: z.output<typeof episodeSchema>): object {
  const { family } = checked(episode.family, episode.task.difficulty);
  const { sign, owner, difficulty } = episode.task;
  const random = new RandomStream('creditbench', family.id, episode.seed, episode.step, sign, owner, episode.sample);
  let node: Node = family.begin({ sign, owner, difficulty });
  const agents: string[] = [];
  const left = [...episode.answers];
  for (;;) {
    if (node.kind === 'chance') node = node.after(random.chance(node.probability));
    else if (node.kind === 'end') break;
    else {
      const { agent, prompt, round } = node;
      const answer = left.shift();
      if (answer === undefined)
        return { done: false, agent, policy: family.assign[agent], prompt: prompt.trim().split(' '), round };
      agents.push(agent);
      node = node.after((codes as readonly string[]).indexOf(answer.trim()));
    }
  }
  if (left.length > 0) throw new WrongRequest(`the episode ended ${left.length} answers before the last one`);
  const end = node;
  return { done: true, rewards: agents.map((agent) => rewardOf(end, agent)), parts: end.team, score: end.score };
}

/** The app; `serveFamilies` listens with it. */
export function familiesApp(): Hono {
  const app = new Hono();
  app.get('/families', (context) =>
    context.json({
      version: 1,
      budget: BUDGET,
      answers: codes,
      vocabulary,
      families: families.map((family) => ({
        id: family.id,
        property: family.property,
        knob: family.knob,
        policies: assignment(family, family.knob.usual),
      })),
    }),
  );
  app.get('/tasks', (context) => context.json({ tasks: tasksOf(tasksQuery.parse(context.req.query())) }));
  app.get('/demonstrations', (context) => {
    const query = demonstrationsQuery.parse(context.req.query());
    const { family, difficulty } = checked(query.family, query.difficulty);
    const random = new RandomStream('creditbench demonstrations', family.id, query.seed);
    const one = () => {
      const { call, answer } = demonstration(family, difficulty, 'train', random);
      return { agent: call.agent, policy: family.assign[call.agent], prompt: call.prompt.trim().split(' '), answer };
    };
    return context.json({ demonstrations: Array.from({ length: query.count }, one) });
  });
  app.post('/play', async (context) => {
    const { episodes } = playBody.parse(await context.req.json());
    return context.json({ episodes: episodes.map(stateOf) });
  });
  app.onError((error, context) => {
    if (error instanceof z.ZodError) return context.json({ error: z.prettifyError(error) }, 400);
    const isTheirs = error instanceof WrongRequest || error instanceof SyntaxError || error instanceof DrmasError;
    return context.json({ error: messageOf(error) }, isTheirs ? 400 : 500);
  });
  return app;
}

/** @param port 0 for any free one */
export function serveFamilies(port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { fetch } = familiesApp();
  return new Promise((resolve) => {
    const server = serve({ fetch, port, hostname: '127.0.0.1' }, (address) =>
      resolve({
        port: address.port,
        close: () => new Promise((ended) => server.close(() => ended())),
      }),
    );
  });
}
