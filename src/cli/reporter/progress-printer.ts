/** The lines that a run prints while it trains, one for each event. */

import type {
  BestEvaluation,
  EarlyStop,
  EpisodeFailed,
  EvaluationEvent,
  RunEvent,
  RunStarted,
  ScoredEvaluation,
  Spike,
  Step,
  Warmup,
} from '@drmas/engine/events';
import { isSilent, type PlayProgress, remedyOfFailure } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { type Headline, isScored, measuresOf } from '@drmas/engine/nouns';
import { columns } from './columns.js';
import { scoredText } from './score-printer.js';
import type { StatusLines } from './screen.js';
import { duration, fixed, type Part, packed, percent, short, shortened, significant, wrap } from './text-layout.js';

/** The line of a warm start. @param before The step of the policy's last event, 0 for none */
export function warmupLine(event: Warmup, before: number, width: number): string {
  const left = (event.seconds / Math.max(1, event.step - before)) * (event.steps - event.step);
  return shortened(
    [
      { text: 'warm start', rank: 0 },
      { text: event.policy, rank: 5 },
      { text: `${event.step}/${event.steps}`, rank: 0 },
      { text: `loss ${significant(event.loss)}`, rank: 1 },
      { text: event.heldOutLoss === undefined ? '' : `held out ${significant(event.heldOutLoss)}`, rank: 3 },
      { text: `${short(event.tokens / Math.max(1e-9, event.seconds))} tokens/s`, rank: 4 },
      { text: event.step < event.steps ? `at most ${duration(left)} left` : '', rank: 2 },
    ],
    width,
  );
}

/** The number of last steps whose pace gives the estimate of the remaining time. */
const PACE = 10;

/** Seconds until the last of `steps` steps, with the evaluations that are not over, that of the last step included. */
export function secondsLeft(history: RunHistory, steps: number, evaluateEvery: number): number {
  const done = history.steps.at(-1)?.step ?? 0;
  const pace = mean(history.steps.slice(-PACE).map((step) => step.seconds));
  const { step: evaluated = 0, seconds = 0 } = history.evaluations.at(-1) ?? {};
  const evaluations = Math.ceil(steps / evaluateEvery) - Math.floor(evaluated / evaluateEvery);
  return (steps - done) * pace + evaluations * seconds;
}

/**
 * `step 12/60 reward 0.683 solver 0.71 (0.26) verifier 0.55 (3.10!) invalid 1.2 % 0.7 s 1:05 min left`: for each agent
 * the mean reward of its turns, and its gradient norm with `!` on a spike; `kept 9/16` groups, `failed 3/128` episodes.
 * Agents that do not fit on the line follow on lines below. Frozen agents are left out: no reward trains them.
 */
export function stepLines(
  event: Step,
  steps: number,
  spiking: ReadonlySet<string>,
  left: number,
  width: number,
): string[] {
  const agents = Object.entries(event.agents);
  const turns = agents.reduce((sum, [, agent]) => sum + agent.turns, 0);
  const invalid = agents.reduce((sum, [, agent]) => sum + agent.invalid * agent.turns, 0) / Math.max(1, turns);
  const trained = agents.filter(([, { frozen }]) => frozen !== true);
  const ofAgents = trained.map(([name, agent]) => {
    const [text, spikes] = [`${name} ${fixed(agent.rewardMean ?? Number.NaN, 2)}`, spiking.has(name)];
    const norm = ` (${significant(agent.gradientNorm)}${spikes ? '!' : ''})`;
    return { text: text + norm, brief: spikes ? `${text}!` : text, rank: spikes ? 1 : 2 };
  });
  const { episodes, filter } = event;
  const head = [
    { text: `step ${String(event.step).padStart(String(steps).length)}/${steps}`, rank: 0 },
    { text: rewardText(event), rank: 0 },
    { text: trained.every(([, agent]) => isSilent(agent)) ? 'nothing learned' : '', rank: 0 },
  ];
  const rest = [
    { text: episodes?.failed ? `failed ${episodes.failed}/${episodes.played}` : '', rank: 1 },
    { text: filter === undefined ? '' : `kept ${filter.kept}/${filter.played}`, rank: 2 },
    { text: `invalid ${percent(invalid)}`, rank: 4 },
    { text: duration(event.seconds), rank: 5 },
    { text: event.step < steps ? `${duration(left)} left` : '', rank: 3 },
  ];
  // If all else is shortened, the agents stay: no agent is left out for the sake of a count of failures.
  const needed = [...head, ...ofAgents, ...rest.filter(({ rank }) => rank < 2)].filter(({ text }) => text !== '');
  const brief = needed.map(({ brief, text }: Part) => brief ?? text).join('  ');
  if (columns(brief) <= width) return [shortened([...head, ...ofAgents, ...rest], width)];
  return [
    shortened([...head, ...rest], width),
    ...packed(
      ofAgents.map(({ text, brief }) => (columns(text) > width - 2 ? brief : text)),
      width - 2,
    ).map((row) => `  ${row}`),
  ];
}

