/** The parts of pages that the code writes, by the name in their marks. */

import { mean } from '@drmas/engine/math';
import { type RefereeFinding, type RefereeReport, refereeCases } from '@drmas/tinker';
import { amount } from '../../research/bench/report.js';
import { type BenchRecord, MEMORY, PROCESSOR } from '../../research/bench/results.js';
import { jsonLines } from '../../research/harness/json-lines.js';
import { commands, shortNames } from '../../src/cli/commands/index.js';
import { argumentText, type Command, flagName, usageOf } from '../../src/cli/define-command.js';
import { modelText } from '../../src/cli/reporter/start-printer.js';
import { openEstimator } from '../../src/method/advantage/estimators/index.js';
import { settingsSchema } from '../../src/method/advantage/named-choices.js';
import { loadRecipe, shippedRecipes } from '../../src/method/recipe/load-recipe.js';
import { signals } from '../../src/method/training/signals/index.js';
import { pairedInterval } from '../../src/runs/analysis/paired-interval.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { standard } from '../../src/runs/composition/standard.js';
import { storedPlaces, storedSettings } from '../../src/runs/run/request/stored-data.js';
import { integrations, lastRun } from '../../test/support/integrations.js';
import { hiddenBonus } from '../../test/support/stopping-game.js';
import { kernels as everyKernel } from '../kernels/declarations.js';
import { card, cardMemory } from './card.js';
import { defaultText, inputNode } from './json-schema.js';
import { type Region, readPage, table } from './pages.js';

/** Every command with its arguments, flags and examples, from its declaration. */
const commandPages: Region = {
  name: 'commands',
  render: () => [...commands, ...shortNames].flatMap(withSubcommands).map(section).join('\n\n'),
};

const withSubcommands = (command: Command): Command[] => [
  command,
  ...(command.subcommands ?? []).flatMap((each) => withSubcommands(below(command, each))),
];

const below = ({ name }: Command, subcommand: Command): Command => ({
  ...subcommand,
  name: `${name} ${subcommand.name}`,
});

function section(command: Command): string {
  const { details, arguments: args, examples } = command;
  const words = [
    ...args.map((one) => [`\`${argumentText(one)}\``, one.description]),
    ...Object.entries(command.flags).map(([key, { value, description, choices, byDefault }]) => [
      `\`${flagName(key)}${value === undefined ? '' : ` <${value}>`}\``,
      [
        description,
        ...(choices === undefined ? [] : [`one of ${choices.map((one) => `\`${one}\``).join(', ')}`]),
        ...(typeof byDefault === 'string' ? [`default \`${byDefault}\``] : []),
      ]
        .join('; ')
        .replaceAll('<', '&lt;'),
    ]),
  ];
  return [
    `## \`${usageOf(command)}\``,
    `${details.charAt(0).toUpperCase()}${details.slice(1)}.`,
    ...(words.length === 0 ? [] : [table(['word', 'meaning'], words)]),
    ...(examples.length === 0
      ? []
      : [`\`\`\`sh\n${examples.map((line) => line.replace(/(^|\| )drmas /, '$1npx drmas ')).join('\n')}\n\`\`\``]),
  ].join('\n\n');
}

/** The field of a turn that has the numbers of a signal. */
const fieldOf = (signal: string) => signals.find(({ name }) => name === signal)?.field ?? signal;

/**
 * Every advantage estimator with its formula and the defaults of the choices that it alone has, from its declaration.
 */
const estimators: Region = {
  name: 'estimators',
  render: () =>
    table(
      ['type', 'advantage', 'defaults', 'from', 'when to use'],
      standard.estimators.map(({ type, schema, formula, source, use, traits }) => [
        `\`${type}\``,
        formula,
        Object.entries(inputNode(schema).properties ?? {})
          .filter(([name]) => name !== 'type' && !(name in settingsSchema.shape))
          .map(([name, node]) => `\`${name}\` ${defaultText(node)}`.trim())
          .join(', '),
        source,
        traits.needs === undefined ? use : `${use}. Needs \`${fieldOf(traits.needs)}\``,
      ]),
    ),
};

/** The game of the table about stopping, without own rewards of its turns and with them, and the size of its groups. */
const stopping = { most: 3, going: 0.5, success: 0.25 };
const GROUP = 8;

