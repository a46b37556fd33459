import type { History } from './episode.js';
import type { EvaluationEvent } from './evaluation.js';
import type { AgentHealth, GroupKinds } from './play/health-signs.js';
import type { RunStarted } from './play/run-started.js';
import type { TokenCount } from './play/token-count.js';

export type { AgentEvaluation, EvaluationEvent, EvaluationScores, Interval, ScoredEvaluation } from './evaluation.js';
/**
 * The events of a run's log, one JSON object a line. Readers ignore types and fields that are new to them. The log is
 * the only record of a run: terminal, report and dashboard are derived from it.
 */
export const EVENT_VERSION = 1;
export type { AgentHealth, GroupKinds } from './play/health-signs.js';
export type { RunStarted } from './play/run-started.js';

/** The fields that the log adds to an event. */
export interface EventStamp {
  /** The wall-clock time in ISO 8601. */
  readonly time: string;
  readonly version: number;
}

/** A message while the models are opened, before `run.started`: kernels are compiled, a model is downloaded. */
export interface Preparing {
  readonly type: 'preparing';
  readonly message: string;
}

/** Progress of the warm start (supervised training on traces) of one policy. */
export interface Warmup {
  readonly type: 'warmup';
  readonly policy: string;
  readonly step: number;
  readonly steps: number;
  /** The mean training loss since the last event, over the tokens to learn. */
  readonly loss: number;
  /** The loss on held-out traces. Absent if the recipe holds none out. */
  readonly heldOutLoss?: number;
  /** Trained tokens since the last event. */
  readonly tokens: number;
  /** Time since the last event. */
  readonly seconds: number;
}

/**
 * Means over the tokens of an update. Each is absent if the loss lacks the term. A loss may add metrics of its own,
 * such as `clippingBias` (docs/losses.md): an agent's part of a step's event has these under their names too.
 */
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
}

