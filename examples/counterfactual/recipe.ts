/**
 * Credit for single turns by playing them again (C3). Four drivers take one car from place to place, one stretch each.
 * All earn 1 if it ends at its goal, so their shared reward hides who was right. The estimator `counterfactual` plays
 * each turn again with the same turns before it. A turn earns the episode's reward minus the mean reward of the other
 * endings. The drivers are tables of choices, so that a run takes seconds.
 *
 *     npx drmas ablate examples/counterfactual/recipe.ts --variant drmas=training.groupSize=7 \
 *       --variant counterfactual=advantage.type=counterfactual,training.groupSize=2 --seeds 5
 */
import { agent, choiceTable, defineRecipe, defineTeam, oneOf } from 'drmas';
import { z } from 'zod';

const places = ['Ashby', 'Bray', 'Corby', 'Dover', 'Ely', 'Frome'] as const;
type Place = (typeof places)[number];
const roads = ['by the coast', 'over the hill', 'through the wood'] as const;
/** How many places further each road leads. */
const lengths = { 'by the coast': 1, 'over the hill': 2, 'through the wood': 4 };
const after = (place: Place, road: (typeof roads)[number]): Place =>
  places[(places.indexOf(place) + lengths[road]) % places.length] ?? place;
/** A driver's observation: the car's place and its goal. */
const leg = (at: Place, to: Place) => `${at} to ${to}`;

const driver = () => agent({ parse: oneOf(...roads), sampling: { maxTokens: 1 } });

export const team = defineTeam({
  name: 'drivers',
  task: z.object({ from: z.enum(places), to: z.enum(places) }),
  agents: { first: driver(), second: driver(), third: driver(), fourth: driver() },
  async play({ task: { from, to }, agents: { first, second, third, fourth } }) {
    let at = from;
    for (const drive of [first, second, third, fourth]) {
      const { value: road } = await drive(leg(at, to));
      if (road !== undefined) at = after(at, road);
    }
    return { at };
  },
  reward: ({ outcome: { at }, task: { to } }) => at === to,
});

const trips = places.flatMap((from) => places.map((to) => ({ from, to })));
const table = { model: choiceTable({ choices: roads, features: trips.map(({ from, to }) => leg(from, to)) }) };
const policy = { ...table, optimizer: { learningRate: 0.1 } };

export default defineRecipe({
  team,
  tasks: {
    name: 'trips',
    load: async (split) => {
      const at = (index: number) => {
        const { from, to } = trips[index % trips.length] ?? { from: 'Ashby' as const, to: 'Bray' as const };
        return { id: leg(from, to), data: { from, to } };
      };
      return { name: `trips ${split}`, size: trips.length, at };
    },
  },
  policies: { first: policy, second: policy, third: policy, fourth: policy },
  advantage: { type: 'counterfactual' },
  training: { steps: 40, tasksPerStep: 12, groupSize: 2 },
  evaluation: { every: 20, tasks: 36, samples: 16 },
});
