import { progressListener } from '@drmas/engine/host';
import { commandText, nodeHost } from '@drmas/engine/platform';
import { requestImprovement } from '../../../runs/studies.js';
import { type CommandContext, INTERRUPTED, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import {
  allowEndpoint,
  device,
  integer,
  json,
  list,
  replaced,
  set,
  text,
  threads,
  toggle,
  withDevice,
} from '../../flags.js';
import { improvementLines, improvementPlanLines, roundLines } from '../../reporter/comparison/improvement-printer.js';
import { playLine } from '../../reporter/progress-printer.js';
import { StatusLines, screenOf } from '../../reporter/screen.js';
import { nearPath, wrap } from '../../reporter/text-layout.js';

/** Improves system prompts. It changes no file of the recipe or the run. */
export const improve = defineCommand({
  name: 'improve',
  description: 'let a language model improve the system prompts of agents',
  details:
    'shows failed episodes to a language model behind an OpenAI-compatible endpoint, which proposes new system prompts. drmas keeps a prompt that wins a paired evaluation; the weights stay the same. Accepted prompts go to `prompts.json`, for `--set @FILE` of other commands. Given its directory, it resumes an interrupted improvement',
  arguments: [
    argument('recipe', 'name or file; or the directory of a run; or the directory of an improvement, to resume it'),
  ],
  flags: {
    prompts: replaced('unnecessary'),
    endpoint: text(
      'url',
      'server of the language model, such as http://127.0.0.1:8000/v1; set its key in OPENAI_API_KEY',
    ),
    model: text('name', 'name of the language model on the server'),
    agents: list('names', 'agents whose prompts to improve, such as solver,verifier (default: all)'),
    proposals: integer(1, 'proposals, at most (default: 8)'),
    tasks: integer(2, 'tasks of a round (default: 64)'),
    samples: integer(1, 'episodes of each task (default: 4)'),
    pool: integer(
      2,
      'keep a pool of prompts, compared on so many tasks; a round changes one that is best at some task',
    ),
    set,
    seed: integer(0, 'seed of tasks and sampling'),
    run: text('directory', 'directory of the improvement (default: runs/<recipe>-prompts-<time>)'),
    allowEndpoint,
    acceptChanges: toggle('improve although the code of the recipe has changed since the run'),
    dryRun: toggle('print the plan, and start nothing'),
    device,
    threads,
    json,
  },
  examples: [
    'drmas improve my-team.ts --endpoint http://127.0.0.1:8000/v1 --model qwen3-32b',
    'drmas improve runs/first --agents solver --endpoint https://api.openai.com/v1 --model gpt-5-mini',
    'drmas improve my-team.ts --pool 64 --tasks 8 --proposals 40 --endpoint http://127.0.0.1:8000/v1 --model qwen3-32b',
    'drmas improve runs/math-prompts-20260131-094501 --proposals 16',
    'drmas train my-team.ts --set @runs/math-prompts-20260131-094501/prompts.json',
  ],
  async run(context, [source], { prompts: _, dryRun = false, json: asJson = false, ...options }) {
    const { threads: count, ...wishes } = withDevice(options);
    const request = await requestImprovement(source, wishes);
    const { width, ...screen } = screenOf(context.stdout, context.environment);
    const status = new StatusLines({ width, ...screen });
    const print = (value: object) => void context.stdout.write(`${jsonText(value)}\n`);
    const lines = (write: () => readonly string[]) => {
      if (!asJson) status.say(...write());
    };
    const { record, directory } = request;
    if (asJson && dryRun) print({ type: 'plan', ...record });
    lines(() => improvementPlanLines(request));
    if (dryRun) return 0;
    const { signal, protect } = context;
    const notify = noticesOf(context, asJson, status, width);
    const listener = asJson
      ? undefined
      : progressListener((progress) => status.passing(() => playLine(progress, 0, width)));
    const host = nodeHost({ threads: count, signal, protect, notify, listener });
    const resume = commandText(['npx', 'drmas', 'improve', nearPath(directory)]);
    try {
      const result = await context.improvePrompts(
        {
          ...request,
          onRound: (round) => (asJson ? print({ type: 'round', ...round }) : status.say(...roundLines(round, width))),
        },
        host,
      );
      if (asJson) print({ type: 'improvement', ...result });
      lines(() => ['', ...improvementLines(result, request, width)]);
      return 0;
    } catch (error) {
      lines(() => ['', `${signal.aborted ? 'interrupted' : 'stopped'}; resume with: ${resume}`]);
      if (!signal.aborted) throw error;
      return INTERRUPTED;
    }
  },
});

function noticesOf({ stderr }: CommandContext, asJson: boolean, status: StatusLines, width: number) {
  return (message: string) => (asJson ? void stderr.write(`${message}\n`) : status.say(...wrap(message, width)));
}
