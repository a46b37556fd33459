/** The slices of an evaluation: its tasks divided by benchmark, difficulty, or any other field. */
import type { EpisodeGroup } from '../../../base/nouns.js';
import { fieldText, type TaskSet } from '../../../base/nouns.js';
import { BENCHMARK } from '../../../teams/tasks.js';
import type { OpenRun } from '../run/run-state.js';

/** The slice of the tasks that lack a field of other tasks. */
const WITHOUT = '(none)';

/** The fields by which a run's evaluations are divided. Several benchmarks are always divided. */
export function divisions({ evaluation }: Pick<OpenRun, 'evaluation'>, test: TaskSet): readonly string[] {
  const { by = [] } = evaluation;
  return test.parts === undefined || by.includes(BENCHMARK) ? by : [BENCHMARK, ...by];
}

/** Divides groups by the text of a field of their tasks, in numeric and alphabetical order. */
export function divided(groups: readonly EpisodeGroup[], field: string): ReadonlyMap<string, readonly EpisodeGroup[]> {
  const parts = new Map<string, EpisodeGroup[]>();
  for (const group of groups) {
    const name = fieldText(group.task, field) ?? WITHOUT;
    parts.set(name, [...(parts.get(name) ?? []), group]);
  }
  if (field === BENCHMARK) return parts; // in the recipe's order
  const byName = new Intl.Collator('en', { numeric: true }).compare;
  return new Map([...parts].sort(([a], [b]) => byName(a, b)));
}