/** The legend of a step line. There are no agents if all episodes failed. */
export function stepLegend(agents: readonly string[]): string {
  if (agents.length === 0) return "reward: mean of the step's episodes";
  return `reward: mean of the step's episodes; ${agents.join(', ')}: mean of its turns (gradient norm, ! marks a spike)`;
}

/** The number of step lines that stay on a terminal, about; later lines overwrite the others. */
const LINES_OF_RUN = 20;

/** Whether the line of a step stays on a terminal: one of about twenty in a run, or one that reports trouble. */
export function stepStays({ step, episodes, agents }: Step, steps: number, spikes: number): boolean {
  const isMilestone = step === 1 || step % Math.ceil(steps / LINES_OF_RUN) === 0;
  const isSilentStep = Object.values(agents).every((agent) => agent.frozen === true || isSilent(agent));
  return isMilestone || spikes > 0 || isSilentStep || (episodes?.failed ?? 0) > 0;
}

/**
 * The progress of a step or an evaluation: `step 12/60  37 of 128 episodes  failed 2  reward 0.683 at step 11
 * 1:05 min left`, in one line.
 * @param before The step before it, whose line may have been overwritten, and the seconds until the end of the run
 */
export function playLine(
  { phase, step, episodes, done, failed }: PlayProgress,
  steps: number,
  width: number,
  before?: { readonly step: Step; readonly left: number },
): string {
  const name = phase === 'evaluation' ? `evaluation at step ${step}` : `step ${step}/${steps}`;
  const last =
    before === undefined || phase === 'evaluation'
      ? []
      : [
          { text: `${rewardText(before.step)} at step ${before.step.step}`, rank: 2 },
          { text: `${duration(before.left)} left`, rank: 4 },
        ];
  return shortened(
    [
      { text: name, rank: 0 },
      { text: phase === 'baseline' ? 'greedy baseline' : '', rank: 3 },
      { text: `${done} of ${episodes} episodes`, rank: 0 },
      { text: failed > 0 ? `failed ${failed}` : '', rank: 1 },
      ...last,
    ],
    width,
  );
}

export function spikeLine(event: Spike, width: number): string {
  const who = event.agent ?? event.policy;
  const answer = { clip: 'clipped', skip: 'update skipped', stop: 'run stopped' }[event.action];
  const what =
    event.gradientNorm === null
      ? `  ! dropped: ${who}, gradient is not a number`
      : `  ! ${event.type}: ${who} ${significant(event.gradientNorm)}, ${significant(event.gradientNorm / event.median)} x the median`;
  const parts = [
    { text: what, rank: 0 },
    { text: event.gradientNorm === null ? '' : answer, rank: 1 },
    { text: event.episodes[0] ?? '', rank: 2 },
  ];
  return shortened(parts, width);
}

/** @param headline The number of the run to show first */
export function evaluationLine(event: EvaluationEvent, width: number, headline: Headline = 'score'): string {
  const { samples } = event;
  const headlineParts = ({ averageAtK, interval: { low, high }, reward = Number.NaN }: ScoredEvaluation) =>
    headline === 'reward'
      ? [
          { text: `reward ${significant(reward)}`, rank: 0 },
          { text: `score ${percent(averageAtK)}`, rank: 1 },
        ]
      : [
          { text: percent(averageAtK), rank: 0 },
          { text: `[${fixed(100 * low, 1)}, ${fixed(100 * high, 1)}]`, rank: 0 },
        ];
  return shortened(
    [
      { text: `evaluation at step ${event.step}`, rank: 0 },
      ...(isScored(event) ? headlineParts(event) : []),
      { text: event.unscored === undefined ? '' : scoredText(event), rank: 1 },
      { text: isScored(event) ? `pass@${samples} ${percent(event.passAtK)}` : '', rank: 2 },
      { text: isScored(event) ? `maj@${samples} ${percent(event.majorityAtK)}` : '', rank: 3 },
      { text: `${event.tasks} tasks x ${samples}`, rank: 4 },
      { text: duration(event.seconds), rank: 5 },
    ],
    width,
  );
}

