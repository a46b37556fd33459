/** Commands whose runs are made on a Ray cluster where `--ray` says so. */
import { createInterface } from 'node:readline/promises';
import { RecipeError } from '../core/errors.js';
import { RayRuns } from '../studies/ray/ray-runs.js';
import { type CommandContext, INTERRUPTED } from './command-context.js';
import { text } from './flags.js';

export const onRay = {
  ray: text('url', "make runs as jobs of a Ray cluster; the address of the head's dashboard, http://HOST:8265"),
  store: text('place', 'with --ray: a folder that all nodes share, or s3://bucket/prefix, where the runs lie'),
  rayCommand: text('line', 'with --ray: what starts drmas on the nodes (default: npm ci by the lockfile, or npx)'),
};

export interface RayFlags {
  readonly ray?: string | undefined;
  readonly store?: string | undefined;
  readonly rayCommand?: string | undefined;
  /** CPUs of a job. */
  readonly cpus?: number | undefined;
}

/**
 * Does work whose runs are made on the cluster. Interrupted, it asks whether to stop the jobs; where nobody can be
 * asked they go on, and the same command finds them again.
 * @throws RunError when there is no Ray; RecipeError for flags that mean nothing without it
 */
export async function withRay(
  context: CommandContext,
  { ray: url, store, rayCommand: command, cpus }: RayFlags,
  work: (there: CommandContext) => Promise<number>,
): Promise<number> {
  if (url === undefined) {
    if (store !== undefined || command !== undefined)
      throw new RecipeError('--store and --ray-command say how runs are made on a cluster: they need --ray');
    return work(context);
  }
  const runs = new RayRuns({ url, store, command, cpus });
  await runs.check();
  // What computes there is looked at there.
  const there = { ...context.work, requireKernels: async () => {}, executeRun: runs.executeRun };
  const code = await work({ ...context, work: there });
  if (code !== INTERRUPTED || runs.active.length === 0) return code;
  await context.protect(async () => {
    const count = runs.active.length;
    const [jobs, go, them] = count === 1 ? ['its job', 'goes', 'it'] : [`its ${count} jobs`, 'go', 'them'];
    const { input, output } = context.stdin();
    let stop = false;
    if (input.isTTY === true) {
      const prompt = createInterface({ input, output });
      stop = /^y/i.test(await prompt.question(`Stop ${jobs} on Ray? [y/N] `));
      prompt.close();
    }
    if (stop) await runs.stop();
    const outcome = stop
      ? `stopped ${jobs} on Ray`
      : `${jobs} on Ray ${go} on; who goes on with --ray ${url} finds ${them}`;
    context.stderr.write(`${outcome}\n`);
  });
  return code;
}