/** The choices that give a turn all rewards that follow it, by the name of one. */
const WHOLE_RETURN: Readonly<Record<string, string>> = { episodeScore: 'outcome+penalties', across: 'episode' };

/**
 * The bias of every estimator that decides on going on, in a game in which the policy decides when to stop. Estimators
 * with equal numbers share a row. Those with a choice that counts the whole return are there again with it.
 */
const stoppingBias: Region = {
  name: 'stopping-bias',
  render() {
    const rows = new Map<string, string[]>();
    for (const { type, schema } of standard.estimators) {
      if (!schema.safeParse({ type }).success) continue; // `partition` is the general form of others
      const add = (name: string, choices: Readonly<Record<string, string>> = {}) => {
        const estimator = openEstimator({ ...choices, type }, standard.estimators);
        const bonuses = [0, 0.5].map((earned) => hiddenBonus({ ...stopping, earned }, estimator, GROUP)[0] as number);
        const key = bonuses.map((bonus) => (100 * bonus).toFixed(1).replace('-0.0', '0.0')).join(' ');
        rows.set(key, [...(rows.get(key) ?? []), name]);
      };
      add(`\`${type}\``);
      for (const [choice, value] of Object.entries(WHOLE_RETURN))
        if (choice in schema.shape) add(`\`${type}\` with \`${choice}: '${value}'\``, { [choice]: value });
    }
    const sizes = (key: string) => key.split(' ').map((bonus) => Math.abs(Number(bonus))) as [number, number];
    const sorted = [...rows].sort(([a], [b]) => sizes(a)[1] - sizes(b)[1] || sizes(a)[0] - sizes(b)[0]);
    return table(
      ['reward at the end', 'own rewards of turns', 'estimators'],
      sorted.map(([key, names]) => [...key.split(' '), names.join(', ')]),
    );
  },
};

interface LoopRun {
  readonly game: string;
  readonly arm: string;
  readonly rate: number;
  readonly quality: number;
  readonly return: number;
  readonly calls: number;
}

/** The runs of research/plans/stopping.md: each arm of a game, and its pairs with the whole return. */
const stoppingRuns: Region = {
  name: 'stopping-runs',
  render() {
    const runs = jsonLines<LoopRun>('research/results/stopping.jsonl');
    const names = [...new Set(runs.map(({ game, arm }) => `${game}/${arm}`))];
    const of = (name: string) => runs.filter(({ game, arm }) => `${game}/${arm}` === name);
    const row = (name: string): string[] => {
      const [game = '', arm = ''] = name.split('/');
      const own = of(name);
      const whole = of(`${game}/whole-return`);
      const text = (metric: (run: LoopRun) => number, scale: number, digits: number) => {
        const value = (scale * mean(own.map(metric))).toFixed(digits);
        if (arm === 'whole-return') return value;
        const { interval } = pairedInterval(own.map((run, i) => metric(run) - metric(whole[i] as LoopRun)));
        const [low, high] = [interval?.low, interval?.high].map((end) => (scale * (end as number)).toFixed(digits));
        return `${value} [${low}, ${high}]`.replaceAll(/-(0\.0+)(?=[,\]])/g, '$1');
      };
      return [
        game,
        `\`${arm}\``,
        `${own[0]?.rate}`,
        text(({ calls }) => calls, 1, 2),
        text(({ quality }) => quality, 100, 1),
        text((run) => run.return, 100, 1),
      ];
    };
    return table(['game', 'credit', 'rate', 'calls', 'quality', 'return'], names.map(row));
  },
};

/** Every policy loss with its formula, from its declaration. */
const losses: Region = {
  name: 'losses',
  render: () =>
    table(
      ['type', 'loss of a token', 'from', 'when to use'],
      standard.losses.map(({ type, formula, source, use }) => [`\`${type}\``, formula, source, use]),
    ),
};

/** All kernels of the manifest: their function, their order of summation, and their sources; the C++ ships. */
const kernels: Region = {
  name: 'kernels',
  render() {
    const rows = everyKernel.map(({ name, header, reference, computes, sums }) => {
      const sources = [`${header}`, ...(reference === undefined ? [] : [reference])];
      return [`\`${name}\``, computes, sums ?? '', sources.join(', ')];
    });
    return table(['kernel', 'result', 'order of its sums', 'C++, TypeScript'], rows);
  },
};

