/** A file in the run's directory that names the run as a server knows it: a resumed run goes on with that one. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.object({ server: z.string(), runId: z.string() });

/** The name that the run has on the server at `url`; undefined where it was never told there. */
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
