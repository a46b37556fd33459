/** The program of the walk with AI SDK 6. Nothing in it knows of drmas. */
import { generateObject, type LanguageModel, stepCountIs, ToolLoopAgent, tool } from 'ai';
import { citySchema, look, type Program } from '../../walk.js';

/** @param isEnabled Whether telemetry is recorded */
export function programOf(modelOf: (agent: string) => LanguageModel, isEnabled = false): Program {
  const telemetry = (functionId: string) => ({ experimental_telemetry: { isEnabled, functionId } });
  const greedy = { temperature: 0 };
  const packer = new ToolLoopAgent({
    ...{ model: modelOf('packer'), instructions: 'Pack.', stopWhen: stepCountIs(4), ...telemetry('packer'), ...greedy },
    tools: { look: tool({ description: 'weather', inputSchema: citySchema, execute: async (input) => look(input) }) },
  });
  return async (question) => {
    const asked = { system: 'Which city?', prompt: question, maxRetries: 0, ...telemetry('reader'), ...greedy };
    const { object } = await generateObject({ model: modelOf('reader'), schema: citySchema, ...asked });
    const { text } = await packer.generate({ prompt: object.city });
    return { city: object.city, bag: text };
  };
}
