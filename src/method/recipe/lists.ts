/** The lists that a recipe chooses from. `withPlugins` adds the plug-ins of a recipe. */

import type { BackendDeclaration } from '@drmas/engine/backends';
import type { samplerSchema } from '@drmas/engine/endpoints';
import type { TrackerDeclaration, TrackerPlugin } from '@drmas/engine/host';
import type { KnownLoss, LossDeclaration, lossSchema } from '@drmas/engine/loss';
import { z } from 'zod';
import type { EstimatorDeclaration } from '../advantage/define-estimator.js';
import type { estimatorSchema } from '../advantage/estimators/index.js';
import type { BackendSchema } from './backend-spec.js';

/** All types that recipes can name. The composition root makes the package's lists. */
export interface Lists {
  readonly estimators: readonly EstimatorDeclaration[];
  readonly losses: readonly LossDeclaration[];
  readonly backends: readonly BackendDeclaration[];
  readonly sampler: {
    readonly schema: typeof samplerSchema;
    readonly keyVariable: string;
  };
  readonly trackers: readonly TrackerDeclaration[];
  /** The losses that are no part of the engine, with their modules; `losses` has their declarations too. */
  readonly ownLosses: readonly KnownLoss[];
  /** The trackers of the recipe: drmas opens them for each run. */
  readonly ownTrackers: readonly TrackerPlugin[];
}

export interface Sections {
  readonly advantage: typeof estimatorSchema;
  readonly loss: typeof lossSchema;
  readonly backend: BackendSchema;
  readonly sampler: typeof samplerSchema;
}

const sectionsByLists = new WeakMap<Lists, Sections>();

/**
 * The schemas of the lists: unions by `type` with one member for each row. The types name only the standard rows,
 * because the compiler does not know the rows that a recipe adds. They are made once for each lists, because a new
 * schema compiles its checks anew.
 */
export function sectionsOf(lists: Lists): Sections {
  const sections = sectionsByLists.get(lists) ?? unionsOf(lists);
  sectionsByLists.set(lists, sections);
  return sections;
}

function unionsOf({ estimators, losses, backends, sampler }: Lists): Sections {
  const union = (rows: readonly { readonly schema: z.ZodType }[]) =>
    z.discriminatedUnion('type', rows.map(({ schema }) => schema) as [z.ZodObject]) as unknown;
  return {
    advantage: union(estimators) as Sections['advantage'],
    loss: union(losses) as Sections['loss'],
    backend: union(backends.filter(({ hidden }) => hidden !== true)) as Sections['backend'],
    sampler: sampler.schema,
  };
}

export function keyVariablesOf({ backends, sampler }: Pick<Lists, 'backends' | 'sampler'>): string[] {
  return [...backends.flatMap(({ keyVariable }) => keyVariable ?? []), sampler.keyVariable];
}

export function typeOf({ schema }: { readonly schema: z.ZodType }): string {
  const literal = (schema as z.ZodObject).shape.type;
  return literal instanceof z.ZodLiteral ? String([...literal.values][0]) : '';
}
