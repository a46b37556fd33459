/**
 * A support desk: triage, a generalist, and one specialist for each of K product lines, of whom one is called after the
 * usual remedy has failed. The demonstrations of the warm start know what patches are called and not which one mends
 * what: reinforcement has to find a table of eight patches for every specialist, from the few episodes that reach it.
 * A baseline that all agents share lies far above what a specialist can earn.
 *
 *     drmas train desk --set advantage.type=grpo
 */
import { defineRecipe, supportDesk, ticketSymbols, tickets, tinyDecoder } from 'drmas';

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
  warmStart: { steps: 300, batch: 64, learningRate: 4e-3 },
  training: { steps: 150, tasksPerStep: 16, groupSize: 16 },
  evaluation: { every: 50, tasks: 64, samples: 8 },
});
