import { appendFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RunError } from '../../../base/errors.js';
import type { RunEvent } from '../../../base/events.js';
import { defineTracker, type TrackedRun } from '../../../base/host.js';
import { measurementsOf } from '../measurements.js';
import { restartRecord, scalarRecord, versionRecord } from './event-record.js';

/** The middle of the file's name, by which TensorBoard and importers recognise it. */
const KIND = '.tfevents.';

/** Event files in the run's directory. */
export const tensorboard = defineTracker({
  name: 'tensorboard',
  address: 'none',
  description: 'event files in the directory of the run, for TensorBoard and for programs that import its files',
  open: async (run) => {
    const path = await begin(run).catch((error: unknown) => {
      throw new RunError(`cannot write TensorBoard's event file in ${run.path}: ${messageOf(error)}`);
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
 * Writes a file with the events of the log so far, and removes earlier files. So steps that a resumed run plays again
 * are in the file only once. A running TensorBoard drops the values that it had read.
 */
async function begin({ path, events }: TrackedRun): Promise<string> {
  const earlier = (await readdir(path)).filter((name) => name.includes(KIND)).sort();
  const second = Math.floor(Date.now() / 1000);
  const last = Number(/tfevents\.(\d+)/.exec(earlier.at(-1) ?? '')?.[1] ?? 0);
  const file = join(path, `events.out${KIND}${Math.max(second, last + 1)}.drmas`); // later by name too
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