/** The team of the project that `drmas init` writes. */
const firstTeam: Region = {
  name: 'first-team',
  render: () => {
    const [team] = /^export const team = [\s\S]*?^}\);$/m.exec(readPage('templates/project/team.ts')) ?? [];
    if (team === undefined) throw new Error('templates/project/team.ts: expected export const team = ...');
    return `\`\`\`ts ignore: imports and settings are in the project\n${team}\n\`\`\``;
  },
};

/** The recipes that ship, each with its team, its tasks and the model of its policies. */
const recipes: Region = {
  name: 'recipes',
  async render() {
    const rows: string[][] = [];
    for (const name of shippedRecipes()) {
      const { team, tasks, policies } = resolveRecipe((await loadRecipe(name)).definition, { name });
      const models = new Set(Object.values(policies).map(({ model }) => modelText(model)));
      rows.push([
        `[\`${name}\`](../recipes/${name}/recipe.ts)`,
        Object.keys(team.agents).join(', '),
        tasks.train.name,
        `${Object.keys(policies).length} x ${[...models].join(' / ')}`,
      ]);
    }
    return table(['name', 'agents', 'tasks', 'policies'], rows);
  },
};

/** A line of docs/referee.jsonl: what `drmas doctor server --json` printed, with the server's name and version. */
interface RefereeRun {
  readonly server: string;
  /** ISO 8601. */
  readonly time: string;
  readonly seconds: number;
  readonly speed?: RefereeReport['speed'];
  readonly findings: readonly Pick<RefereeFinding, 'name' | 'outcome' | 'detail'>[];
}

/** The cases of the referee, with the outcomes on the servers on which it was run. */
const refereeMatrix: Region = {
  name: 'referee',
  render() {
    const runs = jsonLines<RefereeRun>('docs/referee.jsonl');
    const outcome = ({ findings }: RefereeRun, name: string) => {
      const found = findings.find((finding) => finding.name === name);
      if (found === undefined) return 'not run';
      return found.outcome === 'pass' ? 'pass' : `**${found.outcome}**: ${found.detail}`;
    };
    const head = runs.map(({ server, time, seconds }) => `${server}, ${time.slice(0, 10)}, ${seconds} s`);
    const speeds = runs.map(({ speed }) =>
      speed === undefined ? 'not run' : `${Math.round(speed.sampled)} and ${Math.round(speed.trained)}`,
    );
    return table(
      ['case', 'passes', ...head],
      [
        ...refereeCases.map(({ name, core, about }) => [
          `\`${name}\`${core ? ' (core)' : ''}`,
          about,
          ...runs.map((run) => outcome(run, name)),
        ]),
        ['`--speed`', 'No rule: tokens a second sampled (32 at once) and trained (16 sequences of 64)', ...speeds],
      ],
    );
  },
};

/** The packages of others that the tests run: the version and the day of the last recorded run that passed. */
const integrationTable: Region = {
  name: 'integrations',
  render: () =>
    table(
      ['kind', 'package', 'last recorded version', 'on', 'test file', 'command'],
      integrations.map((one) => {
        const { version = '–', date = 'not recorded yet' } = lastRun(one) ?? {};
        const command = one.suite === undefined ? 'npm test' : `npm run verify -- ${one.suite}`;
        return [one.kind, `\`${one.package}\``, version, date, `\`${one.file}\``, `\`${command}\``];
      }),
    ),
};

/** The results that `npm run bench -- PARTS --record docs/benchmarks.jsonl` has stored. */
const benchRecords = () => jsonLines<BenchRecord>('docs/benchmarks.jsonl');

/**
 * A ratio of the bench. `decoding / drmas, blocks / transformers` asks for the ratio whose work begins with `decoding`,
 * whose name begins with `drmas, blocks / transformers`, from the newest record that has one; `AMD: decoding / ...`
 * from the newest of a machine whose name begins with `AMD`. Records of GPUs are left out.
 * @throws Error if not exactly one ratio of the record does
 */
