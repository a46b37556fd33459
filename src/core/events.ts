/**
 * The event log's vocabulary. One JSON object a line; readers ignore types and fields they do not know.
 * The log is the truth about a run: terminal, report and dashboard are derived from it.
 */
import type { LossTerms } from './loss-terms.js';

export const EVENT_VERSION = 1;

interface Base {
  /** ISO 8601. */
  readonly time: string;
  readonly version: number;
}

export interface RunStarted {
  readonly type: 'run.started';
  readonly recipe: string;
  readonly seed: number;
  readonly versions: { readonly drmas: string; readonly node: string };
  readonly hardware: {
    readonly cores: number;
    readonly kernels: string;
    readonly isa: string;
  };
  /** What was found out about the server that holds the models, where one does. */
  readonly server?: Readonly<Record<string, unknown>>;
  /** Trainable numbers of each policy. */
  readonly parameters?: Readonly<Record<string, number>>;
}

export interface Warmup {
  readonly type: 'warmup';
  readonly policy: string;
  readonly step: number;
  readonly steps: number;
  /** Mean of the training loss since the last event. */
  readonly loss: number;
  /** Loss on traces of tasks that are never trained on, where it was measured. */
  readonly heldOutLoss?: number;
  /** Since the last event, as `seconds`. */
  readonly tokens: number;
  readonly seconds: number;
}

export interface AgentStep extends LossTerms {
  /** It does not train: what is measured of learning is 0, its inflation 1. */
  readonly frozen?: true;
  readonly turns: number;
  readonly rewardMean: number;
  readonly rewardStd: number;
  /** Share of turns whose output was invalid. */
  readonly invalid: number;
  readonly inflation: { readonly predicted: number; readonly measured?: number };
  readonly health: AgentHealth;
  readonly maxAbsAdvantage: number;
  readonly gradientNorm: number;
  readonly loss: number;
  readonly entropy: number;
  readonly clipFraction: number;
  readonly kl: number;
  /** Largest |ratio - 1|; exactly 0 on the first pass over on-policy samples. */
  readonly maxRatioDeviation: number;
  /** Mean |log-prob - sampled log-prob| before the step's first update: 0 where sampler and trainer compute the same. */
  readonly logprobGap?: number;
  /** Mean response tokens a turn. */
  readonly responseTokens: number;
}

/** Groups by what their outcomes were. */
export interface GroupKinds {
  readonly allRight: number;
  readonly allWrong: number;
  readonly mixed: number;
  /** Of those with equal outcomes: groups whose rewards differ by penalties alone. */
  readonly penaltyOnly: number;
}

/** Beside rewards and norms: whether an agent still has something to learn from, and what it is paid for. */
export interface AgentHealth {
  /** Standard deviation of its rewards within a group, averaged over groups. */
  readonly groupSpread: number;
  /** Share of turns that a sibling (same task, same call) answered in the very same words. */
  readonly duplicates: number;
  /** Share of its invalid turns that got a positive advantage. */
  readonly rewardedInvalid: number;
  /** Its groups, judged by its own reward. */
  readonly groups: GroupKinds;
}

export interface PolicyStep {
  readonly gradientNorm: number;
  readonly learningRate: number;
  /** KL to what the policy is held near, over its turns, and the coefficient of this step; absent without one. */
  readonly referenceKl?: number;
  readonly klCoefficient?: number;
  /** The update of the policy's critic; absent without one. */
  readonly critic?: {
    readonly loss: number;
    /** Share of tokens whose value was stopped at the clip. */
    readonly clipFraction: number;
    /** Before clipping. */
    readonly gradientNorm: number;
    readonly learningRate: number;
    /** Of the returns, by the values before the update: 1 is all of it. */
    readonly explainedVariance: number;
  };
}

