import type { RunEvent } from '@drmas/engine/events';
import { describe, expect, it } from 'vitest';
import { evaluation, run, stamped, step } from '../../../test/fixtures/run-events.js';
import { measurementsOf } from './measurements.js';

/** Every field of the events, as a name that a person may choose for a metric, a part, an agent or a level. */
const fieldsOf = (value: unknown): string[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, inner]) => [name, ...fieldsOf(inner)])
    : [];
const names = [
  ...new Set([...run.flatMap(fieldsOf), 'steps', 'level', 'split', 'version', 'constructor', '__proto__']),
];

const numbers = (value: number) => Object.fromEntries(names.map((name) => [name, value]));
const measured = (event: RunEvent) => new Map(measurementsOf(event).map(({ name, value }) => [name, value]));

describe('the measurements of an event', () => {
  it('have the metrics, parts, agents and levels of any name', () => {
    const { agents } = step(1);
    const ofStep = measured(
      stamped(
        step(1, {
          metrics: numbers(1),
          parts: numbers(2),
          agents: Object.fromEntries(names.map((name) => [name, agents.solver as never])),
          levels: Object.fromEntries(names.map((name) => [name, { tasks: 3, success: 0.5 }])),
        }),
      ),
    );
    const ofEvaluation = measured(stamped({ ...evaluation(1, 0.5), metrics: numbers(4), parts: numbers(5) }));
    for (const name of names) {
      expect(ofStep.get(`train/metrics/${name}`), name).toBe(1);
      expect(ofStep.get(`train/parts/${name}`), name).toBe(2);
      expect(ofStep.get(`train/levels/${name}/tasks`), name).toBe(3);
      expect(ofStep.get(`agents/${name}/turns`), name).toBe(agents.solver?.turns);
      expect(ofEvaluation.get(`evaluation/metrics/${name}`), name).toBe(4);
      expect(ofEvaluation.get(`evaluation/parts/${name}`), name).toBe(5);
    }
  });

  it('have no numbers that identify the event, and no level of an interval', () => {
    const all = run.flatMap((event) => [...measured(event).keys()]);
    expect(all.filter((name) => /^(train|evaluation|warmup\/\w+)\/(step|steps|version|policies)\b/.test(name))).toEqual(
      [],
    );
    expect(all.filter((name) => name.endsWith('/level'))).toEqual([]);
  });
});
