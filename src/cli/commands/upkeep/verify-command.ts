import { nodeFiles } from '@drmas/engine/platform';
import { requireRun, verifyRun } from '../../../method/store.js';
import { argument, defineCommand } from '../../define-command.js';
import { toggle } from '../../flags.js';

export const verify = defineCommand({
  name: 'verify',
  description: 'compare the files of a run with their digests, to find damage',
  details:
    'compares each file of a run with the digest that drmas stored when it wrote the file, and lists damaged and unchecked files, with what killed processes left behind (`.tmp-*`). The exit code is 1 if a file is damaged',
  arguments: [argument('run', 'directory of the run')],
  flags: { json: toggle('print the files as JSON') },
  examples: ['drmas doctor verify runs/first'],
  async run({ stdout }, [run], { json }) {
    await requireRun(nodeFiles, run);
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
