/**
 * A support desk: triage, a generalist, and one specialist for each of K product lines. One specialist is called after
 * the usual remedy has failed. The warm start teaches the names of the patches, but not which patch repairs which
 * fault: each specialist must learn a table of eight patches, from the few episodes that reach it. A baseline shared by
 * all agents is far above a specialist's possible reward.
 *
 *     drmas train desk --set advantage.type=grpo
 */
import { defineRecipe, tinyDecoder } from 'drmas';
import { supportDesk } from './team.js';
import { ticketSymbols, tickets } from './world.js';

/** The number of specialists, 2 to 8. */
const lines = 4;

const team = supportDesk({ lines });

// Triage and generalist know their work from the demonstrations. At the specialists' rate they lose it to the blame
// that they share for a specialist's failures: triage learns to avoid the line that fails.
const learningRate = (agent: string) => (agent === 'triage' || agent === 'generalist' ? 1e-5 : 1e-3);

export default defineRecipe({
  team,
  tasks: tickets({ lines }),
  model: tinyDecoder({
    width: 64,
    layers: 2,
    heads: 4,
    feedForward: 160,
    context: 24,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: ticketSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  policies: Object.fromEntries(
    Object.keys(team.agents).map((agent) => [agent, { optimizer: { learningRate: learningRate(agent) } }]),
  ),
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 300, batch: 64, learningRate: 4e-3 },
  training: { steps: 150, tasksPerStep: 16, groupSize: 16 },
  evaluation: { every: 50, tasks: 64, samples: 8 },
});
