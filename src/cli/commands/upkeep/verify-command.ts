import { join } from 'node:path';
import { RunError } from '../../../core/errors.js';
import { nodeFiles } from '../../../platform/node-files.js';
import { RECIPE } from '../../../store/run-files.js';
import { verifyRun } from '../../../store/verify-run.js';
import { argument, defineCommand } from '../../define-command.js';
import { toggle } from '../../flags.js';

export const verify = defineCommand({
  name: 'verify',
  description: 'compare every file of a run with its digest: what is whole, and what is not',
  details:
    'compares every file of a run with the digest that was kept when it was written, and says what is damaged, what could not be checked, and how much is whole. Ends with 1 when anything is damaged. `--json`',
  arguments: [argument('run', 'directory of the run')],
  flags: { json: toggle('print the parts as JSON') },
  examples: ['drmas verify runs/first'],
  async run({ stdout }, [run], { json }) {
    if (!(await nodeFiles.exists(join(run, RECIPE)))) throw new RunError(`${run} is not a run: it has no ${RECIPE}`);
    const parts = await verifyRun(run);
    const count = (wanted: string) => parts.filter(({ state }) => state === wanted).length;
    if (json === true) stdout.write(`${JSON.stringify({ type: 'verify', run, parts })}\n`);
    else {
      for (const { path: name, state, why } of parts)
        if (state !== 'whole') stdout.write(`${state.padEnd(9)}  ${name}: ${why}\n`);
      stdout.write(`${count('whole')} whole, ${count('unchecked')} unchecked, ${count('damaged')} damaged\n`);
    }
    return count('damaged') === 0 ? 0 : 1;
  },
});
