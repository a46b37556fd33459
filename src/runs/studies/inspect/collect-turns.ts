import { LogError } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import { TurnBatch } from '../../../method/advantage.js';
import { type LogPlace, type LogRow, readRows } from '../../../method/store.js';
import { noCost } from '../../../teams/rollout.js';
import {
  type Fields,
  flatLayout,
  type Layout,
  type LoggedTurn,
  type RewardRules,
  recognise,
  type UntrainedEpisode,
} from './log-layouts.js';

/** The turns of one or more log files: the estimators' input, and facts for a person. */
export interface Log {
  readonly layout: string;
  readonly files: number;
  readonly rows: number;
  readonly notices: readonly string[];
  readonly batch: TurnBatch;
  /** The training step of each turn, counted from 0 in the order of the log. */
  readonly steps: Int32Array; // [turns]
  /** The penalties of each turn. The reward of its record is net of them. */
  readonly penalties: Float64Array; // [turns]
  /** The costs of calls in each turn's outcome and in its reward. Undefined if there are none. */
  readonly costs?: { readonly outcome: Float64Array; readonly reward: Float64Array } | undefined; // [turns]
  /** The episodes in which only frozen agents acted. They have no turn in the batch. */
  readonly untrained?: readonly UntrainedEpisode[];
  /** The success of each turn's episode. Undefined if a turn lacks one. */
  readonly success?: Float64Array | undefined; // [turns]
  /** The advantages of the trainer that wrote the log. Undefined if a turn lacks one. */
  readonly logged: Float64Array | undefined; // [turns]
}

/**
 * Reads logs in one pass. It stores each name once and no texts, so a million turns take a few hundred megabytes.
 * @param files Files of one layout, in the order in which they are read
 * @param given Fields that the user named. They override the recognised layout
 * @param rules What the recipe tells of our own episodes. Default: calls cost nothing, and failed episodes count if
 *   policies learnt from them
 * @throws LogError with file and line of a row that cannot be parsed, or with the fields of an unknown layout that the
 *   user has to name
 */
export async function collectLog(
  files: readonly string[],
  given: Partial<Fields> = {},
  rules: RewardRules = { costOf: noCost, failedEpisodes: 'exclude' },
): Promise<Log> {
  const turns: TurnRecord[] = [];
  const untrained: UntrainedEpisode[] = [];
  const costs: { readonly outcome: number[]; readonly reward: number[] } = { outcome: [], reward: [] };
  const penalties: number[] = [];
  const logged: number[] = [];
  const success: number[] = [];
  const steps: number[] = [];
  const stepIndex = new Map<string, number>();
  const notices: string[] = [];
  const name = interned();
  const positions = new Map<string, Map<string, number>>();
  let layout: Layout | undefined;
  let rows = 0;
  let step = '';
  let returned: string | undefined;
  const groupOf = (turn: Pick<LoggedTurn, 'step'>) => (turn.step === '' ? step : turn.step);
  const taskOf = (turn: Pick<LoggedTurn, 'step' | 'task'>) =>
    name(groupOf(turn) === '' ? turn.task : `${groupOf(turn)}/${turn.task}`);
  const take = (turn: LoggedTurn) => {
    const [group, task] = [groupOf(turn), taskOf(turn)];
    const reward = turn.reward - turn.penalty;
    turns.push({
      task,
      episode: name(turn.episode),
      agent: name(turn.agent),
      turn: turn.turn ?? positionOf(positions, task, turn.episode),
      reward,
      ...(turn.outcome === undefined ? {} : { outcome: turn.outcome }),
    });
    const index = stepIndex.get(group) ?? stepIndex.size;
    stepIndex.set(group, index);
    if (index < stepIndex.size - 1) returned ??= group;
    steps.push(index);
    penalties.push(turn.penalty);
    costs.outcome.push(turn.cost?.outcome ?? 0);
    costs.reward.push(turn.cost?.reward ?? 0);
    if (turn.advantage !== undefined) logged.push(turn.advantage);
    if (turn.success !== undefined) success.push(turn.success);
  };
  const onRow = (row: LogRow, place: LogPlace) => {
    layout ??= layoutOf(row, place, given, rules);
    step = layout.fileIsStep && files.length > 1 ? place.file : '';
    layout.read(row, place, take, (episode) => untrained.push({ ...episode, task: taskOf(episode) }));
    rows++;
  };
  for (const file of files) {
    if (await readRows(file, onRow)) notices.push(`${file}: the last line is cut off and was left out`);
  }
  if (layout === undefined || turns.length === 0)
    throw new LogError('expected at least one turn, found none', { file: files.join(', ') });
  if (returned !== undefined)
    notices.push(
      `rows of step ${returned} follow rows of later steps; if a resumed run has played steps again, their rows count twice`,
    );
  return {
    layout: layout.name,
    files: files.length,
    rows,
    notices: [...layout.notices, ...notices],
    batch: new TurnBatch(turns),
    steps: Int32Array.from(steps),
    penalties: Float64Array.from(penalties),
    costs:
      rules.costOf === noCost
        ? undefined
        : { outcome: Float64Array.from(costs.outcome), reward: Float64Array.from(costs.reward) },
    untrained,
    success: success.length === turns.length ? Float64Array.from(success) : undefined,
    logged: logged.length === turns.length ? Float64Array.from(logged) : undefined,
  };
}

/** Returns one object for equal texts, so that comparisons and lookups are cheap. */
function interned(): (text: string) => string {
  const names = new Map<string, string>();
  return (text) => {
    const first = names.get(text);
    if (first !== undefined) return first;
    names.set(text, text);
    return text;
  };
}

/** Counts the turns of each episode so far. */
function positionOf(positions: Map<string, Map<string, number>>, task: string, episode: string): number {
  let ofTask = positions.get(task);
  if (ofTask === undefined) {
    ofTask = new Map();
    positions.set(task, ofTask);
  }
  const position = ofTask.get(episode) ?? 0;
  ofTask.set(episode, position + 1);
  return position;
}

function layoutOf(row: LogRow, place: LogPlace, given: Partial<Fields>, rules: RewardRules): Layout {
  const named = Object.keys(given);
  const { task, reward } = given;
  const layout = recognise(row, rules);
  if (layout !== undefined && 'fields' in layout)
    return checked({ ...layout.fields, ...given }, layout.name, layout.notices);
  if (task !== undefined && reward !== undefined)
    return checked({ ...given, task, reward }, 'rows by the given fields', []);
  if (row.type === 'run.started')
    throw new LogError("the events of a run; name the run's directory, or a file of its episodes", place);
  if (layout === undefined) {
    const fields = Object.keys(row).slice(0, 12).join(', ');
    throw new LogError(
      `unknown layout: name the fields with --task and --reward (and --episode, --agent); the row has ${fields}`,
      place,
    );
  }
  if (named.length === 0) return layout;
  throw new LogError(`${layout.name} need no field names; for another reading give --task and --reward`, place);
}

function checked(fields: Fields, name: string, notices: readonly string[]): Layout {
  if (fields.agent !== undefined && fields.episode === undefined) {
    throw new LogError('--agent needs --episode: turns of several agents belong to an episode');
  }
  return flatLayout(name, fields, notices);
}
