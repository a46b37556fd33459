import type { History } from './episode.js';
import type { EvaluationEvent } from './evaluation/evaluation-event.js';
import type { AgentHealth, GroupKinds } from './play/health-signs.js';
import type { RunStarted } from './play/run-started.js';
import type { TokenCount } from './play/token-count.js';

export type { AgentEvaluation, EvaluationEvent, EvaluationScores, Interval } from './evaluation/evaluation-event.js';
/**
 * The events of a run's log, one JSON object a line. Readers ignore types and fields that are new to them. The log is
 * the only record of a run: terminal, report and dashboard are derived from it.
 */
export const EVENT_VERSION = 1;
export type { AgentHealth, GroupKinds } from './play/health-signs.js';
export type { RunStarted } from './play/run-started.js';

/** What the log adds to an event. */
export interface EventStamp {
  /** The wall-clock time in ISO 8601. */
  readonly time: string;
  readonly version: number;
}

/** Progress of the warm start (supervised training on traces) of one policy. */
export interface Warmup {
  readonly type: 'warmup';
  readonly policy: string;
  readonly step: number;
  readonly steps: number;
  /** The mean training loss since the last event. */
  readonly loss: number;
  /** The loss on traces of tasks that are never trained on, where it was measured. */
  readonly heldOutLoss?: number;
  /** Trained tokens since the last event. */
  readonly tokens: number;
  /** Time since the last event. */
  readonly seconds: number;
}

/** Means over the tokens of an update. Each is absent where the loss lacks the term. */
export interface LossTerms {
  /**
   * The KL penalty to the reference policy, without its coefficient. In a step's event it is measured before the update
   * and averaged over turns.
   */
  readonly referenceKl?: number;
  /** The weight of importance correction. */
  readonly importanceWeight?: number;
  /** The share of tokens whose importance ratio exceeds the cap. */
  readonly importanceBeyond?: number;
  /** The |ratio x advantage| that clipping removed, where the loss is divided by 1 + this (ST-PPO). */
  readonly clippingBias?: number;
  /** What log ratios were measured from, where the loss measures them from the KL of the policy from the old one. */
  readonly klBaseline?: number;
}

/** One agent's measurements of a step. */
export interface AgentStep extends LossTerms {
  /** True for an agent that does not train: its measurements of learning are 0, its inflation is 1. */
  readonly frozen?: true;
  readonly turns: number;
  readonly rewardMean: number;
  readonly rewardStd: number;
  /** The means of the named parts of the agent's reward, where it has any. */
  readonly parts?: Readonly<Record<string, number>>;
  /** The share of turns whose output was invalid. */
  readonly invalid: number;
  /** Where the assistant's messages in the turns' prompts came from, counted; absent where no prompt has any. */
  readonly history?: History;
  /**
   * The turns whose program asked for settings that the recipe decides, counted by the settings' names, such as
   * `temperature`; absent where none did.
   */
  readonly ignored?: Readonly<Record<string, number>>;
  /**
   * The second moment of the agent's gradient under the statistics that all agents share, relative to the one under
   * its own (Dr. MAS, Lemma 4.2): 1 is no inflation.
   */
  readonly inflation: {
    /** From rewards alone. */
    readonly predicted: number;
    /** With the gradient of each turn, of up to 32 turns. */
    readonly measured?: number;
    /** Measured - predicted, the lemma's last term: turns with larger gradients are also further from the mean. */
    readonly covariance?: number;
    /**
     * How much of the agent's squared scores under those statistics follows its own rewards, from 0 to 1; absent with
     * too few turns to say.
     */
    readonly ownShare?: number;
    /** What it means, in a sentence. */
    readonly explanation?: string;
  };
  /** When the agent is called; absent for one that does not train. */
  readonly calls?: {
    /** The share of the update's episodes in which it is called. */
    readonly share: number;
    /** The mean reward of the team in those. */
    readonly success: number;
    /** The same over all of the update's episodes. */
    readonly overall: number;
    /** Of the tasks in which it acts, the share in which it acts once; logs of older versions do not have it. */
    readonly alone?: number;
  };
  /**
   * The agent's calls as chains, in which each call goes on exactly where the one before it ended; absent for one that
   * does not train.
   */
  readonly chains?: {
    /** The mean number of chains in an episode in which the agent is called. */
    readonly perEpisode: number;
    /** The mean number of turns in a chain. */
    readonly turns: number;
    /** The most turns in a chain. */
    readonly longest: number;
  };
  readonly health: AgentHealth;
  readonly maxAbsAdvantage: number;
  readonly gradientNorm: number;
  /**
   * The cosine between its gradient and that of the agent with which it shares its policy, from -1 (they pull against
   * each other) to 1; of more than two agents the mean over all pairs, weighted by the norms. Absent for an agent alone
   * on its policy, and where a norm is not known.
   */
  readonly agreement?: number;
  readonly loss: number;
  readonly entropy: number;
  readonly clipFraction: number;
  readonly kl: number;
  /** The largest |importance ratio - 1|; exactly 0 on the first pass over on-policy samples. */
  readonly maxRatioDeviation: number;
  /**
   * The mean |log-prob - sampled log-prob| before the step's first update: 0 where sampler and trainer agree exactly,
   * and the weights that played are those that learn.
   */
  readonly logprobGap?: number;
  /** The mean number of response tokens a turn. */
  readonly responseTokens: number;
  /** The tokens of all of its turns in the step, those of failed and greedy episodes among them. */
  readonly tokens?: TokenCount;
  /** What they cost, where its policy has a price. */
  readonly cost?: number;
}

