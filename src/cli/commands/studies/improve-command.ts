import { RecipeError } from '../../../core/errors.js';
import { progressObserver } from '../../../core/play/play-observer.js';
import { nodeHost } from '../../../platform/node-host.js';
import { requestImprovement } from '../../../studies/improve/request-improvement.js';
import { type CommandContext, INTERRUPTED, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, json, list, set, text, threads, toggle, withDevice } from '../../flags.js';
import { improvementLines, improvementPlanLines, roundLines } from '../../reporter/comparison/improvement-printer.js';
import { playLine } from '../../reporter/progress-printer.js';
import { screenOf } from '../../reporter/screen.js';
import { StatusLines } from '../../reporter/status-lines.js';
import { nearPath, wrap } from '../../reporter/text-layout.js';

/** Improves what is not weights. Nothing of the recipe or of the run is changed. */
export const improve = defineCommand({
  name: 'improve',
  description: "improve agents' prompts by a language model that reads failed episodes",
  details:
    'asks a language model behind an OpenAI-compatible endpoint for a better system prompt of an agent, again and again, and keeps each that wins a paired evaluation; the weights stay. Accepted prompts go to `prompts.json`, which `--set @FILE` of other commands takes. `--endpoint`, `--model`, `--agents`, `--proposals`, `--dry-run`; goes on where it was interrupted',
  arguments: [argument('recipe', "name or file; or a run's directory; or that of an improvement, to go on with it")],
  flags: {
    prompts: toggle('improve system prompts, which is what can be improved so far'),
    endpoint: text('url', 'server of the language model, such as http://127.0.0.1:8000/v1; its key is OPENAI_API_KEY'),
    model: text('name', "the server's name of the language model"),
    agents: list('names', 'agents that get new prompts, such as solver,verifier (default: all)'),
    proposals: integer(1, 'proposals at most (default: 8)'),
    tasks: integer(2, 'tasks of a round (default: 64)'),
    samples: integer(1, 'episodes of each task (default: 4)'),
    set,
    seed: integer(0, 'seed of tasks and sampling'),
    run: text('directory', 'directory of the improvement (default: runs/<recipe>-prompts-<time>)'),
    acceptChanges: toggle('play although the code of the recipe has changed since the run'),
    dryRun: toggle('say what it will take, and start nothing'),
    device,
    threads,
    json,
  },
  examples: [
    'drmas improve my-team.ts --prompts --endpoint http://127.0.0.1:8000/v1 --model qwen3-32b',
    'drmas improve runs/first --prompts --agents solver --endpoint https://api.openai.com/v1 --model gpt-5-mini',
    'drmas improve runs/math-prompts-20260131-094501 --prompts --proposals 16',
    'drmas train my-team.ts --set @runs/math-prompts-20260131-094501/prompts.json',
  ],
  async run(context, [source], { prompts = false, dryRun = false, json: asJson = false, ...options }) {
    if (!prompts) throw new RecipeError('improve what? --prompts improves system prompts, the only thing so far');
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
    const observer = asJson
      ? undefined
      : progressObserver((progress) => status.passing(() => playLine(progress, 0, width)));
    const host = nodeHost({ threads: count, signal, protect, notify, observer });
    const goOn = `npx drmas improve ${nearPath(directory)} --prompts`;
    try {
      const result = await context.work.improvePrompts(
        {
          ...request,
          onRound: (round) => (asJson ? print({ type: 'round', ...round }) : status.say(...roundLines(round, width))),
        },
        host,
      );
      if (asJson) print({ type: 'improvement', ...result });
      lines(() => ['', ...improvementLines(result, record, width)]);
      return 0;
    } catch (error) {
      lines(() => ['', `${signal.aborted ? 'interrupted' : 'stopped'}; go on with: ${goOn}`]);
      if (!signal.aborted) throw error;
      return INTERRUPTED;
    }
  },
});

function noticesOf({ stderr }: CommandContext, asJson: boolean, status: StatusLines, width: number) {
  return (message: string) => (asJson ? void stderr.write(`${message}\n`) : status.say(...wrap(message, width)));
}
