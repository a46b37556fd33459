/** The numbers in events, as trackers chart them: each with a name whose first part is its group, and a step. */

import { isObject } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';

export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly step: number;
}

/**
 * Fields of an event that are not measurements but identify it, or have a group of their own. Agents, parts of rewards,
 * metrics and levels may have any of these names.
 */
const PLACES = new Set(['type', 'time', 'version', 'step', 'steps', 'split', 'agents', 'policies']);

/**
 * The measurements of an event: `train/reward/mean`, `agents/solver/gradientNorm`, `policies/solver/learningRate`,
 * `evaluation/averageAtK`, `evaluation/agents/solver/reward`, `warmup/solver/loss`. Numbers that are not finite are
 * left out, as every chart would.
 */
export function measurementsOf(event: RunEvent): Measurement[] {
  const at = (step: number, group: string, value: object) =>
    [...leaves(group, value)].map((leaf) => ({ ...leaf, step }));
  const own = Object.fromEntries(Object.entries(event).filter(([field]) => !PLACES.has(field)));
  switch (event.type) {
    case 'step':
      return [
        ...at(event.step, 'train', own),
        ...at(event.step, 'agents', event.agents),
        ...at(event.step, 'policies', event.policies),
      ];
    case 'evaluation':
      return [...at(event.step, 'evaluation', own), ...at(event.step, 'evaluation/agents', event.agents)];
    case 'warmup':
      return at(event.step, `warmup/${event.policy}`, own);
    default:
      return [];
  }
}

/** The level of an interval is a setting. */
function* leaves(name: string, value: unknown): Generator<Omit<Measurement, 'step'>> {
  if (typeof value === 'number' && Number.isFinite(value)) yield { name, value };
  if (!isObject(value)) return;
  for (const [key, inner] of Object.entries(value))
    if (!(key === 'level' && name.endsWith('/interval'))) yield* leaves(`${name}/${key}`, inner);
}
