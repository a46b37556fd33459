/** Machines by their speed at a recipe, as a probe measures it here and a file says it of others. */
import { z } from 'zod';
import { messageOf, RecipeError } from '../../core/errors.js';
import { nodeFiles } from '../../platform/node-files.js';

const seconds = z.number().nonnegative();

export const machineSchema = z
  .strictObject({
    name: z.string().min(1).describe('What the plan calls it.'),
    recipe: z.string().optional().describe('The recipe that it was measured with: other models have other speeds.'),
    sampling: z
      .strictObject({
        iterationSeconds: seconds.describe('An iteration of the batch, which gives each sequence one token.'),
        sequenceSeconds: seconds.describe('What each sequence in the batch adds to an iteration.'),
        promptTokenSeconds: seconds.describe('Reading one token of a prompt.'),
        engines: z.int().min(1).default(1).describe('Engines that share the calls evenly.'),
      })
      .describe('Its sampler.'),
    training: z
      .strictObject({
        tokenSeconds: seconds.describe('Learning from one token, once.'),
        updateSeconds: seconds.default(0).describe('What an update takes besides.'),
      })
      .describe('Its trainer.'),
    transferSeconds: seconds.default(0).describe('From an update until the sampler has its weights.'),
    shared: z.boolean().default(false).describe('Whether sampler and trainer take turns on the same processors.'),
    pricePerHour: z.number().nonnegative().optional().describe('In any currency.'),
    memoryBytes: z.number().positive().optional().describe('What a run may take.'),
  })
  .describe('A machine, a server or a cluster for `drmas plan`.');

export type Machine = z.output<typeof machineSchema>;

/** Reads the file of a machine. @throws RecipeError naming the value that is wrong */
export async function readMachine(path: string): Promise<Machine> {
  let content: unknown;
  try {
    content = JSON.parse(await nodeFiles.readText(path));
  } catch (error) {
    throw new RecipeError(`${path} cannot be read as the file of a machine: ${messageOf(error)}`);
  }
  const { data, error } = machineSchema.safeParse(content);
  if (data === undefined)
    throw new RecipeError(`${path} is not the file of a machine, such as --save writes: ${z.prettifyError(error)}`);
  return data;
}

/** Writes the file of a machine. @throws RecipeError */
export async function writeMachine(path: string, machine: Machine): Promise<void> {
  try {
    await nodeFiles.write(path, `${JSON.stringify(machine, null, 2)}\n`);
  } catch (error) {
    throw new RecipeError(`${path} cannot be written: ${messageOf(error)}`);
  }
}
