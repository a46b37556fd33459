/** A file in the run's directory with the run's name on a server, so that a resumed run keeps that name. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.object({ server: z.string(), runId: z.string() });

/** The name of the run on the server at `url`; undefined if this server does not have the run. */
export async function recordedRun(directory: string, file: string, url: string): Promise<string | undefined> {
  const known = await readFile(join(directory, file), 'utf8').then(
    (text) => schema.parse(JSON.parse(text)),
    () => undefined,
  );
  return known?.server === url ? known.runId : undefined;
}

export function recordRun(directory: string, file: string, record: z.infer<typeof schema>): Promise<void> {
  return writeFile(join(directory, file), `${JSON.stringify(record)}\n`);
}
