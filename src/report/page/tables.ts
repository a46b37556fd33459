/** The tables of a report. */

import { shareOfForeign } from '../../core/episode.js';
import { measuresOf } from '../../core/evaluation/measures.js';
import type { AgentStep, EvaluationScores } from '../../core/events.js';
import { duration, grouped, percent, significant } from '../../core/format.js';
import { finite, mean } from '../../core/statistics.js';
import { eventsOf, type RunData } from '../run-data.js';
import { agentNames } from './curves.js';
import { type Html, html, htmlTable } from './html.js';

/** The most rows of a table of things that can be many; the table says how many there are in all. */
const MOST_ROWS = 50;

/** The table of runs with settings and results, one column a run. */
export function summary(runs: readonly RunData[]): Html {
  const rows = summaryRows
    .map(([name, of]) => [name, ...runs.map(of)])
    .filter(([, ...cells]) => cells.some((cell) => cell !== ''));
  return html`<div class="facts">${htmlTable(['', ...runs.map(({ name }) => name)], rows)}</div>`;
}

type Cell = (run: RunData) => string;

const summaryRows: readonly (readonly [string, Cell])[] = [
  ['directory', ({ path }) => path],
  [
    'recipe',
    ({ record }) => [String(record.resolved.name ?? record.recipe.source), ...record.recipe.overrides].join(' '),
  ],
  ['team', ({ record }) => text(record.resolved.team)],
  ['advantages', ({ record }) => typeOf(record.resolved.advantage)],
  ['loss', ({ record }) => typeOf(record.resolved.loss)],
  ['seed', (run) => text(eventsOf(run.events, 'run.started')[0]?.seed)],
  [
    'parameters',
    (run) =>
      Object.entries(eventsOf(run.events, 'run.started')[0]?.parameters ?? {})
        .map(([name, count]) => `${name} ${grouped(count)}`)
        .join(', '),
  ],
  ['hardware', (run) => hardware(run)],
  ['state', (run) => state(run)],
  ['steps', (run) => text(eventsOf(run.events, 'step').at(-1)?.step)],
  ['score at first', (run) => score(run, 0)],
  ['score at last', (run) => score(run, -1)],
  ['gain', (run) => gain(run)],
  ['measured at last', (run) => measured(run)],
  ['reward of the last 10 steps', (run) => rewardAtEnd(run)],
  ['spikes', (run) => text(eventsOf(run.events, 'spike').length)],
  ['skipped updates', (run) => text(eventsOf(run.events, 'skipped').length)],
  ['failed episodes', (run) => text(eventsOf(run.events, 'episode.failed').length)],
];

const text = (value: unknown) => (value === undefined || value === null ? '' : String(value));
const typeOf = (value: unknown) =>
  typeof value === 'object' && value !== null && 'type' in value ? String(value.type) : '';

function hardware(run: RunData): string {
  const event = eventsOf(run.events, 'run.started')[0]?.hardware;
  return event === undefined ? '' : `${event.cores} cores, ${event.kernels} kernels (${event.isa})`;
}

function state(run: RunData): string {
  const finished = eventsOf(run.events, 'run.finished').at(-1);
  return finished === undefined ? 'unfinished' : `${finished.reason} in ${duration(finished.seconds)}`;
}

const evaluationsOf = (run: RunData) => eventsOf(run.events, 'evaluation').filter(({ split }) => split === 'test');

function score(run: RunData, at: number): string {
  const event = evaluationsOf(run).at(at);
  return event === undefined ? '' : `${percent(event.averageAtK)} ${interval(event.interval)}`;
}