export function benchRatio(words: string): string {
  const [, maker = '', ratioWords = ''] = /^(?:(\w+): )?(.*)$/s.exec(words) ?? [];
  const [work = '', ...what] = ratioWords.split(' / ');
  const name = what.join(' / ');
  const found =
    benchRecords()
      .filter(({ machine, gpu }) => gpu === undefined && machine.startsWith(maker))
      .map(({ results }) =>
        results.ratios.filter((ratio) => ratio.shape.startsWith(work) && ratio.what.startsWith(name)),
      )
      .findLast((ratios) => ratios.length > 0) ?? [];
  const [ratio] = found;
  if (ratio === undefined || found.length > 1) throw new Error(`${found.length} ratios of the bench are: ${words}`);
  return ratio.value.toFixed(1);
}

type BenchRow = BenchRecord['results']['rows'][number];

/** The tables of some records of the bench, with further columns. */
function benchTables(
  chosen: (record: BenchRecord) => boolean,
  unit: string,
  columns: Readonly<Record<string, (row: BenchRow) => string>>,
): string {
  return benchRecords()
    .filter(chosen)
    .flatMap(({ date, machine, gpu, node, arguments: words, results }) => [
      `\`npm run bench -- ${words.filter((word) => word !== '--json').join(' ')}\`,\n${[date, machine, gpu].filter(Boolean).join(', ')}, Node ${node}.`,
      table(
        ['work', 'engine', 'threads', unit, 'low to high', 'repetitions', ...Object.keys(columns)],
        results.rows.map((row) => [
          row.shape,
          row.engine,
          String(row.threads),
          amount(row.median),
          `${amount(row.low)} to ${amount(row.high)}`,
          `${row.used}${row.clean === false ? ', not alone' : ''}`,
          ...Object.values(columns).map((of) => of(row)),
        ]),
      ),
      table(
        ['work', 'ratio of medians', 'value', 'target'],
        results.ratios.map(({ shape, what, value, target }) => [
          shape,
          what,
          value.toFixed(2),
          target === undefined ? '' : `${target}, ${value >= target ? 'met' : 'missed'}`,
        ]),
      ),
      ...(results.skipped.length === 0
        ? []
        : [
            table(
              ['not measured', 'reason'],
              results.skipped.map(({ what, reason }) => [what, reason]),
            ),
          ]),
    ])
    .join('\n\n');
}

/** Records of the processor whose first row belongs to a part. */
const ofPart =
  (part: string) =>
  ({ gpu, results }: BenchRecord) =>
    gpu === undefined && results.rows[0]?.part.startsWith(part) === true;

const realModel: Region = {
  name: 'bench-real',
  render: () =>
    benchTables(ofPart('real'), 'tok/s', {
      'processor ms a token': ({ details }) => amount(details[PROCESSOR] ?? Number.NaN),
      'peak memory': ({ details }) => `${amount(details[MEMORY] ?? Number.NaN)}B`,
    }),
};

const onGpus: Region = {
  name: 'bench-gpu',
  render: () => benchTables(({ gpu }) => gpu !== undefined, 'tok/s', {}),
};

const wholeStep: Region = {
  name: 'bench-step',
  render: () => {
    const detail =
      (name: string) =>
      ({ details }: BenchRow) => {
        const value = details[name];
        return value === undefined ? '' : amount(value);
      };
    return benchTables(ofPart('step'), 'steps/s', {
      'ms rollout': detail('ms rollout'),
      'ms update': detail('ms update'),
      'mean reward': detail('reward'),
      'ms a step, steps 4 to 23': detail('ms step 4 to 23'),
    });
  },
};

/** The addresses, folders and programs that the data of a run may name, and which of them drmas uses. */
const storedData: Region = {
  name: 'stored-data',
  render: () =>
    table(
      ['stored data', 'can cause', 'drmas', 'because'],
      [...storedSettings, ...storedPlaces].map(({ field, effect, rule, why, service }) => [
        `\`${field}\``,
        effect,
        { asked: 'asks', refused: 'refuses', harmless: 'uses it' }[rule],
        service === undefined ? why : `${why}; ${service} needs no permission`,
      ]),
    ),
};

/** Every generated part of a hand-written page. */
export const regions: readonly Region[] = [
  card,
  cardMemory,
  commandPages,
  estimators,
  firstTeam,
  integrationTable,
  kernels,
  losses,
  onGpus,
  realModel,
  recipes,
  refereeMatrix,
  stoppingBias,
  stoppingRuns,
  storedData,
  wholeStep,
];
