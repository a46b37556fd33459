import { isObject, LogError } from '@drmas/engine/errors';
import { type Episode, isLesson, type Score, successOf } from '@drmas/engine/nouns';
import { episodeFault, fieldAt, type LogPlace, type LogRow, nameAt, numberAt, rowsAt } from '../../../method/store.js';
import type { CostOfCalls, FailureRule } from '../../../teams/rollout.js';

/** One call of one agent in a log. */
export interface LoggedTurn {
  /** Turns of different steps are never compared. Empty if the log has no steps. */
  readonly step: string;
  readonly task: string;
  readonly episode: string;
  readonly agent: string;
  /** Position in the episode. Default: the order of appearance. */
  readonly turn: number | undefined;
  /** The episode's reward for this agent, before the turn's own penalty. */
  readonly reward: number;
  readonly penalty: number;
  /** The team's reward, if the log has it in addition to the agents' rewards. */
  readonly outcome: number | undefined;
  /** How far the episode solved its task, from 0 to 1, if the log says so. */
  readonly success?: number;
  /** The costs of calls that were taken off the outcome and off the reward, if the log says so. */
  readonly cost?: { readonly outcome: number; readonly reward: number };
  /** The advantage that the trainer of the log computed. */
  readonly advantage: number | undefined;
}

/** An episode in which only frozen agents acted. Estimators compare no turn of it. */
export interface UntrainedEpisode extends Pick<LoggedTurn, 'step' | 'task' | 'success'> {
  /** Without the cost of calls. */
  readonly earned: number;
  readonly outcome: number;
}

export interface Layout {
  readonly name: string;
  readonly fileIsStep: boolean;
  /** Notes for a person: how the log is read. */
  readonly notices: readonly string[];
  /** @throws LogError with the missing or wrong field */
  read(
    row: LogRow,
    place: LogPlace,
    take: (turn: LoggedTurn) => void,
    untrained: (each: UntrainedEpisode) => void,
  ): void;
}

/** The fields (dotted paths) of a flat log. A row is one turn. */
export interface Fields {
  readonly task: string;
  /** Several fields are summed. TRL logs one column for each reward function. */
  readonly reward: string | readonly string[];
  /** Without it each row is its own episode. */
  readonly episode?: string;
  readonly agent?: string;
  readonly turn?: string;
  readonly penalty?: string;
  readonly step?: string;
  readonly advantage?: string;
}

/** A recipe's settings about the rewards in its run's episodes. */
export interface RewardRules {
  readonly costOf: CostOfCalls;
  readonly failedEpisodes: FailureRule;
}

/** A log that was recognised by its first row: nested, or flat with fields that the user may rename. */
export type Recognised =
  | Layout
  | { readonly name: string; readonly fields: Fields; readonly notices: readonly string[] };

const ONLY_AGENT = 'agent';

/** @param rules What the recipe tells of our own episodes */
export function recognise(row: LogRow, rules: RewardRules): Recognised | undefined {
  for (const layout of [episodes(rules), rllmEpisodes, traces]) if (layout.fits(row)) return layout;
  return rolloutsOfVerifiers(row) ?? generationsOfVerl(row) ?? completionsOfTrl(row);
}

/** Our own `episodes/*.jsonl`. */
const episodes = ({ costOf, failedEpisodes }: RewardRules): Layout & { fits(row: LogRow): boolean } => ({
  name: 'drmas episodes',
  fileIsStep: true,
  notices: [],
  fits: (row) => isObject(row.task) && isObject(row.score) && Array.isArray(row.turns),
  read(row, place, take, untrained) {
    const fault = episodeFault(row);
    if (fault !== undefined) throw new LogError(fault, place);
    const turns = rowsAt(row, 'turns', place);
    const counts = row.failure === undefined || failedEpisodes === 'zero' || teaches(row.failure, turns);
    if (!counts) return;
    const score = scoreIn(row.score);
    const cost = costOf({ score });
    const shared = {
      step: '',
      task: nameAt(row, 'task.id', place),
      episode: nameAt(row, 'sample', place),
      outcome: numberAt(row, 'score.team', place),
      success: successOf({ score }),
    };
    const trained = turns.filter(({ frozen }) => frozen !== true); // estimators ignore the others
    if (trained.length === 0) untrained({ ...shared, earned: shared.outcome + cost });
    for (const turn of trained) {
      const agent = nameAt(turn, 'agent', place);
      const penalty = numberAt(turn, 'penalty', place);
      const { advantage } = turn;
      take({
        ...shared,
        agent,
        turn: numberAt(turn, 'turn', place),
        reward: numberAt(turn, 'reward', place) + penalty,
        penalty,
        // An agent with a reward of its own pays nothing for calls.
        ...(cost === 0 ? {} : { cost: { outcome: cost, reward: Object.hasOwn(score.agents, agent) ? 0 : cost } }),
        advantage: typeof advantage === 'number' ? advantage : undefined,
      });
    }
  },
});