/** Rewards, groups and agents are those of everything that was played; norms, losses and advantages of what was learnt from. */
export interface Step {
  readonly type: 'step';
  readonly step: number;
  readonly seconds: number;
  readonly phaseSeconds: { readonly rollout: number; readonly advantage: number; readonly update: number };
  readonly tokens: { readonly sampled: number; readonly trained: number };
  readonly reward: { readonly mean: number; readonly std: number };
  readonly agents: Readonly<Record<string, AgentStep>>;
  readonly policies: Readonly<Record<string, PolicyStep>>;
  /** Judged by the team's reward. */
  readonly groups: GroupKinds;
  /** What the filter did, where the recipe has one. */
  readonly filter?: {
    readonly rounds: number;
    /** Groups: played in all rounds, those of them after the first round, without a signal, beyond what the step needed, learnt from. */
    readonly played: number;
    readonly refilled: number;
    readonly dropped: number;
    readonly surplus: number;
    readonly kept: number;
  };
  /** The greedy episodes that the step was measured against, where the estimator wants them. */
  readonly baseline?: { readonly episodes: number; readonly reward: number; readonly failed: number };
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface AgentEvaluation {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly invalid: number;
  readonly responseTokens: number;
  /** Mean over tasks of the agent's own reward, the team's where it has none of its own, and its interval. */
  readonly reward?: number;
  readonly rewardInterval?: Interval;
}

/** Scores of k samples a task, means over tasks. Intervals are bootstrap intervals over tasks. */
export interface EvaluationScores {
  readonly tasks: number;
  readonly averageAtK: number;
  readonly passAtK: number;
  readonly majorityAtK: number;
  /** Of averageAtK. */
  readonly interval: Interval & { readonly level: number };
  /** Of passAtK and majorityAtK, with the same level. */
  readonly passInterval?: Interval;
  readonly majorityInterval?: Interval;
  /** pass@k for k = 1, 2, 4 ... up to the samples, each without bias from all samples. */
  readonly passAt?: Readonly<Record<string, number>>;
}

export interface EvaluationEvent extends EvaluationScores {
  readonly type: 'evaluation';
  readonly step: number;
  readonly split: 'train' | 'test';
  readonly samples: number;
  readonly agents: Readonly<Record<string, AgentEvaluation>>;
  /** The same scores of the tasks with each value of a field: by benchmark where there are several, and as `evaluation.by` says. */
  readonly slices?: Readonly<Record<string, Readonly<Record<string, EvaluationScores>>>>;
  readonly seconds: number;
}

export interface Spike {
  readonly type: 'spike' | 'skipped';
  readonly step: number;
  readonly policy: string;
  readonly agent?: string;
  /** `null` stands for a norm that is not a finite number. */
  readonly gradientNorm: number | null;
  readonly median: number;
  readonly action: 'clip' | 'skip' | 'stop';
  /** `task/sample` of the episodes with the largest advantages in that update. */
  readonly episodes: readonly string[];
}

export interface CheckpointEvent {
  readonly type: 'checkpoint';
  readonly step: number;
  /** Relative to the run directory. */
  readonly path: string;
}

export interface EpisodeFailed {
  readonly type: 'episode.failed';
  readonly step: number;
  readonly task: string;
  readonly episode: number;
  readonly reason: string;
  readonly message: string;
  readonly action: 'exclude' | 'zero';
}

export interface Warning {
  readonly type: 'warning';
  readonly code: string;
  readonly message: string;
  /** Where it is about a step of training, and an agent in it. */
  readonly step?: number;
  readonly agent?: string;
}

export interface RunFinished {
  readonly type: 'run.finished';
  readonly reason: 'completed' | 'stopped' | 'failed';
  readonly steps: number;
  readonly seconds: number;
}

/** An event before the log stamps it. */
export type EventBody =
  | RunStarted
  | Warmup
  | Step
  | EvaluationEvent
  | Spike
  | CheckpointEvent
  | EpisodeFailed
  | Warning
  | RunFinished;

export type RunEvent = EventBody & Base;

/** Receives every event in order: the log, the terminal, other sinks. */
export interface MetricSink {
  write(event: RunEvent): void;
}