const interval = ({ low, high }: { low: number; high: number }) =>
  `[${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;

function gain(run: RunData): string {
  const [first, last] = [evaluationsOf(run)[0], evaluationsOf(run).at(-1)];
  if (first === undefined || last === undefined || first === last) return '';
  const points = 100 * (last.averageAtK - first.averageAtK);
  return `${points >= 0 ? '+' : ''}${points.toFixed(1)} points`;
}

function measured(run: RunData): string {
  const last = evaluationsOf(run).at(-1);
  return last === undefined
    ? ''
    : measuresOf(last)
        .map(([name, value]) => `${name} ${significant(value)}`)
        .join(', ');
}

function rewardAtEnd(run: RunData): string {
  const rewards = eventsOf(run.events, 'step')
    .slice(-10)
    .map(({ reward }) => reward.mean);
  return rewards.length === 0 ? '' : significant(mean(rewards));
}

/** The table of agents over all steps of their runs. */
export function agentTable(runs: readonly RunData[]): Html {
  const hasHistory = runs.some(({ events }) =>
    eventsOf(events, 'step').some(({ agents }) => Object.values(agents).some(({ history }) => history !== undefined)),
  );
  const header = [
    'agent',
    'turns',
    'reward',
    'invalid',
    'norm, mean',
    'norm, largest',
    'spikes',
    'inflation, mean',
    'largest |A|',
    'tokens a turn',
    'entropy at last',
    ...(hasHistory ? ['foreign in history'] : []),
  ];
  const rows = runs.flatMap((run) =>
    agentNames(run).map((name) => {
      const steps = eventsOf(run.events, 'step').flatMap(({ agents }) => agents[name] ?? []);
      const turns = steps.reduce((sum, step) => sum + step.turns, 0);
      const weighted = (of: (step: AgentStep) => number) =>
        steps.reduce((sum, step) => sum + of(step) * step.turns, 0) / Math.max(1, turns);
      const largest = (of: (step: AgentStep) => number) => Math.max(0, ...finite(steps.map(of)));
      const spikes = eventsOf(run.events, 'spike', 'skipped').filter(({ agent, policy }) => (agent ?? policy) === name);
      const learnt = (cell: () => string) => (steps.some(({ frozen }) => frozen === true) ? 'frozen' : cell());
      return [
        runs.length > 1 ? `${run.name}: ${name}` : name,
        grouped(turns),
        significant(weighted(({ rewardMean }) => rewardMean)),
        percent(weighted(({ invalid }) => invalid)),
        learnt(() => significant(mean(finite(steps.map(({ gradientNorm }) => gradientNorm))))),
        learnt(() => significant(largest(({ gradientNorm }) => gradientNorm))),
        learnt(() => String(spikes.length)),
        learnt(() => significant(mean(steps.map(({ inflation }) => inflation.predicted)))),
        learnt(() => significant(largest(({ maxAbsAdvantage }) => maxAbsAdvantage))),
        significant(weighted(({ responseTokens }) => responseTokens)),
        learnt(() => significant(steps.at(-1)?.entropy ?? 0)),
        ...(hasHistory ? [foreignShare(steps)] : []),
      ];
    }),
  );
  return htmlTable(header, rows);
}

/** The share of the assistants' messages in prompts that no turn wrote; empty where prompts have none. */
function foreignShare(steps: readonly AgentStep[]): string {
  const histories = steps.flatMap(({ history }) => history ?? []);
  return histories.length === 0 ? '' : percent(shareOfForeign(histories));
}

export function evaluationTable(runs: readonly RunData[]): Html {
  const header = ['run', 'step', 'tasks', 'tasks x samples', 'avg@k', 'pass@k', 'maj@k'];
  const rows = runs.flatMap((run) =>
    eventsOf(run.events, 'evaluation').flatMap((event) => {
      const row = (part: string, scores: EvaluationScores) => [
        run.name,
        String(event.step),
        part,
        `${scores.tasks} x ${event.samples}`,
        `${percent(scores.averageAtK)} ${interval(scores.interval)}`,
        `${percent(scores.passAtK)} ${scores.passInterval === undefined ? '' : interval(scores.passInterval)}`,
        `${percent(scores.majorityAtK)} ${scores.majorityInterval === undefined ? '' : interval(scores.majorityInterval)}`,
      ];
      const slices = Object.entries(event.slices ?? {}).flatMap(([field, parts]) =>
        Object.entries(parts).map(([value, scores]) => row(`${field}: ${value}`, scores)),
      );
      const { benchmarkMean } = event;
      const means =
        benchmarkMean === undefined
          ? []
          : [
              [run.name, String(event.step), 'mean of benchmarks', ''].concat(
                [benchmarkMean.averageAtK, benchmarkMean.passAtK, benchmarkMean.majorityAtK].map((mean) =>
                  percent(mean),
                ),
              ),
            ];
      return [row(event.split, event), ...slices, ...means];
    }),
  );
  return titledTable('Evaluations', header, rows);
}

/** The table of spikes, each with links to its episodes, where the page holds them. */
export function spikeTable(runs: readonly RunData[]): Html {
  const rows = runs.flatMap((run, index) =>
    eventsOf(run.events, 'spike', 'skipped').map((event) => [
      run.name,
      String(event.step),
      event.agent ?? event.policy,
      significant(event.gradientNorm),
      significant(event.median),
      event.type === 'skipped' ? 'not made' : event.action,
      html`${event.episodes.map((name) => episodeLink(index, event.step, name))}`,
    ]),
  );
  return titledTable(
    'Spikes',
    ['run', 'step', 'agent or policy', 'norm', 'median before', 'answer', 'episodes behind it'],
    rows,
  );
}

/** The name of an episode in events: `task/sample`. */
function episodeLink(run: number, step: number, name: string): Html {
  const task = name.replace(/\/[^/]*$/, '');
  return html`<a href="#episodes" data-run="${run}" data-step="${step}" data-task="${task}">${name}</a> `;
}

export function troubleTable(runs: readonly RunData[]): Html {
  const rows = runs.flatMap((run) =>
    run.events.flatMap((event) => {
      if (event.type === 'warning') return [[run.name, '', event.code, event.message]];
      if (event.type !== 'episode.failed') return [];
      return [
        [
          run.name,
          String(event.step),
          `${event.reason}, ${event.action}`,
          `${event.task}/${event.episode}: ${event.message}`,
        ],
      ];
    }),
  );
  return titledTable('Warnings and failed episodes', ['run', 'step', 'what', 'message'], rows);
}

function titledTable(title: string, header: readonly string[], rows: readonly (readonly (string | Html)[])[]): Html {
  if (rows.length === 0) return html``;
  const rest =
    rows.length > MOST_ROWS
      ? html`<p class="faint">${MOST_ROWS} of ${grouped(rows.length)}; all stand in events.jsonl.</p>`
      : undefined;
  return html`<h2>${title}</h2>${htmlTable(header, rows.slice(0, MOST_ROWS))}${rest}`;
}

/** The settings in which the runs differ, then each resolved recipe. */
export function recipes(runs: readonly RunData[]): Html {
  const settings = runs.map(({ record }) => new Map(leaves(record.resolved)));
  const paths = [...new Set(settings.flatMap((leaf) => [...leaf.keys()]))];
  const differing = paths.filter((path) => new Set(settings.map((leaf) => leaf.get(path))).size > 1);
  const rows = differing.map((path) => [path, ...settings.map((leaf) => leaf.get(path) ?? '')]);
  const difference =
    runs.length > 1
      ? html`<h3>Where they differ</h3>${rows.length === 0 ? html`<p>Nowhere.</p>` : htmlTable(['setting', ...runs.map(({ name }) => name)], rows)}`
      : undefined;
  const whole = runs.map(
    ({ name, record }) =>
      html`<details><summary>${name}: recipe.json</summary><pre>${JSON.stringify(record, null, 2)}</pre></details>`,
  );
  return html`<h2>Recipes</h2>${difference}${whole}`;
}

/** The dotted paths and values of all leaves of a plain object. */
function leaves(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, JSON.stringify(value) ?? '']];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === '' ? key : `${path}.${key}`));
}
