/** The stability watch: finds spikes of gradient norms and responds by the recipe's rule. */

import type { Spike, Step, Warning } from '@drmas/engine/events';
import { median } from '@drmas/engine/math';
import type { Episode } from '@drmas/engine/nouns';
import { magnitude } from '../../advantage/analysis/advantage-sizes.js';
import { episodeName, type StepAdvantages } from '../advantages/advantages.js';
import type { OpenRun } from '../run/run-state.js';
import type { Updates } from '../update/update-result.js';
import { Silence, type SilenceSettings } from './silence.js';
import { type SymptomState, Symptoms } from './symptoms.js';

/** The norms before the first spike, unless the window is shorter. */
const FEWEST_NORMS = 5;
/** A norm below this fraction of `clipNorm` is rounding: the gradient of groups whose advantages are all 0. */
const ROUNDING = 1e-6;
/** Number of steps in a row without a finite gradient that end the run. */
const MOST_DROPPED = 3;
const NAMED_EPISODES = 3;

export interface WatchState {
  /** Latest finite norms by policy or `policy/agent`, oldest first. */
  readonly norms: Readonly<Record<string, readonly number[]>>;
  /** The number of steps in a row with a gradient that was not a number, by policy. */
  readonly dropped: Readonly<Record<string, number>>;
  /** By agent. */
  readonly symptoms: Readonly<Record<string, SymptomState>>;
  readonly silent: Readonly<Record<string, number>>;
  readonly learnt?: boolean | undefined;
}

export interface WatchedRun extends SilenceSettings {
  readonly training: OpenRun['training'];
}

export class StabilityWatch {
  readonly #rule: OpenRun['training']['spike'];
  /** The norm below which no gradient is a spike, by policy. */
  readonly #floors: ReadonlyMap<string, number>;
  readonly #clipNorms: ReadonlyMap<string, number>;
  readonly #norms: Map<string, number[]>;
  readonly #dropped: Map<string, number>;
  readonly #symptoms: Symptoms;
  readonly silence: Silence;

  constructor(run: WatchedRun, state: Partial<WatchState> = {}) {
    const { training, trained } = run;
    const { norms = {}, dropped = {}, symptoms, silent, learnt } = state;
    this.#rule = training.spike;
    // If nearly all groups of an agent are equal, its usual norm is rounding, and each useful gradient is far above it.
    const floorOf = (clipNorm: number) => training.spike.floor * (clipNorm || 1);
    this.#floors = new Map(trained.map(({ name, settings }) => [name, floorOf(settings?.clipNorm ?? 0)]));
    this.#clipNorms = new Map(trained.map(({ name, settings }) => [name, settings?.clipNorm || 1]));
    this.#norms = new Map(Object.entries(norms).map(([key, norms]) => [key, [...norms]]));
    this.#dropped = new Map(Object.entries(dropped));
    this.#symptoms = new Symptoms(symptoms);
    this.silence = new Silence(run, silent, learnt);
  }

