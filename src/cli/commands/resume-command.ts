import { resumeIn } from '../../runs/index.js';
import { argument, defineCommand } from '../define-command.js';
import { allowEndpoint, device, json, text, threads, toggle, track } from '../flags.js';
import { reportRun, typedRequest } from '../report-run.js';

export const resume = defineCommand({
  name: 'resume',
  description: 'resume an interrupted run from its last checkpoint',
  details:
    'continues from the last checkpoint, or from an older one with `--checkpoint`. With the embedded engine and the same kernels, a team that answers the same to the same tokens gets bit for bit the result of an uninterrupted run. drmas refuses damaged checkpoints, and changed code unless you add `--accept-changes`',
  arguments: [argument('run', 'directory of the run')],
  flags: {
    acceptChanges: toggle('resume although the recipe, its code or the kernels have changed'),
    checkpoint: text(
      'step',
      'resume from this step, such as 40, or `best` (default: the last checkpoint); later steps are removed',
    ),
    recipe: text('file', "the recipe's file, if it was moved"),
    allowEndpoint,
    device,
    threads,
    track,
    json,
  },
  examples: ['drmas resume runs/math-20260131-094501', 'drmas resume runs/first --checkpoint 40'],
  run(context, [path], { json: asJson = false, recipe, checkpoint, ...others }) {
    const options = { ...others, ...(checkpoint === undefined ? {} : { from: checkpoint }) };
    return reportRun(
      context,
      asJson,
      ({ source, overrides }) => typedRequest(source, overrides),
      (reporting) => resumeIn(context.place, path, recipe, { ...options, ...reporting }),
      options,
    );
  },
});
