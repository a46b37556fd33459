/** What `drmas plan` shows a person. */
import type { RunForecast } from '../../../studies/plan/run-forecast.js';
import { expectedLines } from '../spending-printer.js';
import { labelled } from '../start-printer.js';
import { byteText, duration, grouped, percent, significant, table, wrap } from '../text-layout.js';
import { tokensText } from './plan-printer.js';

export function forecastLines(report: RunForecast, width: number): string[] {
  const { machines, tokens, notes } = report;
  return [
    ...labelled(headRows(report), width),
    '',
    ...expectedLines(tokens.agents, tokens.cost, width),
    '',
    ...machines.flatMap((machine) => [...machineLines(machine, width), '']),
    ...wrap(
      'at once: episodes; a step: seconds played, learnt and brought back; ahead: with rollout.staleness=1; played in steps of at least as many episodes as are played at once',
      width,
    ),
    ...notes.flatMap((note) => wrap(note, width - 2).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))),
  ];
}

function headRows({ recipe, episodes, probe, tokens, memory, asItIs }: RunForecast): string[][] {
  const errors = probe.plays.map(({ seconds, simulated }) => Math.abs(simulated / seconds - 1));
  return [
    ['recipe', `${recipe}: ${grouped(episodes.training)} episodes, ${grouped(episodes.evaluation)} in evaluations`],
    [
      'probe',
      `${duration(probe.seconds)}: ${grouped(probe.episodes)} episodes in ${probe.plays.length} plays, which the simulation repeats within ${percent(Math.max(0, ...errors), 0)}`,
    ],
    ...(probe.warmStartSeconds > 0
      ? [['', `and the warm start, ${duration(probe.warmStartSeconds)}, which the run finds done`]]
      : []),
    ['tokens', tokensText(tokens.run)],
    ['memory', `${byteText(memory.measured)} so far, at its peak`],
    ...(memory.planned === undefined ? [] : [['', `${byteText(memory.planned)} with the longest answers`]]),
    ['the run', `about ${duration(asItIs.seconds)} here as it is, ${duration(asItIs.stepSeconds)} a step`],
  ];
}

function machineLines({ name, forecasts, fits }: RunForecast['machines'][number], width: number): string[] {
  const priced = forecasts.some(({ synchronous }) => synchronous.price !== undefined);
  const rows = forecasts.map(({ atOnce, synchronous, ahead }) => [
    grouped(atOnce),
    significant(synchronous.stepSeconds),
    duration(synchronous.seconds),
    duration(ahead.seconds),
    ...(priced ? [significant(Math.min(synchronous.price ?? 0, ahead.price ?? 0))] : []),
  ]);
  return [
    ...wrap(name, width),
    ...table([['at once', 'a step', 'the run', 'ahead', ...(priced ? ['price'] : [])], ...rows]),
    ...(fits === false ? wrap('Its memory is less than what the run takes.', width) : []),
  ];
}
