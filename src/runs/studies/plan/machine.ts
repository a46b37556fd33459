/** Machines and their speed with a recipe: measured here, or read from a file. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, RecipeError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { z } from 'zod';

const seconds = z.number().nonnegative();

export const machineSchema = z
  .strictObject({
    name: z.string().min(1).describe('The name in the plan.'),
    recipe: z.string().optional().describe('The recipe of the measurement. The speed differs with other models.'),
    sampling: z
      .strictObject({
        iterationSeconds: seconds.describe('An iteration of the batch, which gives each sequence one token.'),
        sequenceSeconds: seconds.describe('Additional seconds of an iteration for each sequence in the batch.'),
        promptTokenSeconds: seconds.describe('Reading one token of a prompt.'),
        engines: z.int().min(1).default(1).describe('Engines that share the calls evenly.'),
      })
      .describe('Its sampler.'),
    training: z
      .strictObject({
        tokenSeconds: seconds.describe('Learning from one token, once.'),
        updateSeconds: seconds.default(0).describe('Fixed seconds of an update.'),
      })
      .describe('Its trainer.'),
    transferSeconds: seconds.default(0).describe('From an update until the sampler has its weights.'),
    shared: z.boolean().default(false).describe('Whether sampler and trainer take turns on the same processors.'),
    pricePerHour: z.number().nonnegative().optional().describe('In any currency.'),
    memoryBytes: z.number().positive().optional().describe('Memory for a run.'),
  })
  .describe('A machine, a server or a cluster for `drmas plan`.');

export type Machine = z.output<typeof machineSchema>;

/** Reads a machine file. @throws RecipeError with the wrong value */
export async function readMachine(path: string): Promise<Machine> {
  let content: unknown;
  try {
    content = JSON.parse(await nodeFiles.readText(path));
  } catch (error) {
    throw new RecipeError(`${path} cannot be read as a machine file: ${messageOf(error)}`);
  }
  const { data, error } = machineSchema.safeParse(content);
  if (data === undefined)
    throw new RecipeError(`${path} is not a machine file as --save writes it: ${z.prettifyError(error)}`);
  return data;
}

/**
 * Refuses a path where no machine file can be saved, before anything is measured.
 * @throws RecipeError when its directory does not exist, or it has a file that is not a machine file
 */
export async function requireSavePath(path: string): Promise<void> {
  const directory = dirname(path);
  const isDirectory = await stat(directory).then(
    (status) => status.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw new RecipeError(`cannot write ${path}: there is no directory ${directory}`);
  if (!(await nodeFiles.exists(path))) return;
  await readMachine(path).catch(() => {
    throw new RecipeError(`${path} exists and is not a machine file; choose another with --save`);
  });
}

/** Writes a machine file, whole or not at all, in the place of an earlier one. @throws RecipeError when it cannot */
export async function writeMachine(path: string, machine: Machine): Promise<void> {
  try {
    await nodeFiles.replace(path, `${JSON.stringify(machine, null, 2)}\n`);
  } catch (error) {
    throw new RecipeError(`cannot write ${path}: ${messageOf(error)}`);
  }
}
