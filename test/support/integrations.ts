/**
 * The record of runs with packages of others. `integrations` lists these packages, and the test file of each. With
 * `DRMAS_RECORD=1` a suite writes a line of docs/integrations.jsonl for each package whose test file passed: its
 * version and the day.
 * `npm run docs` makes the table of docs/reliability.md of it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Reporter, TestModule } from 'vitest/node';
import { timeOfDay } from './time-and-chance.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const RECORD = 'docs/integrations.jsonl';

export interface Integration {
  readonly kind: 'environments' | 'frameworks' | 'evaluation' | 'rewards' | 'trackers' | 'servers' | 'programs';
  /** The name of the package in its registry. */
  readonly package: string;
  /** The test file, below the root. */
  readonly file: string;
  /** The file that pins the package's version, below the root. */
  readonly pins: string;
  /** The suite of `npm run verify`; undefined for `npm test`. */
  readonly suite?: string;
  /** The titles of its tests begin with this; undefined if the whole file tests it. */
  readonly title?: string;
}

/** A line of the record: the last time that the tests of a package passed. */
export interface RecordedRun extends Pick<Integration, 'package' | 'file'> {
  readonly version: string;
  /** The day, such as 2026-11-23. */
  readonly date: string;
  /** The number of tests that passed. */
  readonly tests: number;
}

const inFile = (
  { file, ...shared }: Omit<Integration, 'package'>,
  ...packages: readonly (string | Pick<Integration, 'package' | 'title'>)[]
): Integration[] => packages.map((one) => ({ ...shared, file, ...(typeof one === 'string' ? { package: one } : one) }));

const node20 = { kind: 'frameworks', suite: 'frameworks', pins: 'test/frameworks/node20/package.json' } as const;
const node24 = { ...node20, pins: 'test/frameworks/node24/package.json' } as const;
const python = (folder: string) => ({ suite: folder, pins: `test/${folder}/requirements.txt` });

export const integrations: readonly Integration[] = [
  ...inFile(
    { kind: 'environments', ...python('openworld'), file: 'test/openworld/worlds.openworld.ts' },
    ...['openenv', 'textarena', 'reasoning-gym', 'fastmcp', 'verifiers'],
  ),
  ...inFile(
    {
      kind: 'environments',
      suite: 'openworld',
      pins: 'test/openworld/seats/requirements.txt',
      file: 'test/openworld/seats.openworld.ts',
    },
    'verifiers',
  ),
  ...inFile(
    {
      kind: 'environments',
      suite: 'openworld',
      pins: 'test/openworld/harbor/requirements.txt',
      file: 'test/openworld/harbor.openworld.ts',
    },
    ...['harbor', 'openenv'],
  ),
  ...inFile({ kind: 'frameworks', pins: 'package.json', file: 'test/frameworks/ai-sdk-6.test.ts' }, 'ai'),
  ...inFile(
    { ...node20, file: 'test/frameworks/node20/ai-sdk-providers.framework.ts' },
    ...['@ai-sdk/openai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic'],
  ),
  ...inFile(
    { ...node20, file: 'test/frameworks/node20/langgraph.framework.ts' },
    ...['@langchain/langgraph', '@langchain/openai'],
  ),
  ...inFile({ ...node20, file: 'test/frameworks/node20/openai-agents.framework.ts' }, '@openai/agents'),
  ...inFile({ ...node20, file: 'test/frameworks/node20/voltagent.framework.ts' }, '@voltagent/core'),
  ...inFile(
    { ...node20, file: 'test/frameworks/node20/traces.framework.ts' },
    ...[
      '@arizeai/openinference-instrumentation-openai',
      '@arizeai/openinference-vercel',
      '@langfuse/otel',
      '@traceloop/instrumentation-openai',
    ],
  ),
  ...inFile({ ...node24, file: 'test/frameworks/node24/ai-sdk-7.framework.ts' }, 'ai'),
  ...inFile({ ...node24, file: 'test/frameworks/node24/traces.framework.ts' }, '@ai-sdk/otel'),
  ...inFile({ ...node24, file: 'test/frameworks/node24/mastra.framework.ts' }, '@mastra/core'),
  ...inFile({ ...node24, file: 'test/frameworks/node24/openai-agents.framework.ts' }, '@openai/agents'),
  ...inFile(
    { kind: 'frameworks', ...python('gateway'), file: 'test/gateway/programs.gateway.ts' },
    { package: 'openai', title: 'a team of Python agents' },
  ),
  ...inFile(
    {
      kind: 'evaluation',
      suite: 'evals',
      pins: 'test/evals/requirements.txt',
      file: 'test/evals/served.evals.ts',
    },
    { package: 'inspect-ai', title: 'Inspect' },
  ),
  ...inFile(
    {
      kind: 'evaluation',
      suite: 'evals',
      pins: 'test/evals/lighteval.txt',
      file: 'test/evals/served.evals.ts',
    },
    { package: 'lighteval', title: 'lighteval' },
  ),
  ...inFile(
    {
      kind: 'evaluation',
      suite: 'evals',
      pins: 'test/evals/served.evals.ts',
      file: 'test/evals/served.evals.ts',
    },
    { package: 'promptfoo', title: 'promptfoo' },
  ),
  ...inFile(
    { kind: 'rewards', pins: 'node_modules/autoevals/package.json', file: 'src/teams/scorers/scorers.test.ts' },
    'autoevals',
  ),
  ...inFile(
    { ...node24, kind: 'rewards', file: 'test/frameworks/node24/scorers.framework.ts' },
    { package: 'autoevals', title: 'autoevals' },
    { package: '@mastra/core', title: 'Mastra' },
    { package: '@mastra/evals', title: 'Mastra' },
    { package: 'evalite', title: 'evalite' },
    { package: 'braintrust', title: 'Braintrust' },
    { package: 'vitest-evals', title: 'vitest-evals' },
  ),
  ...inFile(
    { kind: 'trackers', ...python('trackers'), file: 'test/trackers/read-back.trackers.ts' },
    ...['tensorboard', 'mlflow', 'trackio', 'wandb'],
  ),
  ...inFile({ kind: 'servers', ...python('ray'), file: 'test/ray/study.ray.ts' }, 'ray'),
  ...inFile({ kind: 'servers', ...python('s3'), file: 'test/s3/store.s3.ts' }, 'moto'),
  ...inFile(
    { kind: 'programs', ...python('exports'), file: 'test/exports/tokenizers.exports.ts' },
    ...['transformers', 'tokenizers'],
  ),
  ...inFile(
    {
      kind: 'programs',
      suite: 'bundlers',
      pins: 'test/bundlers/production.bundlers.ts',
      file: 'test/bundlers/production.bundlers.ts',
    },
    ...['next', 'bun', 'deno'],
  ),
];

