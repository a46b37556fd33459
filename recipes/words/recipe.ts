/**
 * A coder, a sandbox and a fixer, in plain English, on a pretrained language model. The coder reads a request ("I need
 * diary twice.") and writes a command line (`copy diary`). In half of the episodes the sandbox has version 2, in which
 * every command has another name, an English synonym. The fixer is called only after a failure, reads the line and the
 * error, and writes one word. The warm start is light: it shows formats and synonyms of other verbs, and no new name.
 *
 * Two LoRA adapters on SmolLM2-135M-Instruct. `npm run real` fetches the model and trains a pair; any other chat model
 * of the Llama, Qwen2 or Qwen3 family takes its place:
 *
 *     drmas compare words --model path/to/model.gguf
 */
import { agent, checkpoint, defineRecipe, defineTeam, lora } from 'drmas';
import { z } from 'zod';
import { commandNames, failure, requests } from './world.js';

const sampling = { maxTokens: 8 };

const team = defineTeam({
  name: 'coder-sandbox-fixer',
  task: z.object({ request: z.string(), name: z.string(), renamed: z.string(), file: z.string(), drift: z.number() }),
  agents: {
    coder: agent({
      system: `Write the command: ${commandNames.slice(0, -1).join(', ')} or ${commandNames.at(-1)}.`,
      parse: (text) => (/^[a-z]+ [a-z]+$/.test(text) ? text : undefined),
      sampling,
    }),
    fixer: agent({
      system: 'Give a synonym.',
      parse: (text) => (/^[a-z]+$/.test(text) ? text : undefined),
      sampling,
    }),
  },
  async play({ task: { request, name, renamed, file, drift }, agents: { coder, fixer }, random }) {
    const isVersion2 = random.chance(drift);
    const right = `${isVersion2 ? renamed : name} ${file}`;
    const draft = await coder(request);
    if (draft.text === right) return { answer: draft.text, passed: true, isVersion2 };
    const { text: word } = await fixer(failure(draft.text, isVersion2));
    const answer = `${word} ${draft.text.split(' ').slice(1).join(' ')}`;
    return { answer, passed: answer === right, isVersion2, understood: draft.text === `${name} ${file}` };
  },
  reward: ({ outcome }) => ({ passed: outcome.passed }),
  success: ({ outcome }) => outcome.passed,
  metrics: ({ outcome: { isVersion2, passed, understood } }) => ({
    coderRight: isVersion2 ? understood : passed,
    fixerRight: isVersion2 && understood ? passed : undefined,
  }),
});

export default defineRecipe({
  team,
  tasks: requests(),
  model: lora(checkpoint('HuggingFaceTB/SmolLM2-135M-Instruct'), { rank: 8 }),
  policies: {
    coder: { optimizer: { learningRate: 3e-4 }, warmupSteps: 2 },
    fixer: { optimizer: { learningRate: 1e-3 }, warmupSteps: 2 },
  },
  advantage: { type: 'drmas', singleton: 'zero' }, // as in the runs that are published
  warmStart: { steps: 16, batch: 16, learningRate: 2e-3, warmupSteps: 3 },
  training: { steps: 24, tasksPerStep: 4, groupSize: 16, checkpointEvery: 4, keepCheckpoints: 2, keepFirst: true },
  evaluation: { every: 24, tasks: 28, samples: 4 },
});