/** The line below an evaluation's line: its metrics and rewards. No line if the score is the only one. */
export function measureLines(event: EvaluationEvent, width: number, run?: readonly ScoredEvaluation[]): string[] {
  if (!isScored(event)) return [];
  const measures = measuresOf(event, run).map(
    ([name, value], rank): Part => ({ text: `${name} ${significant(value)}`, rank }),
  );
  return measures.length === 0 ? [] : [`  ${shortened(measures, width - 2)}`];
}

export const bestLine = ({ by, score }: BestEvaluation): string =>
  `  the best so far (${by} ${significant(score)}): its checkpoint stays`;

export const stopText = ({ step, message }: EarlyStop): string => `ending after step ${step}: ${message}`;

/**
 * The first failure of a kind in full, with advice, so that a mistake in a team is visible at once.
 * @param isKnown Whether a warning has already shown its message and its place
 */
export function failureLines(
  { step, task, episode, reason, message, stack }: EpisodeFailed,
  width: number,
  isKnown = false,
): string[] {
  const which = `first failed episode: step ${step}, ${task}/${episode} (${reason})`;
  const what = isKnown
    ? [`${which}, as above`]
    : [...wrap(`${which}: ${message}`, width), ...(reason === 'error' ? (stack?.split('\n') ?? []) : [])];
  return [...what, ...wrap(`  ${remedyOfFailure(reason)}`, width)];
}

/** Shows the progress of a warm start that runs before other work. */
export function warmupLines(status: StatusLines, width: number): (event: Warmup) => void {
  let before = 0;
  return (event) => {
    status.progress(warmupLine(event, before, width), 'stays');
    before = event.step % event.steps;
  };
}

/** The events of a run so far. `remember` adds to it. */
export interface RunHistory {
  started: (RunStarted & Pick<RunEvent, 'time'>) | undefined;
  /** The warm start's events, unless an earlier command recorded them: they come from the cache. */
  readonly warmups: Warmup[];
  readonly steps: Step[];
  readonly evaluations: EvaluationEvent[];
  /** The evaluations of which an episode has a score. */
  readonly scores: ScoredEvaluation[];
  readonly spikes: Spike[];
  best: BestEvaluation | undefined;
  checkpoint: number | undefined;
  failedEpisodes: number;
  readonly failures: Record<string, number>;
}

export const emptyHistory = (): RunHistory => ({
  started: undefined,
  warmups: [],
  steps: [],
  evaluations: [],
  scores: [],
  spikes: [],
  best: undefined,
  checkpoint: undefined,
  failedEpisodes: 0,
  failures: {},
});

/** Adds an event to a history, and returns the history. A copy for each event would take longer with each step. */
export function remember(history: RunHistory, event: RunEvent): RunHistory {
  switch (event.type) {
    case 'run.started':
      history.started = event;
      break;
    case 'warmup': {
      const isFromCache = history.started !== undefined && event.time < history.started.time;
      if (!isFromCache) history.warmups.push(event);
      break;
    }
    case 'step':
      history.steps.push(event);
      break;
    case 'evaluation':
      history.evaluations.push(event);
      if (isScored(event)) history.scores.push(event);
      break;
    case 'spike':
    case 'skipped':
      history.spikes.push(event);
      break;
    case 'best':
      history.best = event;
      break;
    case 'checkpoint':
      history.checkpoint = event.step;
      break;
    case 'episode.failed':
      history.failedEpisodes++;
      history.failures[event.reason] = (history.failures[event.reason] ?? 0) + 1;
      break;
  }
  return history;
}

/** The reward of a step; in a step whose every reward failed there is none. */
const rewardText = ({ reward, success, episodes }: Step): string =>
  reward === undefined || (success === undefined && episodes !== undefined)
    ? 'no reward'
    : `reward ${fixed(reward.mean, 3)}`;
