/** The flag `--ray` of commands: it trains on a Ray cluster. */
import { createInterface } from 'node:readline/promises';
import { RecipeError } from '@drmas/engine/errors';
import { RayRuns } from '../cluster/ray.js';
import { type CommandContext, INTERRUPTED } from './command-context.js';
import { cards, text } from './flags.js';

export const onRay = {
  ray: text('url', "train as jobs of a Ray cluster; the address of its head's dashboard, http://HOST:8265"),
  store: text('place', 'with --ray: folder that all nodes share, or s3://bucket/prefix, for the runs'),
  rayCommand: text(
    'line',
    'with --ray: command that starts drmas on a node (default: npm ci with the lockfile, or npx)',
  ),
  gpusPerRun: cards('with --ray: share of a card for each run, such as 0.5, or a number of cards (default: no card)'),
};

export interface RayFlags {
  readonly ray?: string | undefined;
  readonly store?: string | undefined;
  readonly rayCommand?: string | undefined;
  readonly cpus?: number | undefined;
  /** Cards of a job. */
  readonly gpusPerRun?: number | undefined;
}

/**
 * Does work whose runs train on the cluster. On an interruption it asks on a terminal whether to stop the jobs.
 * Otherwise the jobs continue, and the same command finds them again.
 * @throws RunError when Ray cannot be reached; RecipeError for flags that need --ray
 */
export async function withRay(
  context: CommandContext,
  { ray: url, store, rayCommand: command, cpus, gpusPerRun: gpus }: RayFlags,
  work: (there: CommandContext) => Promise<number>,
): Promise<number> {
  if (url === undefined) {
    if (store !== undefined || command !== undefined) throw new RecipeError('--store and --ray-command need --ray');
    if (gpus !== undefined) throw new RecipeError('--gpus-per-run needs --ray');
    return work(context);
  }
  const runs = new RayRuns({ url, store, command, cpus, gpus });
  await runs.check();
  // The nodes check their own kernels.
  const place = { ...context.place, requireKernels: async () => {}, executeRun: runs.executeRun };
  const code = await work({ ...context, place });
  if (code !== INTERRUPTED || runs.active.length === 0) return code;
  await context.protect(async () => {
    const count = runs.active.length;
    const [jobs, continues, them] =
      count === 1 ? ['its job', 'continues', 'it'] : [`its ${count} jobs`, 'continue', 'them'];
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
      : `${jobs} on Ray ${continues}; the same command with --ray ${url} finds ${them} again`;
    context.stderr.write(`${outcome}\n`);
  });
  return code;
}