/** A stored score. Early versions wrote no parts. */
function scoreIn(score: unknown): Score {
  const { parts = {}, agents = {}, ...rest } = score as Score;
  return { ...rest, parts, agents };
}

/** Whether policies learn from a failed episode: by default if the agents' texts caused the failure. */
const teaches = (failure: unknown, turns: readonly LogRow[]): boolean =>
  isLesson({ failure, turns } as unknown as Episode) || turns.some(({ advantage }) => advantage !== undefined);

/**
 * rLLM's episode logger: one JSON document an episode below `train_step_N_epoch_M/`; each trajectory is one agent's,
 * named by its role (facts from rllm-org/rllm, rllm/utils/episode_logger.py).
 */
const rllmEpisodes: Layout & { fits(row: LogRow): boolean } = {
  name: 'rLLM episodes',
  fileIsStep: false,
  notices: ['every step of a trajectory is a turn with the reward of the trajectory'],
  fits: (row) => 'episode_id' in row && Array.isArray(row.trajectories),
  read(row, place, take) {
    const shared = {
      step: String(row.training_step ?? ''),
      task: nameAt(row, row.task_hash === undefined ? 'task' : 'task_hash', place),
      episode: nameAt(row, 'episode_id', place),
      outcome: typeof row.is_correct === 'boolean' ? numberAt(row, 'is_correct', place) : undefined,
      penalty: 0,
      advantage: undefined,
      turn: undefined,
    };
    for (const trajectory of rowsAt(row, 'trajectories', place)) {
      const agent = nameAt(trajectory, 'name', place);
      // A trajectory without a reward of its own has the episode's. Without both, nothing was measured.
      const reward = trajectory.reward === null ? shared.outcome : undefined;
      for (const _ of rowsAt(trajectory, 'steps', place))
        take({ ...shared, agent, reward: reward ?? numberAt(trajectory, 'reward', place) });
    }
  },
};

/**
 * Traces of verifiers v1, as prime-rl writes them: one trace is what one agent did on one task (facts from
 * PrimeIntellect-ai/verifiers, verifiers/v1/trace.py, and PrimeIntellect-ai/prime-rl, orchestrator/utils.py).
 */
const traces: Layout & { fits(row: LogRow): boolean } = {
  name: 'verifiers traces (prime-rl)',
  fileIsStep: true,
  notices: ['traces do not name their episode: each trace counts as its own episode'],
  fits: (row) => isObject(row.task) && isObject(row.agent) && isObject(row.rewards) && Array.isArray(row.nodes),
  read(row, place, take) {
    const rewards = isObject(row.rewards) ? Object.values(row.rewards).filter(isObject) : [];
    const reward = rewards.reduce(
      (sum, part) =>
        sum + numberAt(part, 'score', place) * (part.weight === undefined ? 1 : numberAt(part, 'weight', place)),
      0,
    );
    const key = ['task.key', 'task.hash'].find((path) => typeof fieldAt(row, path) === 'string') ?? 'task.data';
    const calls = rowsAt(row, 'nodes', place).filter((node) => node.sampled === true).length;
    const turn = {
      step: '',
      task: nameAt(row, key, place),
      episode: nameAt(row, 'id', place),
      agent: nameAt(row, 'agent.name', place),
      turn: undefined,
      reward,
      penalty: 0,
      outcome: undefined,
      advantage: undefined,
    };
    for (let call = 0; call < Math.max(1, calls); call++) take(turn);
  },
};