/** One policy's measurements of a step. */
export interface PolicyStep {
  readonly gradientNorm: number;
  readonly learningRate: number;
  /** The KL divergence from the reference policy, over the policy's turns; absent without a KL term. */
  readonly referenceKl?: number;
  /** The coefficient of the KL term in this step; absent without one. */
  readonly klCoefficient?: number;
  /** The update of the policy's critic; absent without one. */
  readonly critic?: {
    readonly loss: number;
    /** The share of tokens whose value was clipped. */
    readonly clipFraction: number;
    /** The norm before clipping. */
    readonly gradientNorm: number;
    readonly learningRate: number;
    /** The share of the returns' variance that the values before the update explain: 1 is all of it. */
    readonly explainedVariance: number;
  };
}

/**
 * One step of reinforcement. Rewards, groups and agents are measured over all played episodes; norms, losses and
 * advantages over the episodes that the update used.
 */
export interface Step {
  readonly type: 'step';
  readonly step: number;
  readonly seconds: number;
  readonly phaseSeconds: { readonly rollout: number; readonly advantage: number; readonly update: number };
  readonly tokens: { readonly sampled: number; readonly trained: number };
  /** What the step cost, where a policy has a price. */
  readonly cost?: number;
  readonly reward: { readonly mean: number; readonly std: number };
  /** Episodes that were played, those left out of the update among them. */
  readonly episodes?: {
    readonly played: number;
    /** How many of them failed. */
    readonly failed: number;
    /** The calls that were rejected in them, as prompts that do not fit are, by agent; absent where none were. */
    readonly refused?: Readonly<Record<string, number>>;
  };
  /** The mean success of the episodes, 0 to 1. */
  readonly success?: number;
  /** The means of the named parts of the team's reward, where it has any. */
  readonly parts?: Readonly<Record<string, number>>;
  /** The means of what the team measures besides its reward, each over the episodes that have it. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly agents: Readonly<Record<string, AgentStep>>;
  readonly policies: Readonly<Record<string, PolicyStep>>;
  /** The groups by their outcomes, judged by the team's reward. */
  readonly groups: GroupKinds;
  /**
   * The updates between the weights that played the step and those that learnt from it, at most `rollout.staleness`;
   * absent where that is 0.
   */
  readonly staleness?: number;
  /**
   * How each level of the tasks went, by the field of `training.curriculum`, or by the source where sources are mixed:
   * the groups, their episodes where the curriculum shares those out, their mean success, and what was predicted
   * before, where something was.
   */
  readonly levels?: Readonly<
    Record<
      string,
      { readonly tasks: number; readonly episodes?: number; readonly success: number; readonly predicted?: number }
    >
  >;
  /** The counts of groups in DAPO's filter, where the recipe has one. */
  readonly filter?: {
    readonly rounds: number;
    /** Groups played in all rounds. */
    readonly played: number;
    /** Groups played after the first round. */
    readonly refilled: number;
    /** Groups without a signal. */
    readonly dropped: number;
    /** Groups with a signal beyond what the step needed. */
    readonly surplus: number;
    /** Groups that the update used. */
    readonly kept: number;
  };
  /** The episodes that serve as the baseline: greedy ones (ReMax), or other ends of those that are learnt from. */
  readonly baseline?: { readonly episodes: number; readonly reward: number; readonly failed: number };
}

/** A gradient norm far above the recent median, or an update that was skipped for it. */
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
  /** The checkpoint's directory, relative to the run directory. */
  readonly path: string;
}

export interface EpisodeFailed {
  readonly type: 'episode.failed';
  readonly step: number;
  readonly task: string;
  readonly episode: number;
  readonly reason: string;
  readonly message: string;
  /** Where the team's code threw, with file and line; absent where it did not. */
  readonly stack?: string;
  readonly action: 'exclude' | 'zero';
}

export interface Warning {
  readonly type: 'warning';
  readonly code: string;
  readonly message: string;
  /** The step that the warning is about; absent where it is about the whole run. */
  readonly step?: number;
  /** The agent that the warning is about, where it is about one. */
  readonly agent?: string;
}

export interface RunFinished {
  readonly type: 'run.finished';
  readonly reason: 'completed' | 'stopped' | 'failed';
  readonly steps: number;
  readonly seconds: number;
}

/** An event before the log stamps it with time and version. */
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

/** One line of a run's event log. */
export type RunEvent = EventBody & EventStamp;

/** A receiver of every event in order: the log, the terminal, a user's sink. */
export interface MetricSink {
  write(event: RunEvent): void;
}