  get state(): WatchState {
    return {
      norms: Object.fromEntries(this.#norms),
      dropped: Object.fromEntries(this.#dropped),
      symptoms: this.#symptoms.state,
      silent: this.silence.state,
      learnt: this.silence.learnt,
    };
  }

  /** The norm above which an update of this policy is not made. Undefined if the rule allows it. */
  skipAboveNorm(policy: string): number | undefined {
    return this.#rule.action === 'clip' ? undefined : this.#threshold(policy, policy)?.limit;
  }

  /**
   * Judges a step: its norms, and the health of its agents. An agent that shares its policy is watched separately too.
   * `fatal` is the reason why the run must end: the rule is to stop, or a policy's gradient was not a number three
   * times in a row.
   * @param episodes The episodes of the step whose rewards count
   */
  judge(
    recorded: Pick<Step, 'step' | 'agents'>,
    advantages: StepAdvantages,
    updates: Updates,
    episodes: readonly Episode[] = [],
  ): { readonly events: readonly (Spike | Warning)[]; readonly fatal: string | undefined } {
    const { step } = recorded;
    const events: (Spike | Warning)[] = this.#symptoms.judge(recorded, episodes);
    let fatal: string | undefined;
    for (const [policy, update] of Object.entries(updates)) {
      const agents = Object.keys(update.agents);
      const only = agents.length === 1 ? agents[0] : undefined;
      const about = (agent: string | undefined) => ({ step, policy, ...(agent === undefined ? {} : { agent }) });
      if (update.outcome === 'dropped') {
        const inRow = (this.#dropped.get(policy) ?? 0) + 1;
        this.#dropped.set(policy, inRow);
        const median = this.#threshold(policy, policy)?.median ?? 0;
        const episodes = blame(advantages, agents);
        events.push({ type: 'skipped', ...about(only), gradientNorm: null, median, action: 'skip', episodes });
        if (inRow >= MOST_DROPPED)
          fatal = `the gradient of policy '${policy}' was not a number ${inRow} steps in a row`;
        continue;
      }
      this.#dropped.set(policy, 0);
      // A backend that updates without reporting the norm gives nothing to judge, nor does a policy that waits for its
      // critic.
      if (update.gradientNorm === undefined || agents.length === 0) continue;
      const spike = this.#spike(policy, policy, update.gradientNorm);
      if (spike !== undefined) {
        const { action } = this.#rule;
        const type = update.outcome === 'applied' ? 'spike' : 'skipped';
        events.push({ type, ...about(only), ...spike, action, episodes: blame(advantages, agents) });
        if (action === 'stop')
          fatal = `the gradient norm of policy '${policy}' is ${spike.gradientNorm.toPrecision(3)}, its median ${spike.median.toPrecision(3)}, and training.spike.action is stop`;
      }
      if (only !== undefined) continue;
      for (const [agent, { gradientNorm }] of Object.entries(update.agents)) {
        if (gradientNorm === undefined) continue;
        const ofAgent = this.#spike(policy, `${policy}/${agent}`, gradientNorm);
        if (ofAgent !== undefined)
          events.push({
            type: 'spike',
            ...about(agent),
            ...ofAgent,
            action: 'clip',
            episodes: blame(advantages, [agent]),
          });
      }
    }
    return { events, fatal };
  }

  /** Stores a norm. If it is a spike, returns it with the median of the earlier norms. */
  #spike(policy: string, key: string, gradientNorm: number): { gradientNorm: number; median: number } | undefined {
    const threshold = this.#threshold(policy, key);
    const norms = this.#norms.get(key) ?? [];
    this.#norms.set(key, [...norms, gradientNorm].slice(-this.#rule.window));
    return threshold !== undefined && gradientNorm > threshold.limit
      ? { gradientNorm, median: threshold.median }
      : undefined;
  }

  #threshold(policy: string, key: string): { median: number; limit: number } | undefined {
    const norms = this.#norms.get(key) ?? [];
    const { factor, floor, window } = this.#rule;
    if (norms.length < Math.min(FEWEST_NORMS, window)) return undefined;
    const middle = median(norms);
    const least = this.#floors.get(policy) ?? floor;
    // A policy that learned nothing in most of the latest steps has no usual norm.
    if (middle <= ROUNDING * (this.#clipNorms.get(policy) ?? 1)) return undefined;
    return { median: middle, limit: Math.max(factor * middle, least) };
  }
}

/** The episodes with the largest advantages among these agents' turns. */
function blame({ turns }: StepAdvantages, agents: readonly string[]): string[] {
  const largest = new Map<string, number>();
  for (const { episode, turn, advantage } of turns) {
    if (!agents.includes(turn.agent)) continue;
    const name = episodeName(episode);
    largest.set(name, Math.max(largest.get(name) ?? 0, magnitude(advantage)));
  }
  return [...largest]
    .sort((a, b) => b[1] - a[1])
    .slice(0, NAMED_EPISODES)
    .map(([name]) => name);
}
