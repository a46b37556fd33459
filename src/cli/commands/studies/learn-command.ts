import { basename, join, relative, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { RecipeError, RunError, suggestion } from '@drmas/engine/errors';
import { moveFile, nodeFiles, pathFault, removeStale, TEMPORARY, temporaryName } from '@drmas/engine/platform';
import { systemPromptOf } from '../../../method/recipe.js';
import { loadRecipe } from '../../../method/recipe-files.js';
import { defaultRunPath, RECIPE, requireFree } from '../../../method/store.js';
import { requestStudy } from '../../../runs/index.js';
import { rehearsedTurns } from '../../../runs/studies.js';
import {
  importFiles,
  importTraces,
  PlayedPrompts,
  rewriteDemonstrations,
  type TracedTeam,
  type TraceImport,
  writeTracedTeam,
} from '../../../runs/traces.js';
import { interruptedForGood } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, set, text, threads, toggle, withDevice } from '../../flags.js';
import { importLines } from '../../reporter/planning/traces-printer.js';
import { screenOf } from '../../reporter/screen.js';
import { wrap } from '../../reporter/text-layout.js';
import { train } from '../train-command.js';
import { importOptions, requireFile, traceFlags } from './import-command.js';

const RECIPE_FILE = 'recipe.ts';

const MADE = 'learn';
const temporaryPrefix = `${TEMPORARY}${MADE}-`;

/** The share of the traced tasks that evaluations play and neither demonstrations nor steps contain. */
const HELD_OUT = 0.2;

export const learn = defineCommand({
  name: 'learn',
  description: 'train a team on the traces of a production team',
  details:
    "imports the traces as `drmas import` does, and writes a recipe beside them: the team of `--recipe`, which calls your program and names an open model, with the traces' tasks and demonstrations, and the scorers of `--scorers` as its reward. A fifth of the tasks is held out for evaluations. `drmas train` then trains this recipe. At the end the team is compared with the traced one: score, tokens, price. Nothing starts without `--yes`",
  arguments: [argument('traces', 'file of traces, or a folder of such files')],
  flags: {
    ...traceFlags,
    recipe: text('file', 'recipe with the team and the model (required)'),
    scorers: text('file', "module whose default export is a list for fromScorers (default: the team's own reward)"),
    price: text('read,write', "price of a million tokens of the traced team's model, such as 0.25,2"),
    out: text('folder', 'new folder of the tasks, the demonstrations and the recipe (default: traces)'),
    run: text('directory', 'directory of the run (default: runs/<recipe>-<time>)'),
    set,
    seed: integer(0, 'seed of sampling and reinforcement'),
    device,
    threads,
    yes: toggle('begin, after the summary (default: only print it)'),
    dryRun: toggle('print the summary, and start nothing'),
  },
  examples: [
    'drmas learn traces.jsonl --recipe recipe.ts --scorers evals.ts --min-score 0.9 --yes',
    'drmas learn traces/ --recipe recipe.ts --price 0.25,2 --dry-run',
  ],
  async run(context, [path], { recipe, scorers, price, out = 'traces', run, yes = false, dryRun = false, ...typed }) {
    const { stdout, environment } = context;
    const { set, seed, threads, ...options } = withDevice(typed);
    if (recipe === undefined)
      throw new RecipeError(
        "--recipe names the file with your team and an open model; traces alone don't say how a program calls its agents",
      );
    const prices = pricesOf(price);
    for (const file of [recipe, scorers]) if (file !== undefined) await requireFile(file);
    const isStarted = yes && !dryRun;
    const directory = run ?? (await defaultRunPath(join(out, 'recipe')));
    for (const folder of [out, directory]) {
      const fault = pathFault(folder);
      if (isStarted && fault !== undefined) throw new RunError(`${folder} ${fault}`);
    }
    if (isStarted) await requireFree(nodeFiles, directory);
    const isNew = !(await nodeFiles.exists(out));
    const ownRecipe = recipeText(out, recipe, scorers);
    if (isStarted) await requireOwnFolder(out, ownRecipe);
    const importing = { ...(await importOptions(options)), holdOut: HELD_OUT, signal: context.signal };
    // Of a peak of 440 MB 65 were alive: by default V8 lets the heap grow fourfold before it collects. Now it doubles.
    setFlagsFromString('--heap-growing-percent=100');
    // Under a temporary name, so that a killed process leaves no demonstrations without their schemas.
    const made = join(out, temporaryName(MADE));
    const written: string[] = [];
    try {
      const traces = await importTraces(path, importing, isStarted ? made : undefined);
      const print = (line: string) => void stdout.write(`${line}\n`);
      const { width } = screenOf(stdout, environment);
      for (const line of importLines(traces, width)) print(line);
      await checkAgents(traces, recipe);
      if (!isStarted) {
        print('nothing was started; add --yes to start');
        return 0;
      }
      const chosen = { ...(seed === undefined ? {} : { seed }), ...(threads === undefined ? {} : { threads }) };
      await nodeFiles.replace(join(made, RECIPE_FILE), recipeText(made, recipe, scorers));
      const team = await writeTracedTeam(traces, prices, made);
      const request = { set, ...(seed === undefined ? {} : { seed }) };
      for (const warning of await writeSchemas(made, request))
        for (const line of wrap(`warning: ${warning}`, width)) print(line);
      await nodeFiles.replace(join(made, RECIPE_FILE), ownRecipe);
      // The recipe first: by it, the same command knows the files of a process that was killed.
      for (const file of [join(made, RECIPE_FILE), ...importFiles(made), team])
        if (await keep(file, join(out, basename(file)))) written.push(join(out, basename(file)));
      return await train.run(context, [join(out, RECIPE_FILE)], { set, run: directory, track: [], ...chosen });
    } catch (error) {
      if (!context.signal.aborted) throw error;
      return interruptedForGood(context);
    } finally {
      setFlagsFromString('--heap-growing-percent=0');
      await nodeFiles.remove(made);
      // A request that was refused can be typed again.
      if (!(await nodeFiles.exists(join(directory, RECIPE)))) {
        for (const file of written) await nodeFiles.remove(file);
        if (isNew && (await nodeFiles.list(out)).length === 0) await nodeFiles.remove(out);
      }
    }
  },
});

