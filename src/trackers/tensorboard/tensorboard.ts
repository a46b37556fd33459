import { appendFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RunError } from '../../core/errors.js';
import type { RunEvent } from '../../core/events.js';
import { measurementsOf } from '../measurements.js';
import { defineTracker, type TrackedRun } from '../tracker-declaration.js';
import { restartRecord, scalarRecord, versionRecord } from './event-record.js';

/** The middle of the file's name, by which TensorBoard and importers know it. */
const KIND = '.tfevents.';

/** Event files in the run's directory. */
export const tensorboard = defineTracker({
  name: 'tensorboard',
  address: 'none',
  description: 'event files in the directory of the run, for TensorBoard and for importers of its files',
  open: async (run) => {
    const path = await begin(run).catch((error: unknown) => {
      throw new RunError(`no event file for TensorBoard can be written in ${run.path}: ${messageOf(error)}`);
    });
    return {
      name: 'the tracker tensorboard',
      event: async (event) => {
        const record = recordOf(event);
        if (record !== undefined) await appendFile(path, record);
      },
    };
  },
});

/**
 * Writes the file of what the log holds already, in place of earlier ones: steps that a resumed run plays again are
 * never there twice. A TensorBoard that is open forgets what it had read.
 */
async function begin({ path, events }: TrackedRun): Promise<string> {
  const earlier = (await readdir(path)).filter((name) => name.includes(KIND)).sort();
  const second = Math.floor(Date.now() / 1000);
  const last = Number(/tfevents\.(\d+)/.exec(earlier.at(-1) ?? '')?.[1] ?? 0);
  const file = join(path, `events.out${KIND}${Math.max(second, last + 1)}.drmas`); // later by name, too
  const records = events.flatMap((event) => recordOf(event) ?? []);
  await writeFile(file, Buffer.concat([versionRecord(second), restartRecord(second, 0), ...records]));
  for (const name of earlier) await rm(join(path, name));
  return file;
}

function recordOf(event: RunEvent): Uint8Array | undefined {
  const scalars = measurementsOf(event);
  const [first] = scalars;
  if (first === undefined) return undefined;
  return scalarRecord({ wallTime: Date.parse(event.time) / 1000, step: first.step, scalars });
}
