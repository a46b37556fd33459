import { why } from '../../../runs/studies.js';
import { interruptedForGood, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, text, threads, toggle } from '../../flags.js';
import { whyLines } from '../../reporter/planning/why-printer.js';
import { playLine } from '../../reporter/progress-printer.js';
import { StatusLines, screenOf } from '../../reporter/screen.js';

/** Tells which part of a step taught the team what it now says. Writes nothing. */
export const whyCommand = defineCommand({
  name: 'why',
  description: 'find the episodes of a step that taught the agents what they now say',
  details:
    "replays a step of a run from the checkpoint before it, then learns from the step again without one group of episodes at a time, and without each agent's turns. It prints by how much each of them made the agents' answers more likely, and the held-out score with and without it. A first-order guess ranks all groups and costs two updates; the groups with the largest guesses are left out for certain. The run stays as it is",
  arguments: [argument('run', 'directory of the run')],
  flags: {
    step: integer(1, 'the step in question (default: the last)'),
    until: integer(1, 'go on to this step before the answers are given (default: the step in question)'),
    agent: text('name', 'the agent whose answers are in question (default: each that learns)'),
    task: text('id', 'the task whose answers are in question (default: the held-out tasks)'),
    answer: text('text', 'only answers with this text are in question (default: whatever they say)'),
    tasks: integer(1, 'held-out tasks (default: the recipe)'),
    samples: integer(1, 'episodes of each task (default: the recipe)'),
    verify: integer(1, 'groups that are left out one by one, those with the largest guesses first (default: 4)'),
    episodes: toggle('also leave out each episode of the first group'),
    estimator: text('type', "also learn from the step with this estimator instead of the recipe's"),
    recipe: text('file', "the recipe's file, if it was moved"),
    acceptChanges: toggle('replay although the code of the recipe or the kernels have changed'),
    device,
    threads,
    json: toggle('print the result as JSON'),
  },
  examples: [
    'drmas why runs/first --step 120 --agent solver',
    'drmas why runs/first --step 120 --task t17 --answer 42 --episodes',
    'drmas why runs/first --estimator grpo --verify 16 --json',
  ],
  async run(context, [path], { json: asJson = false, ...options }) {
    const { signal } = context;
    const screen = screenOf(context.stdout, context.environment);
    const lines = new StatusLines(screen);
    try {
      const answer = await why(path, {
        ...options,
        signal,
        onNotice: (message) => void context.stderr.write(`${message}\n`),
        ...(asJson ? {} : { onProgress: (progress) => lines.passing(() => playLine(progress, 0, screen.width)) }),
      });
      lines.say();
      if (asJson) context.stdout.write(`${jsonText({ type: 'why', ...answer })}\n`);
      else for (const line of whyLines(answer, screen.width)) context.stdout.write(`${line}\n`);
      return 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    }
  },
});
