/** The numbers in events, as trackers chart them: each with a name whose first part is its group, and a step. */

import { isObject } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';

export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly step: number;
}

/** Fields that are not measurements but identify an event. */
const PLACES = new Set(['type', 'time', 'version', 'step', 'steps', 'split', 'agents', 'policies', 'level']);

/**
 * The measurements of an event: `train/reward/mean`, `agents/solver/gradientNorm`, `policies/solver/learningRate`,
 * `evaluation/averageAtK`, `evaluation/agents/solver/reward`, `warmup/solver/loss`. Numbers that are not finite are
 * left out, as every chart would.
 */
export function measurementsOf(event: RunEvent): Measurement[] {
  const at = (step: number, group: string, value: unknown) =>
    [...leaves(group, value)].map((leaf) => ({ ...leaf, step }));
  switch (event.type) {
    case 'step':
      return [
        ...at(event.step, 'train', event),
        ...at(event.step, 'agents', event.agents),
        ...at(event.step, 'policies', event.policies),
      ];
    case 'evaluation':
      return [...at(event.step, 'evaluation', event), ...at(event.step, 'evaluation/agents', event.agents)];
    case 'warmup':
      return at(event.step, `warmup/${event.policy}`, event);
    default:
      return [];
  }
}

function* leaves(name: string, value: unknown): Generator<Omit<Measurement, 'step'>> {
  if (typeof value === 'number' && Number.isFinite(value)) yield { name, value };
  if (!isObject(value)) return;
  for (const [key, inner] of Object.entries(value)) if (!PLACES.has(key)) yield* leaves(`${name}/${key}`, inner);
}
