/** `npm run findings`: makes the results that docs/findings.md rests on, and the pages themselves. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { duration } from '@drmas/engine/host';
import { runProgram, UsageError } from '../scripts/support/run-program.js';
import { creditbench } from './creditbench/command.js';
import { fillCreditbench, readCells } from './creditbench/page.js';
import { type Job, jobName, jobsOf, type Part, type Question } from './harness/declaration.js';
import { figuresOf, fillMarked, fillPage } from './harness/page.js';
import { youngPlans } from './harness/plan-dates.js';
import { root, runJob } from './harness/run-job.js';
import { differences, type Results, readResults, repeatableCommand, writeResult } from './harness/stored-result.js';
import { distinct, pending, workThrough } from './harness/work-through.js';
import { PACKAGES, writePaper } from './paper/paper.js';
import { primaries, questions, wrongDraw, wrongRates } from './questions/index.js';

const RESULTS = join(root, 'research/results');
const FIGURES = join(root, 'docs/findings/figures');
const PAGE = join(root, 'docs/findings.md');
const EXPERIMENTS = join(root, 'docs/research/experiments.md');
const CREDITBENCH = ['docs/creditbench.md', 'docs/research/creditbench-tables.md'].map((name) => join(root, name));
/** The pages that results fill, by their templates. */
const TEMPLATES = [
  { template: 'research/findings.template', page: PAGE },
  { template: 'research/experiments.template', page: EXPERIMENTS },
] as const;
const PLANS = 'research/plans';
/** Pages that quote findings between `<!-- finding: TOKENS -->` and `<!-- end -->`. */
const QUOTING = [
  'docs/estimators.md',
  'docs/getting-started.md',
  'docs/neighbours.md',
  'docs/paper.md',
  'docs/real-models.md',
  'docs/research/answers.md',
  'docs/research/default.md',
  'docs/the-paper.md',
].map((name) => join(root, name));

const usage = `npm run findings -- [question or part]... [options]

  Runs what has no result yet, then writes docs/findings.md, docs/research/experiments.md
  and their figures. Interrupt it at any time: a finished
  result is never run again. Without a name: ${questions.map(({ id }) => id).join(', ')}, in this order.
  npm run findings -- creditbench --help shows the benchmark of docs/creditbench.md.

  --list             what there is, and how much of it is done; runs nothing
  --jobs N           runs at once, one thread each (default: 1)
  --seeds N          only the first N pairs of each part
  --only TEXT        only results whose name (regime/variant/seed-N) contains this
  --runs DIR         folder of the run directories (default: ${join(tmpdir(), 'drmas-findings')})
  --keep             leave the run directories of finished results there
  --check            fail where page or figures are not those of the results; runs nothing
  --page             write page and figures from the results that are there; runs nothing
  --paper DIR        write the paper into a folder: paper.tex, and with LaTeX paper.pdf; runs nothing
  --repeat NAME      run the results whose name contains this again, and compare them bit for bit with what is stored
`;

