import type { Step } from '@drmas/engine/events';
import type { EpisodeGroup } from '@drmas/engine/nouns';
import type { OpenRun } from '../run/run-state.js';
import type { ExtraRollouts } from '../run/signal.js';
import type { Levels } from './curriculum.js';

/**
 * Whether a run that resumes after this step equals the uninterrupted run: no rollout had begun before the step's
 * updates.
 */
export const goesOnAfter = ({ staleness, training }: Pick<OpenRun, 'staleness' | 'training'>, step: number): boolean =>
  staleness === 0 || step % training.checkpointEvery === 0;

export interface Played {
  readonly step: number;
  /** All groups, including failed episodes. */
  readonly all: readonly EpisodeGroup[];
  /** All groups after the rule about failed episodes. */
  readonly scored: readonly EpisodeGroup[];
  /** The groups that policies learn from: `scored` without those that the filter dropped. */
  readonly kept: readonly EpisodeGroup[];
  readonly extra: ExtraRollouts;
  readonly filter?: Step['filter'];
  readonly levels?: Levels;
  /** The number of updates since then of the policies that played. Undefined if no rollout begins ahead. */
  readonly staleness?: number;
  /** The seconds that the loop waited for the step. */
  readonly seconds: number;
}
