import type { SampleBackend, Sampling } from '../contract/sampling.js';
import type { TextBackend } from '../contract/text-backend.js';
import type { Task } from '../core/task.js';
import type { Tokenizer } from '../core/tokenizer.js';
import type { Team } from '../teams/team.js';

/** An agent as a run resolved it: which policy speaks for it, and how. */
export interface AgentSettings {
  readonly policy: string;
  readonly sampling: Sampling;
  /** Subtracted from the reward of a turn whose output is invalid (>= 0). */
  readonly invalidPenalty: number;
  /** Its turns are not learnt from. */
  readonly frozen?: boolean;
}

/** What playing needs to know of an endpoint in a policy's place. */
export interface EndpointSettings {
  readonly endpoint: TextBackend;
}

/** What playing needs to know of a policy. */
export interface PolicySettings {
  readonly tokenizer: Tokenizer;
  /** Longest prompt + response in tokens. */
  readonly context: number;
}

/** Everything that stays the same while a run plays episodes. */
export interface RolloutContext {
  readonly sampler: SampleBackend;
  /** By agent name; one entry for every agent of the team. */
  readonly agents: Readonly<Record<string, AgentSettings>>;
  /** By the name that agents' settings have as their policy. */
  readonly policies: Readonly<Record<string, PolicySettings | EndpointSettings>>;
  /** Seed of sampling. */
  readonly seed: number;
  /** Calls of agents that one episode may make. */
  readonly maxTurns: number;
  /** How long one episode may take, its reward included. */
  readonly timeoutMs: number;
}

/** Phases draw from different random streams; `baseline` is a greedy episode that training is measured against. */
export type Phase = 'training' | 'evaluation' | 'baseline';

export interface EpisodeRequest<Data = unknown> {
  readonly team: Team<Data>;
  readonly task: Task<Data>;
  /** Position among the G episodes of the task. */
  readonly sample: number;
  readonly phase: Phase;
  readonly step: number;
  /** In place of what the agents' settings say. */
  readonly sampling?: Partial<Sampling> | undefined;
  /** Interrupts the run. */
  readonly signal?: AbortSignal | undefined;
}
