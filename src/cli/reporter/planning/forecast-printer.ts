/** The text of `drmas plan --measure`: the run with other numbers of concurrent episodes, on each machine. */
import type { MeasuredRun } from '../../../runs/studies.js';
import { labelled } from '../start-printer.js';
import { duration, grouped, percent, significant, table, wrap } from '../text-layout.js';

export function measuredLines(measured: MeasuredRun, width: number): string[] {
  const { machines, plays, seconds, episodes } = measured;
  const errors = plays.map((play) => Math.abs(play.simulated / play.seconds - 1));
  const text = `${grouped(episodes)} episodes in ${plays.length} plays, ${duration(seconds)}; the simulation is within ${percent(Math.max(0, ...errors), 0)} of each`;
  return [
    ...labelled([['measured', text]], width),
    '',
    ...machines.flatMap((machine) => [...machineLines(machine, width), '']),
    ...wrap(
      'at once: concurrent episodes, and at least as many in a step; a step: seconds to play, update and publish; ahead: with rollout.staleness=1',
      width,
    ),
  ];
}

function machineLines({ name, forecasts, fits }: MeasuredRun['machines'][number], width: number): string[] {
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
    ...(fits === false ? wrap('Its memory is less than the run needs.', width) : []),
  ];
}
