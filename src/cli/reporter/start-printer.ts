import type { RunStarted } from '@drmas/engine/events';
import { isOtherModel, type ModelSpec, modelKindOf } from '@drmas/engine/model';
import { lossSettings, type Recipe } from '../../method/recipe.js';
import { duration, grouped, table, wrap } from './text-layout.js';

export function startLines(recipe: Recipe, started: RunStarted, runPath: string, width: number): string[] {
  const { training, warmStart, evaluation } = recipe;
  const policies = Object.entries(recipe.policies).map(([policy, { model }]) => {
    const agents = Object.keys(recipe.assign).filter((agent) => recipe.assign[agent] === policy);
    const parameters = started.parameters?.[policy];
    const size = parameters === undefined ? '' : `, ${grouped(parameters)} parameters`;
    const who = agents.join() === policy ? policy : `${policy} (${agents.join(', ')})`;
    return `${who}: ${modelText(model)}${size}`;
  });
  const frozen = Object.entries(recipe.assign).flatMap(([agent, entry]) => {
    if (typeof entry === 'string') return [];
    if (entry.type === 'text') return [`${agent}: ${entry.name}`];
    if (entry.type === 'constant') return [`${agent}: the text ${JSON.stringify(entry.text)}`];
    return [`${agent}: ${entry.type === 'endpoint' ? `${entry.model} at ${entry.url}` : modelText(entry.model)}`];
  });
  const losses = [...new Set(Object.keys(recipe.policies).map((policy) => lossSettings(recipe, policy).type))];
  const plan = [
    warmStart && `warm start of at most ${grouped(warmStart.steps)} steps`,
    `${training.steps} steps of ${training.tasksPerStep} tasks x ${training.groupSize} episodes`,
    `evaluation on ${started.evaluated ?? `at most ${evaluation.tasks}`} held-out tasks x ${evaluation.samples}`,
    stopsText(training),
  ];
  const rows = [
    ['recipe', `${recipe.name}, seed ${started.seed}`],
    ['team', `${recipe.team.name}: ${Object.keys(recipe.team.agents).join(', ')}`],
    ['tasks', [...new Set([recipe.tasks.train.name, recipe.tasks.test.name])].join(' / ')],
    ...rowsOf('policies', policies),
    ...rowsOf('frozen', frozen),
    ['method', `${recipe.advantage.type} advantages, ${losses.join(' and ')} loss`],
    ...rowsOf(
      'plan',
      plan.filter((line) => line !== undefined),
    ),
    ...hardwareRows(started),
    ['run', runPath],
  ];
  return labelled(rows, width);
}

function stopsText({ stopWhen = {}, keepBest = false }: Recipe['training']): string | undefined {
  const { score, patience, rewardFloor, tokens, cost, minutes } = stopWhen;
  const rules = [
    score !== undefined && `a score of ${score}`,
    patience !== undefined && `${patience} evaluations in a row without a better one`,
    rewardFloor !== undefined && `${rewardFloor.steps} steps in a row with a reward below ${rewardFloor.below}`,
    tokens !== undefined && `${grouped(tokens)} tokens`,
    cost !== undefined && `a cost of ${cost}`,
    minutes !== undefined && `${minutes} minutes`,
  ].filter((rule) => rule !== false);
  const parts = [
    ...(keepBest ? ['the best checkpoint stays'] : []),
    ...(rules.length > 0 ? [`ends early after ${rules.join(', or ')}`] : []),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** The kernels in use; by model if there are several backends. */
function hardwareRows({ hardware, backends }: RunStarted): string[][] {
  const text = ({ kernels, isa }: Pick<RunStarted['hardware'], 'kernels' | 'isa'>) => `${kernels} kernels (${isa})`;
  if (backends === undefined) return [['hardware', `${hardware.cores} cores, ${text(hardware)}`]];
  const models = Object.entries(backends).map(([name, backend]) => ['', `${name}: ${text(backend)}`]);
  return [['hardware', `${hardware.cores} cores`], ...models];
}

/** The rows of several texts with one label. */
export const rowsOf = (label: string, texts: readonly string[]): string[][] =>
  texts.map((text, i) => [i === 0 ? label : '', text]);

/** A label and a text. A row without a label continues the row above; false is no row. */
export type LabelledRow = readonly string[] | false;

/** Lines of a label and a text each. */
export function labelled(rows: readonly LabelledRow[], width: number): string[] {
  const shown = rows.filter((row) => row !== false);
  const indent = Math.max(...shown.map((row) => row[0]?.length ?? 0)) + 2;
  return shown.flatMap(([label = '', text = '']) =>
    wrap(text, Math.max(20, width - indent)).map(
      (line, index) => `${(index === 0 ? label : '').padEnd(indent)}${line}`,
    ),
  );
}

export function modelText(model: ModelSpec): string {
  if (isOtherModel(model)) return modelKindOf(model).text(model);
  if (model.type === 'lora' && 'from' in model) return `the adapter in ${model.from} on ${modelText(model.base)}`;
  if (model.type === 'lora') return `adapters of rank ${model.rank} on ${modelText(model.base)}`;
  if (model.type === 'checkpoint') return model.path;
  const { tokenizer } = model;
  const tokens = tokenizer.type === 'symbols' ? `${tokenizer.symbols.length} symbols` : 'bytes';
  return `d${model.width} x ${model.layers} layers, ${tokens}`;
}

export interface TimeSpent {
  readonly warmStart: number;
  readonly sampling: number;
  readonly training: number;
  readonly evaluation: number;
  /** The seconds of the whole run. */
  readonly total: number;
}

/** A table of the time that each phase took. The other seconds are the team's own code, loading and saving. */
export function timeLines(time: TimeSpent): string[] {
  const parts: [string, number][] = [
    ['warm start', time.warmStart],
    ['sampling', time.sampling],
    ['training', time.training],
    ['evaluation', time.evaluation],
  ];
  const rest = time.total - parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  const rows = [...parts, ['own code, files', Math.max(0, rest)] as [string, number]].filter(
    ([, seconds]) => seconds > 0,
  );
  return table([
    ...rows.map(([name, seconds]) => [name, duration(seconds), `${Math.round((100 * seconds) / (time.total || 1))} %`]),
    ['total', duration(time.total), ''],
  ]);
}
