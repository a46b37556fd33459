import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, RunError, shown } from '@drmas/engine/errors';
import { importUserModule, nodeFiles } from '@drmas/engine/platform';
import { importFiles, importTraces, type Redact } from '../../../runs/traces.js';
import { interruptedForGood, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { decimal, repeated, text, toggle, type ValuesOfFlags } from '../../flags.js';
import { importLines } from '../../reporter/planning/traces-printer.js';
import { screenOf } from '../../reporter/screen.js';

export const traceFlags = {
  agent: text('name', 'agent of calls that name none'),
  rename: repeated('old=new', "an agent's name in the traces, and its name in the team; may be repeated"),
  score: text('name', "score of the traces that counts (default: 'success', else the only one)"),
  minScore: decimal('only traces with at least this score become demonstrations'),
  redact: text(
    'file',
    'module whose default export changes each text before it is stored: (text) => string | undefined',
  ),
};

export const importCommand = defineCommand({
  name: 'import',
  description: 'turn traces of a production team into demonstrations and tasks',
  details:
    'reads spans of OpenTelemetry (OTLP JSON or JSON lines: AI SDK, Mastra, OpenInference, OpenLLMetry, `--track otel`) and exports of Langfuse, Braintrust and Phoenix. The summary counts what it does not read, by reason and with the first place. It writes `demonstrations.jsonl`, for `withDemonstrations`, and `tasks.jsonl`. Keys, e-mail addresses and other data of a fixed form are masked; names of people are not, so look at the summary, which comes first. Nothing is written without `--yes`. Existing files stay',
  arguments: [argument('traces', 'file of traces, or a folder of such files')],
  flags: {
    ...traceFlags,
    out: text('folder', 'folder of the new files (default: traces)'),
    yes: toggle('write, after the summary (default: only print it)'),
    dryRun: toggle('print the summary, and write nothing'),
    json: toggle('print the summary as JSON'),
  },
  examples: [
    'drmas import traces.jsonl --dry-run',
    'drmas import traces/ --min-score 0.9 --out data --yes',
    'drmas import export.json --score correctness --min-score 1 --rename "Buyer agent=buyer" --redact redact.ts --yes',
  ],
  async run(context, [path], { out = 'traces', yes = false, dryRun = false, json = false, ...options }) {
    const { stdout, environment, signal } = context;
    const isWritten = yes && !dryRun;
    const importing = { ...(await importOptions(options)), signal };
    const traces = await importTraces(path, importing, isWritten ? out : undefined).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (traces === undefined) return interruptedForGood(context);
    const { example: _, fields: __, ...summary } = traces;
    const { width } = screenOf(stdout, environment);
    const print = (line: string) => void stdout.write(`${line}\n`);
    if (json) print(jsonText({ type: 'import', ...summary }));
    else {
      for (const line of importLines(traces, width)) print(line);
      if (isWritten) for (const file of importFiles(out)) print(`wrote ${file}`);
      else print('nothing was written; add --yes to write');
    }
    return 0;
  },
});

/**
 * The options that the flags ask for.
 * @throws RunError for a name without a new one, a module that does not exist, or one without a function
 */
export async function importOptions(flags: ValuesOfFlags<typeof traceFlags>) {
  const { agent, rename, score, minScore, redact } = flags;
  const names = rename.map((pair) => {
    const [old, name, ...more] = pair.split('=');
    if (!old || !name || more.length > 0) throw new RunError(`--rename ${pair}: expected OLD=NEW`);
    return [old, name] as const;
  });
  return { agent, score, minScore, rename: Object.fromEntries(names), redact: await redactionOf(redact) };
}

/** @throws RunError if there is no such file */
export async function requireFile(file: string): Promise<void> {
  if (!(await nodeFiles.exists(file))) throw new RunError(`there is no file ${file}`);
}

/**
 * The default export of a module that a flag names.
 * @throws RunError if there is no such file, or it cannot be loaded
 */
export async function importFile(file: string): Promise<unknown> {
  await requireFile(file);
  try {
    return (await importUserModule(pathToFileURL(resolve(file)).href)).default;
  } catch (error) {
    throw new RunError(`${file} cannot be loaded: ${messageOf(error)}`);
  }
}

/** The function of a module, with errors that name it if it throws, or returns neither a text nor undefined. */
async function redactionOf(file: string | undefined): Promise<Redact | undefined> {
  if (file === undefined) return undefined;
  const redact = await importFile(file);
  if (typeof redact !== 'function')
    throw new RunError(`${file}: expected a function (text) => string as the default export`);
  return (text) => {
    let kept: unknown;
    try {
      kept = redact(text);
    } catch (error) {
      throw new RunError(`${file}: the function throws: ${messageOf(error)}`);
    }
    if (kept === undefined || typeof kept === 'string') return kept;
    const got = kept instanceof Promise ? 'a promise: the function may not be async' : shown(kept);
    throw new RunError(`${file}: expected the function to return a text, or undefined to leave it out, got ${got}`);
  };
}
