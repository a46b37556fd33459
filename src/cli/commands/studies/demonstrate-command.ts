import { endpointSchema } from '@drmas/engine/endpoints';
import { ArgumentError, parseAt } from '@drmas/engine/errors';
import { nodeHost } from '@drmas/engine/platform';
import { recordTeam, requestDemonstrations, type Speaker, speakerOfModule } from '../../../runs/studies.js';
import { INTERRUPTED, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { decimal, device, integer, list, set, text, threads, toggle, withDevice } from '../../flags.js';
import { demonstratedLines, playedTaskLine, requestLines } from '../../reporter/planning/demonstrations-printer.js';
import { StatusLines, screenOf } from '../../reporter/screen.js';
import { wrap } from '../../reporter/text-layout.js';
import { importFile } from './import-command.js';
import { TypedAnswers } from './typed-answers.js';

export const demonstrate = defineCommand({
  name: 'demonstrate',
  description: 'record demonstrations: a hosted model, a script or you answer for the agents',
  details:
    "plays training tasks through the team's own program. For its agents answers a hosted model (`--endpoint`, `--model`), a module (`--script`) or you, in the terminal or through a pipe; the frozen models of a recipe that trains nothing answer themselves. Episodes that reach `--min-score` become demonstrations for `withDemonstrations`, with the prompts that the agents read in play. Held-out tasks are not played. The file grows with each played task, so a process that is killed leaves what it recorded. The recipe may already name the file. Existing files stay. A script's default export is a function `({ agent, task, messages, tools }) => answer`, or what `frozen` returns. An answer is a text, `{ text, toolCalls: [{ name, arguments }] }`, or nothing to leave the task out. In the terminal `/call NAME {...}` calls a tool, `/skip` leaves the task out, `/quit` ends, and a line that ends with a backslash goes on in the next",
  arguments: [argument('recipe', 'name or file')],
  flags: {
    endpoint: text('url', 'server of a hosted model, such as https://api.openai.com/v1; set its key in OPENAI_API_KEY'),
    model: text('name', 'name of the model on the server'),
    script: text('file', 'module that answers: a function, or frozen(...), as the default export'),
    agents: list('names', 'agents to ask and to record (default: those that train); others play with their own models'),
    tasks: integer(1, 'training tasks to play, at most (default: 16)'),
    samples: integer(1, 'episodes of each task (default: 1)'),
    minScore: decimal('keep episodes with at least this score (default: all that do not fail)'),
    out: text('file', 'new file of the demonstrations (default: demonstrations.jsonl)'),
    set,
    seed: integer(0, 'seed of the choice of tasks'),
    dryRun: toggle('print what would be asked, and ask nobody'),
    device,
    threads,
    json: toggle('print JSON lines: played tasks, the summary, and questions, whose answers are JSON lines on stdin'),
  },
  examples: [
    'drmas demonstrate recipe.ts --min-score 1',
    'drmas demonstrate recipe.ts --endpoint https://api.openai.com/v1 --model gpt-5-mini --tasks 50 --min-score 1',
    'drmas demonstrate recipe.ts --script answers.ts --tasks 100 --min-score 1 --out data/demonstrations.jsonl',
    'drmas demonstrate recipe.ts --agents clerk --tasks 4 < answers.txt',
  ],
  async run(context, [source], { json = false, dryRun = false, endpoint, model, script, ...typed }) {
    const { out = 'demonstrations.jsonl', threads, ...options } = withDevice(typed);
    const { stdout, environment, signal, protect } = context;
    const screen = screenOf(stdout, environment);
    const lines = new StatusLines(screen);
    const answers = new TypedAnswers(context.stdin, screen, json);
    const speaker = await speakerOf({ endpoint, model, script });
    const request = await requestDemonstrations(source, speaker, { ...options, out, person: answers.answer });
    const print = (value: object) => lines.say(jsonText(value));
    const { recipe, chosen, agents, minScore, samples } = request;
    if (!json) lines.say(...requestLines(request, screen.width));
    else if (dryRun)
      print({ type: 'plan', team: recipe.team.name, agents, tasks: chosen.length, samples, minScore, out });
    if (dryRun) return 0;
    const notify = (message: string) =>
      json ? void context.stderr.write(`${message}\n`) : lines.say(...wrap(message, screen.width));
    const host = nodeHost({ threads, signal, protect, notify });
    try {
      const result = await recordTeam(request, host, (played) => {
        const { task, group, kept } = played;
        if (json) print({ type: 'task', task, id: group.task.id, episodes: group.episodes.length, kept });
        else if (request.together) lines.passing(() => playedTaskLine(played, chosen.length));
        else lines.say(playedTaskLine(played, chosen.length));
      });
      if (json) print({ type: 'demonstrations', ...result });
      else lines.say('', ...demonstratedLines(result, { source, warmsUp: request.warmsUp }, screen.width));
      if (result.stoppedBy === 'error') return 1;
      return result.stoppedBy === 'interruption' ? INTERRUPTED : 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      lines.say();
      context.stderr.write('interrupted; no demonstration was written\n');
      return INTERRUPTED;
    } finally {
      answers.close();
    }
  },
});

type SpeakerFlags = Readonly<Record<'endpoint' | 'model' | 'script', string | undefined>>;

/**
 * The model or the module that answers; undefined if no flag names one.
 * @throws ArgumentError, RecipeError, RunError
 */
async function speakerOf({ endpoint, model, script }: SpeakerFlags): Promise<Speaker | undefined> {
  if (script !== undefined && (endpoint ?? model) !== undefined)
    throw new ArgumentError('--script and --endpoint both name who answers; expected one of them');
  if ((endpoint === undefined) !== (model === undefined))
    throw new ArgumentError('--endpoint names a server and --model its model: expected both');
  if (endpoint !== undefined) {
    const spec = parseAt(endpointSchema, { type: 'endpoint', url: endpoint, model }, ['endpoint']);
    return { type: 'model', name: `${model} at ${endpoint}`, spec };
  }
  if (script !== undefined) {
    return speakerOfModule(script, await importFile(script));
  }
  return undefined;
}
