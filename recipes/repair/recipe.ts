/**
 * A coder, tests and a fixer. The coder writes a command line for a request; a sandbox runs it against hidden tests.
 * In a quarter of the episodes the sandbox has a newer toolbox, in which all commands are renamed; only the error
 * message reveals this. The fixer is called only after a failure, sees request, command line and message, and has one
 * try. The warm start teaches that the old names are gone, but not the new ones: reinforcement must find twelve names.
 *
 * The fixer is called in episodes that go badly, so a baseline shared by all agents is far above its possible reward:
 * hardly any of its replies is above that average. This is where Dr. MAS differs from GRPO:
 *
 *     drmas compare repair
 */
import { agent, assistant, defineRecipe, defineTeam, tinyDecoder, user } from 'drmas';
import { z } from 'zod';
import { toolboxCommand, toolboxSymbols } from './commands.js';
import { toolboxSandbox } from './sandbox.js';
import { toolbox } from './world.js';

const sampling = { maxTokens: 6 };

const team = defineTeam({
  name: 'coder-tests-fixer',
  task: z.object({ request: z.string(), drift: z.number() }),
  agents: {
    coder: agent({ system: '<coder>', parse: toolboxCommand, sampling }),
    fixer: agent({ system: '<fixer>', parse: toolboxCommand, sampling }),
  },
  async play({ task: { request, drift }, agents: { coder, fixer }, random }) {
    const sandbox = toolboxSandbox(request, random.chance(drift) ? 2 : 1);
    const draft = await coder(request);
    const { passed, message } = sandbox.run(draft.text);
    if (passed) return { answer: draft.text, passed };
    const repair = await fixer([user(request), assistant(draft.text), user(message)]);
    return { answer: repair.text, passed: sandbox.run(repair.text).passed };
  },
  reward: ({ outcome }) => ({ passed: outcome.passed }),
});

export default defineRecipe({
  team,
  tasks: toolbox(),
  model: tinyDecoder({
    width: 64,
    layers: 2,
    heads: 4,
    feedForward: 160,
    context: 40,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: toolboxSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  // The fixer must find twelve names. At the fixer's rate the coder, which has nothing to find, would follow noise.
  policies: { fixer: { optimizer: { learningRate: 1e-3 } } },
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 400, batch: 64, learningRate: 4e-3 },
  training: { steps: 150, tasksPerStep: 16, groupSize: 16 },
  evaluation: { every: 30, tasks: 150, samples: 4 },
});
