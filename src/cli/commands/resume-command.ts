import { resumeWith } from '../../run/api.js';
import { argument, defineCommand } from '../define-command.js';
import { device, json, text, threads, toggle, track } from '../flags.js';
import { reportRun, typedRequest } from '../report-run.js';

export const resume = defineCommand({
  name: 'resume',
  description: 'go on with an interrupted run from its last checkpoint',
  details:
    'goes on from the last checkpoint, bit for bit as if never interrupted. Refuses changed code unless told `--accept-changes`, and damaged checkpoints; `--from` goes on from an older one',
  arguments: [argument('run', 'directory of the run')],
  flags: {
    acceptChanges: toggle('go on although the recipe or its code has changed, or other kernels compute'),
    from: text('step', 'go on from this checkpoint, such as step-000004; what came after it is removed'),
    recipe: text('file', "where the recipe's file lies now, if it was moved"),
    device,
    threads,
    track,
    json,
  },
  examples: ['drmas resume runs/math-20260131-094501', 'drmas resume runs/first --from step-000040'],
  run(context, [path], { json: asJson = false, recipe, ...options }) {
    return reportRun(
      context,
      asJson,
      ({ source, overrides }) => typedRequest(source, overrides),
      (reporting) => resumeWith(context.work, path, recipe, { ...options, ...reporting }),
      options,
    );
  },
});