const sameOf = (a: Pick<Integration, 'package' | 'file'>) => (b: Pick<Integration, 'package' | 'file'>) =>
  a.package === b.package && a.file === b.file;

/** The version that a file of pins names. @throws Error if it names none */
function pinnedVersion({ package: name, pins }: Pick<Integration, 'package' | 'pins'>): string {
  const text = readFileSync(root + pins, 'utf8');
  const [, installed] = pins === `node_modules/${name}/package.json` ? (/"version": "(.*)"/.exec(text) ?? []) : [];
  const spelling = name.replace(/[-_.]/g, '[-_.]').replaceAll('/', '\\/');
  const pinned = new RegExp(`(?:^|[\\s'"{,])${spelling}(?:\\[.*\\])?(?:==|['"]?: ['"])(\\d[\\w.+-]*)`, 'im').exec(text);
  const version = installed ?? pinned?.[1];
  if (version === undefined) throw new Error(`${pins} has no version of ${name}`);
  return version;
}

/** The record, in the order of `integrations`. */
function recordedRuns(): RecordedRun[] {
  if (!existsSync(root + RECORD)) return [];
  const lines = readFileSync(root + RECORD, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as RecordedRun);
}

/** The last run of an integration that passed. */
export const lastRun = (integration: Integration): RecordedRun | undefined => recordedRuns().find(sameOf(integration));

/** The integrations with a test that passed and none that failed. */
function passedIn(modules: readonly TestModule[], date: string): RecordedRun[] {
  return integrations.flatMap((integration) => {
    const { package: name, file, title = '' } = integration;
    const module = modules.find(({ moduleId }) => moduleId === root + file);
    const tests = [...(module?.children.allTests() ?? [])].filter(({ fullName }) => fullName.startsWith(title));
    const states = tests.map((test) => test.result().state);
    const passed = states.filter((state) => state === 'passed').length;
    if (passed === 0 || states.includes('failed')) return [];
    return [{ package: name, file, version: pinnedVersion(integration), date, tests: passed }];
  });
}

/** Writes the record after a run of tests, if the person who started it wants that. */
class IntegrationsRecorder implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const passed = passedIn(modules, new Date(timeOfDay()).toISOString().slice(0, 10));
    const before = recordedRuns();
    const lines = integrations.flatMap((one) => passed.find(sameOf(one)) ?? before.find(sameOf(one)) ?? []);
    writeFileSync(root + RECORD, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

/** The reporters of a suite: with `DRMAS_RECORD=1` one more, which writes the record. */
export const recording = (): { reporters?: ('default' | Reporter)[] } =>
  process.env.DRMAS_RECORD === '1' ? { reporters: ['default', new IntegrationsRecorder()] } : {};