/** One agent's measurements of a step. */
export interface AgentStep extends LossTerms {
  /** True for an agent that does not train: its norm and its loss are 0, its inflation is 1. */
  readonly frozen?: true;
  /** All of its turns, also in failed episodes; so are `invalid`, `responseTokens` and the other measures of texts. */
  readonly turns: number;
  /**
   * Of the turns that an update may learn from: `training.failedEpisodes` says which failed episodes are left out.
   * Absent, as `health` is, if no turn is left.
   */
  readonly rewardMean?: number;
  readonly rewardStd?: number;
  /** The number of these turns, if failed episodes are left out. Absent if it is `turns`. */
  readonly rewardedTurns?: number;
  /** The mean of each named part of the agent's reward, over such episodes. Absent if the reward has no named parts. */
  readonly parts?: Readonly<Record<string, number>>;
  /** The share of turns whose output was invalid. */
  readonly invalid: number;
  /** The sources of the assistant messages in the prompts, counted. Absent if no prompt has an assistant message. */
  readonly history?: History;
  /** The turns whose code asked for a setting that the recipe decides, by setting. Absent if there were none. */
  readonly ignored?: Readonly<Record<string, number>>;
  /**
   * The second moment of the agent's gradient under the statistics that all agents share, divided by its second moment
   * under the agent's own statistics (Dr. MAS, Lemma 4.2). 1 is no inflation.
   */
  readonly inflation: {
    /** Computed from the rewards alone. */
    readonly predicted: number;
    /** Measured with the gradients of at most 32 turns. */
    readonly measured?: number;
    /** Measured - predicted, the lemma's last term: positive if turns with larger gradients deviate more. */
    readonly covariance?: number;
    /**
     * The share of the agent's squared shared scores that its own rewards explain, from 0 to 1. Absent if there are too
     * few turns to estimate it.
     */
    readonly ownShare?: number;
    /** A sentence that explains these numbers. */
    readonly explanation?: string;
  };
  /** When the agent is called. Absent for an agent that does not train. */
  readonly calls?: {
    /** The share of the update's episodes in which it is called. */
    readonly share: number;
    /** The team's mean reward in those episodes. */
    readonly success: number;
    /** The team's mean reward in all of the update's episodes. */
    readonly overall: number;
    /** Of the tasks in which the agent acts, the share in which it acts once. Logs of older versions lack it. */
    readonly alone?: number;
  };
  /**
   * The agent's chains of calls: each call's prompt extends the previous prompt + response. Absent for an agent that
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
  readonly health?: AgentHealth;
  readonly maxAbsAdvantage: number;
  readonly gradientNorm: number;
  /**
   * The cosine between the agent's gradient and the gradient of the other agent on its policy, from -1 (opposite) to 1.
   * With more than two agents it is the mean over all pairs, weighted by the norms. Absent if the agent is alone on its
   * policy, or if a norm is not known.
   */
  readonly agreement?: number;
  readonly loss: number;
  /**
   * The policy's mean entropy in nats a token. As all metrics of the update, it is measured over the turns that the
   * update learns from, and identical turns count as often as they occur. It is absent if the step measured none.
   */
  readonly entropy?: number;
  /** The share of tokens (of turns or sequences, if these share a ratio) whose loss was clipped. */
  readonly clipFraction?: number;
  /** The mean of old log-prob - log-prob over the tokens of all mini-batches. */
  readonly kl?: number;
  /** The largest |importance ratio - 1|; exactly 0 on the first pass over on-policy samples. */
  readonly maxRatioDeviation?: number;
  /**
   * The mean |log-prob - sampled log-prob| before the step's first update, over its first mini-batch. It is 0 if the
   * sampler and the trainer agree exactly and the weights that played are the weights that learn.
   */
  readonly logprobGap?: number;
  /** The mean number of response tokens a turn. Absent if its endpoint reports none. */
  readonly responseTokens?: number;
  /**
   * The mean -log-prob of all sampled tokens, nats: an estimate of the policy's entropy in all turns, also in those
   * that teach nothing. Absent if the sampler gave no log-probs.
   */
  readonly sampledEntropy?: number;
  /** The share of turns that ended at `maxTokens` before a stop or the end of the context. Absent if none did. */
  readonly cut?: number;
  /** The share of the tool results that it reads which begin like an error. Absent if none does. */
  readonly toolErrors?: number;
  /** The tokens of all of its turns in the step, including turns of failed and greedy episodes. */
  readonly tokens?: TokenCount;
  /** The cost of these tokens. Absent if the agent's policy has no price. */
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
    /**
     * The share of the returns' variance that the values before the update explain: 1 is all of it. Absent if the
     * returns do not vary.
     */
    readonly explainedVariance?: number;
  };
}

/**
 * One step of reinforcement. The reward, its parts, success, levels, tokens, and the turns of agents with their texts
 * are measured over all played episodes; groups, rewards and health of agents over those that
 * `training.failedEpisodes` leaves; norms, losses and advantages over the episodes that the update used.
 */