async function main(): Promise<number> {
  const [first, ...rest] = process.argv.slice(2);
  if (first === 'creditbench') return creditbench(rest);
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      jobs: { type: 'string', default: '1' },
      seeds: { type: 'string' },
      only: { type: 'string', default: '' },
      runs: { type: 'string', default: join(tmpdir(), 'drmas-findings') },
      keep: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      paper: { type: 'string' },
      repeat: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const results = await readAll();
  if (values.check) return checkPage(results);
  if (values.page) return writePage(results);
  if (values.paper !== undefined) return paper(values.paper, results);
  if (values.list) return list(results);
  const { runs, keep } = values;
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort(new Error(name)));
  const { signal } = controller;
  if (values.repeat !== undefined) return repeat(values.repeat, results, { runs: `${runs}-again`, keep, signal });

  const seeds = values.seeds === undefined ? Number.POSITIVE_INFINITY : whole('seeds', values.seeds);
  const jobs = chosenParts(positionals).flatMap((part) => jobsOf({ ...part, seeds: part.seeds.slice(0, seeds) }));
  const todo = pending(jobs, results).filter((job) => jobName(job).includes(values.only));
  say(`${todo.length} of ${distinct(jobs).length} results are missing`);
  const started = performance.now();
  let failed = 0;
  try {
    await workThrough(todo, {
      jobs: whole('jobs', values.jobs),
      signal,
      run: (job, options) => runJob(job, { ...options, runs, keep }),
      store: (job, result) => writeResult(RESULTS, job, result),
      onDone: ({ done, all, job }, result) => {
        const score =
          result.kind === 'train' ? `${(100 * (result.curve.at(-1)?.team ?? 0)).toFixed(1)} %` : result.kind;
        const left = ((performance.now() - started) / 1000 / done) * (all - done);
        say(`${done}/${all}  ${jobName(job)}  ${score}  ${result.origin.seconds} s, about ${duration(left)} left`);
      },
      onMissing: ({ regime, variant }, why) => say(`skipped: ${regime.id}/${variant.id} is not there yet: ${why}`),
      onFailed: (job, why) => {
        failed++;
        say(`FAILED: ${jobName(job)}: ${why}`);
      },
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    say('interrupted; run the same command again to continue');
    return 130;
  }
  await writePage(await readAll());
  return failed === 0 ? 0 : 1;
}

const say = (line: string) => process.stdout.write(`${line}\n`);
const allParts = questions.flatMap(({ parts }) => parts);
const readAll = () => readResults(RESULTS, allParts.flatMap(jobsOf));

/** The parts that are named, by themselves or by their question; all of them without a name. @throws UsageError */
function chosenParts(names: readonly string[]): Part[] {
  if (names.length === 0) return allParts;
  return names.flatMap((name) => {
    const question = questions.find(({ id }) => id === name);
    const parts = question?.parts ?? allParts.filter(({ id }) => id === name);
    if (parts.length === 0) throw new UsageError(`there is no question or part '${name}'`);
    return parts;
  });
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new UsageError(`--${name}: expected a whole number, got '${text}'`);
  return value;
}

function list(results: Results): number {
  const stands = (jobs: readonly Job[]) => {
    const each = distinct(jobs);
    const stale = each.filter((job) => results.isStale(job)).length;
    const done = each.filter((job) => results.of(job) !== undefined).length;
    return `${done} of ${each.length}${stale === 0 ? '' : `, ${stale} made with other settings`}`;
  };
  const lines = ({ id, asks, parts }: Question) => [
    `${id}: ${asks} (${stands(parts.flatMap(jobsOf))})`,
    ...parts.map((part) => `  ${part.id}: ${part.title} (${stands(jobsOf(part))})`),
  ];
  for (const line of questions.flatMap(lines)) say(line);
  return 0;
}

/** All files that the results make, by their paths. */
async function pageFiles(results: Results): Promise<Map<string, string>> {
  const filled = (template: string) => fillPage(template, questions, results, primaries);
  const pages = TEMPLATES.map(async ({ template, page }) => {
    const text = filled(await readFile(join(root, template), 'utf8'));
    return [page, page === PAGE ? text : text.replaceAll('](findings/figures/', '](../findings/figures/')] as const;
  });
  const figures = [...figuresOf(questions, results)].map(([name, svg]) => [join(FIGURES, name), svg] as const);
  const quoting = QUOTING.map(async (path) => [path, fillMarked(await readFile(path, 'utf8'), filled)] as const);
  const cells = await readCells(root);
  const benchmark = CREDITBENCH.map(
    async (path) => [path, fillCreditbench(await readFile(path, 'utf8'), cells)] as const,
  );
  return new Map([...(await Promise.all([...pages, ...quoting, ...benchmark])), ...figures]);
}

/** The figures that lie there and that no result makes any more. */
async function leftOver(files: ReadonlyMap<string, string>): Promise<string[]> {
  const names = existsSync(FIGURES) ? await readdir(FIGURES) : [];
  return names.map((name) => join(FIGURES, name)).filter((path) => !files.has(path));
}

async function writePage(results: Results): Promise<number> {
  const files = await pageFiles(results);
  await mkdir(FIGURES, { recursive: true });
  for (const path of await leftOver(files)) await rm(path);
  for (const [path, text] of files) await writeFile(path, text);
  return 0;
}

/** Writes the paper into a folder, and says what LaTeX makes of it. */
async function paper(folder: string, results: Results): Promise<number> {
  const built = writePaper({ root, questions, results, cells: await readCells(root) }, folder);
  say(join(folder, 'paper.tex'));
  if (built === undefined) say(`there is no pdflatex, so there is no PDF; on Debian: apt-get install ${PACKAGES}`);
  else say(`${built.pdf}: ${built.pages} pages, the main text ends on page ${built.main}`);
  for (const complaint of built?.complaints ?? []) say(complaint);
  return 0;
}

async function checkPage(results: Results): Promise<number> {
  const files = await pageFiles(results);
  const wrong = await leftOver(files);
  for (const [path, text] of files) if (!existsSync(path) || (await readFile(path, 'utf8')) !== text) wrong.push(path);
  for (const path of wrong) say(`${path} differs from the results; npm run findings -- --page writes it`);
  const errors = [...wrongRates(results), ...wrongDraw(results), ...(await youngPlans(root, PLANS))];
  for (const line of errors) say(line);
  return wrong.length + errors.length === 0 ? 0 : 1;
}

async function repeat(
  name: string,
  results: Results,
  options: { readonly runs: string; readonly keep: boolean; readonly signal: AbortSignal },
): Promise<number> {
  const jobs = distinct(allParts.flatMap(jobsOf)).filter((job) => jobName(job).includes(name));
  const stored = jobs.flatMap((job) => {
    const result = results.of(job);
    return result === undefined ? [] : [{ job, result }];
  });
  if (stored.length === 0) throw new UsageError(`there is no result '${name}'`);
  let differing = 0;
  for (const { job, result } of stored) {
    say(repeatableCommand(job));
    const again = await runJob(job, { ...options, onWarm: () => {} });
    const fields = differences(result, again);
    if (fields.length > 0) differing++;
    const origin =
      result.origin.commit === again.origin.commit
        ? ''
        : ` (made by ${result.origin.commit}, now ${again.origin.commit})`;
    say(fields.length === 0 ? `  the same bits${origin}` : `  DIFFERS in ${fields.slice(0, 5).join(', ')}${origin}`);
  }
  return differing === 0 ? 0 : 1;
}

await runProgram(usage, main);