/**
 * `train_rollouts.jsonl` of prime-rl and results of verifiers evaluations: one row a rollout (facts from
 * PrimeIntellect-ai/verifiers, verifiers/utils/save_utils.py).
 */
function rolloutsOfVerifiers(row: LogRow): Recognised | undefined {
  if (!('example_id' in row) || typeof row.reward !== 'number') return undefined;
  const fields = { task: 'example_id', reward: 'reward', ...optional(row, { advantage: 'advantage' }) };
  return { name: 'verifiers rollouts (prime-rl)', fields, notices: [] };
}

/**
 * verl's `rollout_data_dir/<step>.jsonl` (facts from verl-project/verl, verl/trainer/ppo/ray_trainer.py and pull
 * request 916).
 */
function generationsOfVerl(row: LogRow): Recognised | undefined {
  if (!('input' in row && 'output' in row) || typeof row.score !== 'number') return undefined;
  const fields = { task: 'input', reward: 'score', ...optional(row, { step: 'step' }) };
  return { name: 'verl rollouts', fields, notices: ['rows with the same input are siblings'] };
}

/**
 * TRL's logged completions, converted from Parquet to JSON lines: one column for each reward function (facts from the
 * dataset card that TRL writes beside them, and huggingface/trl, trl/trainer/grpo_trainer.py).
 */
function completionsOfTrl(row: LogRow): Recognised | undefined {
  if (!('prompt' in row && 'completion' in row && 'step' in row)) return undefined;
  const numbers = Object.keys(row).filter(
    (key) => typeof row[key] === 'number' && key !== 'step' && key !== 'advantage',
  );
  const reward = numbers.includes('reward') ? 'reward' : numbers;
  if (reward.length === 0) return undefined;
  const fields = { task: 'prompt', reward, step: 'step', ...optional(row, { advantage: 'advantage' }) };
  const summed =
    typeof reward === 'string'
      ? []
      : [`the reward is the sum of ${reward.join(' + ')}, unweighted; --reward names another`];
  return { name: 'TRL completions', fields, notices: ['rows with the same prompt are siblings', ...summed] };
}

/** The fields in which the row has a number. */
const optional = <Names extends Record<string, string>>(row: LogRow, names: Names): Partial<Names> =>
  Object.fromEntries(Object.entries(names).filter(([, field]) => typeof row[field] === 'number')) as Partial<Names>;

export function flatLayout(name: string, fields: Fields, notices: readonly string[]): Layout {
  let row = 0;
  const rewardFields = typeof fields.reward === 'string' ? [fields.reward] : fields.reward;
  const only = rewardFields.length === 1 ? rewardFields[0] : undefined;
  return {
    name,
    fileIsStep: fields.step === undefined,
    notices,
    read(source, place, take) {
      const number = row++;
      const advantage = fields.advantage === undefined ? undefined : fieldAt(source, fields.advantage);
      take({
        step: fields.step === undefined ? '' : nameAt(source, fields.step, place),
        task: nameAt(source, fields.task, place),
        episode: fields.episode === undefined ? String(number) : nameAt(source, fields.episode, place),
        agent: fields.agent === undefined ? ONLY_AGENT : nameAt(source, fields.agent, place),
        turn: fields.turn === undefined ? undefined : numberAt(source, fields.turn, place),
        reward: only === undefined ? sumOf(source, rewardFields, place) : numberAt(source, only, place),
        penalty: fields.penalty === undefined ? 0 : numberAt(source, fields.penalty, place),
        outcome: undefined,
        advantage: typeof advantage === 'number' ? advantage : undefined,
      });
    },
  };
}

/** A reward function that does not apply to a row logs null there. */
function sumOf(row: LogRow, fields: readonly string[], place: LogPlace): number {
  const given = fields.filter((field) => fieldAt(row, field) !== null);
  if (given.length === 0) throw new LogError(`${fields.join(', ')}: expected a number in at least one`, place);
  return given.reduce((sum, field) => sum + numberAt(row, field, place), 0);
}