/**
 * Writes into the demonstrations the schemas that the team's agents must keep to in play, from a rehearsal of the
 * written recipe. Returns warnings about prompts that differ.
 */
async function writeSchemas(
  out: string,
  request: { readonly set: readonly string[]; readonly seed?: number },
): Promise<readonly string[]> {
  const recipe = await requestStudy(join(out, RECIPE_FILE), request);
  const prompted = Object.keys(recipe.agents).filter((agent) => systemPromptOf(recipe, agent) !== undefined);
  const played = new PlayedPrompts(await rehearsedTurns(recipe), prompted);
  await rewriteDemonstrations(out, (row) => played.asPlayed(row));
  return played.warnings;
}

/** @throws RunError if a traced agent is not in the team, and an agent of the team has no demonstrations */
async function checkAgents({ agents }: TraceImport, recipe: string): Promise<void> {
  const { definition } = await loadRecipe(recipe);
  const team = Object.keys(definition.input.team.agents);
  const shown = Object.keys(agents).filter((agent) => (agents[agent]?.demonstrations ?? 0) > 0);
  const stranger = shown.find((agent) => !team.includes(agent));
  const without = team.filter((agent) => !shown.includes(agent));
  if (stranger === undefined || without.length === 0) return;
  throw new RunError(
    `the traces call '${stranger}', which is no agent of ${recipe}${suggestion(stranger, without)}; ` +
      `--rename "${stranger}=${without.length === 1 ? without[0] : 'NAME'}" gives it the name of one`,
  );
}

/** @throws RunError for a text that is not two prices */
function pricesOf(price: string | undefined): TracedTeam['price'] {
  if (price === undefined) return undefined;
  const numbers = price.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [read = Number.NaN, write = Number.NaN, ...more] = numbers;
  const isPrice = (number: number) => number >= 0 && Number.isFinite(number);
  if (!(isPrice(read) && isPrice(write)) || more.length > 0)
    throw new RunError(`--price ${price}: expected READ,WRITE, such as 0.25,2`);
  return { read, write };
}

/**
 * Requires that no file of another command would be replaced: the folder has no file of an import, or the files of the
 * same command, which was killed before its run began. @throws RunError
 */
async function requireOwnFolder(out: string, recipe: string): Promise<void> {
  await removeStale(nodeFiles, out, temporaryPrefix);
  const file = join(out, RECIPE_FILE);
  const before = (await nodeFiles.exists(file)) ? await nodeFiles.readText(file) : undefined;
  if (before === recipe) return;
  for (const path of [file, ...importFiles(out)]) if (await nodeFiles.exists(path)) throw existing(path);
}

const existing = (path: string) => new RunError(`${path} exists; choose another folder with --out`);

/** Moves a new file to its place, unless the same content is there. Returns whether it did. @throws RunError */
async function keep(from: string, to: string): Promise<boolean> {
  if (!(await nodeFiles.exists(to))) {
    await moveFile(from, to);
    return true;
  }
  if (!(await isSameFile(from, to))) throw existing(to);
  return false;
}

/** The bytes of two files that are compared at once. */
const COMPARED_BYTES = 1 << 24;

async function isSameFile(one: string, other: string): Promise<boolean> {
  const size = await nodeFiles.size(one);
  if (size !== (await nodeFiles.size(other))) return false;
  for (let at = 0; at < size; at += COMPARED_BYTES) {
    const part = await nodeFiles.readBytes(one, at, COMPARED_BYTES);
    if (Buffer.compare(part, await nodeFiles.readBytes(other, at, COMPARED_BYTES)) !== 0) return false;
  }
  return true;
}

/** A recipe of the user's team with the tasks and demonstrations of a folder, which is the recipe's folder too. */
function recipeText(folder: string, recipe: string, scorers: string | undefined): string {
  const from = (path: string) => {
    const way = relative(resolve(folder), resolve(path)).replaceAll('\\', '/').replace(/\.ts$/, '.js');
    return JSON.stringify(way.startsWith('.') ? way : `./${way}`);
  };
  const path = (name: string) => `fileURLToPath(new URL(${JSON.stringify(name)}, import.meta.url))`;
  return [
    `/** Written by drmas learn: the team of ${recipe} with tasks and demonstrations of traces. */`,
    "import { fileURLToPath } from 'node:url';",
    "import { defineRecipe, jsonl, withDemonstrations } from 'drmas';",
    ...(scorers === undefined
      ? []
      : ["import { fromScorers } from 'drmas/tasks';", `import scorers from ${from(scorers)};`]),
    `import recipe from ${from(recipe)};`,
    '',
    'const { team, ...settings } = recipe.input;',
    ...(scorers === undefined ? [] : ['const reward = fromScorers(scorers);']),
    '',
    'export default defineRecipe({',
    '  warmStart: {},',
    '  ...settings,',
    scorers === undefined ? '  team,' : '  team: { ...team, reward, metrics: reward.metrics },',
    `  tasks: withDemonstrations(jsonl(${path('./tasks.jsonl')}, { split: 'split' }), ${path('./demonstrations.jsonl')}),`,
    '});',
    '',
  ].join('\n');
}
