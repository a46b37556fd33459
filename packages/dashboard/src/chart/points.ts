/** The points of a run's events. */
import { type AgentMeasure, type EventsByKind, valuesOf } from '../../../../src/runs/analysis.js';
import { type ChartPoint, pointsOf } from './chart-data.js';

export const measurePoints = (measure: AgentMeasure, agent: string, steps: EventsByKind['steps']): ChartPoint[] =>
  pointsOf(
    steps.map(({ step }) => step),
    valuesOf(measure, agent, steps),
  );

/** avg@k of evaluations, with its intervals. */
export const scorePoints = (scores: EventsByKind['scores']): ChartPoint[] =>
  scores.map(({ step, averageAtK, interval: { low, high } }) => ({ x: step, y: averageAtK, low, high }));