export interface Step {
  readonly type: 'step';
  readonly step: number;
  readonly seconds: number;
  /** How long the run waited for each phase. Episodes that began during the update before have waited less. */
  readonly phaseSeconds: { readonly rollout: number; readonly advantage: number; readonly update: number };
  readonly tokens: { readonly sampled: number; readonly trained: number };
  /** The cost of the step. Absent if no policy has a price. */
  readonly cost?: number;
  /**
   * Of all played episodes as in evaluations: a failed one earns 0 minus the cost of its calls. Absent, as `success`
   * is, if the reward of each episode failed. Logs of earlier versions have 0 there.
   */
  readonly reward?: { readonly mean: number; readonly std: number };
  /** The played episodes, including those that the update did not use. */
  readonly episodes?: {
    readonly played: number;
    /** The number of failed episodes. */
    readonly failed: number;
    /** The rejected calls of these episodes by agent, such as prompts that do not fit. Absent if there were none. */
    readonly refused?: Readonly<Record<string, number>>;
    /** The calls by agent that `play` did not wait for. Absent if there were none. */
    readonly unanswered?: Readonly<Record<string, number>>;
  };
  /**
   * The mean success, 0 to 1, of all played episodes as evaluations count them: a failed episode has the success 0,
   * and an episode whose reward failed is left out. Absent if no episode is left.
   */
  readonly success?: number;
  /** The mean of each named part of the team's reward. Absent if the reward has no named parts. */
  readonly parts?: Readonly<Record<string, number>>;
  /** The mean of each metric of the team, over the episodes that have the metric. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly agents: Readonly<Record<string, AgentStep>>;
  readonly policies: Readonly<Record<string, PolicyStep>>;
  /** The groups by their outcomes, judged by the team's reward of the episodes that estimators compare. */
  readonly groups: GroupKinds;
  /**
   * The number of updates between the weights that played the step and the weights that learnt from it, at most
   * `rollout.staleness`. Absent if it is 0.
   */
  readonly staleness?: number;
  /**
   * The results by level of the tasks: by the field of `training.curriculum`, or by the source if sources are mixed.
   * `tasks` counts groups. `episodes` is there if the curriculum shares the episodes out, `predicted` if the curriculum
   * predicted the mean success.
   */
  readonly levels?: Readonly<
    Record<
      string,
      { readonly tasks: number; readonly episodes?: number; readonly success: number; readonly predicted?: number }
    >
  >;
  /** The counts of groups in DAPO's filter. Absent if the recipe has no filter. */
  readonly filter?: {
    readonly rounds: number;
    /** Groups played in all rounds. */
    readonly played: number;
    /** Groups played after the first round. */
    readonly refilled: number;
    /** Groups without a signal. */
    readonly dropped: number;
    /** Groups with a signal that the step did not need. */
    readonly surplus: number;
    /** Groups that the update used. */
    readonly kept: number;
  };
  /**
   * The episodes that serve as the baseline: greedy ones (ReMax), or episodes that were played again from one turn on.
   * `reward` is the mean over the episodes that did not fail, or failed because of an output; absent if there are none.
   */
  readonly baseline?: { readonly episodes: number; readonly reward?: number; readonly failed: number };
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

/** The best evaluation so far. Its checkpoint follows, and stays until a better one is on disk. */
export interface BestEvaluation {
  readonly type: 'best';
  readonly step: number;
  /** The name of the score, `training.bestBy`. */
  readonly by: 'averageAtK' | 'passAtK' | 'majorityAtK' | 'reward';
  readonly score: number;
}

/** A rule of `training.stopWhen` ends the run after this step. The last evaluation and checkpoint may follow. */
export interface EarlyStop {
  readonly type: 'stop';
  readonly step: number;
  readonly rule: 'score' | 'patience' | 'rewardFloor' | 'tokens' | 'cost' | 'minutes';
  readonly message: string;
}

/** A checkpoint of the run has been written. */
export interface CheckpointEvent {
  readonly type: 'checkpoint';
  readonly step: number;
  /** The checkpoint's directory, relative to the run directory. */
  readonly path: string;
}

/** An episode has failed, with the reason and the message. */
export interface EpisodeFailed {
  readonly type: 'episode.failed';
  readonly step: number;
  readonly task: string;
  readonly episode: number;
  readonly reason: string;
  readonly message: string;
  /** The agent whose call failed. Absent if no single agent is the cause. */
  readonly agent?: string;
  /** The place where the team's code threw, with file and line. Absent if it did not throw. */
  readonly stack?: string;
  readonly action: 'exclude' | 'zero';
}

/** Something that you should look at; the run continues. */
export interface Warning {
  readonly type: 'warning';
  readonly code: string;
  readonly message: string;
  /** The step that the warning is about. Absent if it is about the whole run. */
  readonly step?: number;
  /** The agent that the warning is about. Absent if it is about no single agent. */
  readonly agent?: string;
}

/** The run has ended: it is complete, was stopped, or failed. Only a resumed run goes on after it. */
export interface RunFinished {
  readonly type: 'run.finished';
  readonly reason: 'completed' | 'stopped' | 'failed';
  readonly steps: number;
  readonly seconds: number;
}

/** An event before the log stamps it with time and version. */
export type EventBody =
  | Preparing
  | RunStarted
  | Warmup
  | Step
  | EvaluationEvent
  | Spike
  | BestEvaluation
  | EarlyStop
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
