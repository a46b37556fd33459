/** Processor time by process: a measurement counts only when its process had the machine to itself. Linux only. */
import { readFileSync } from 'node:fs';

/** The kernel's clock tick in these files, on every Linux architecture. */
const TICKS_PER_SECOND = 100;
/** The most cores that other processes may keep busy during a clean measurement. */
const TOLERATED_CORES = 0.1;

export interface ProcessorTime {
  /** The seconds that all cores together were busy since the machine started; undefined if unknown. */
  readonly busy: number | undefined;
  /** The seconds of these that belong to the measured processes. */
  readonly measured: number;
  readonly wall: number;
}

/** The cores kept busy during a measurement. */
export interface Usage {
  readonly ownCores: number;
  readonly otherCores: number | undefined;
  /** The cores that other processes kept busy; undefined if unknown. */
  readonly clean: boolean | undefined;
}

/** Reads the processor time of this process and the given others. */
export function processorTime(pids: readonly number[] = []): ProcessorTime {
  const { user, system } = process.cpuUsage();
  const others = pids.reduce((sum, pid) => sum + secondsOf(pid), 0);
  return { busy: busySeconds(), measured: (user + system) / 1e6 + others, wall: performance.now() / 1e3 };
}

export function usageBetween(before: ProcessorTime, after: ProcessorTime): Usage {
  const wall = after.wall - before.wall;
  const measured = after.measured - before.measured;
  if (before.busy === undefined || after.busy === undefined)
    return { ownCores: measured / wall, otherCores: undefined, clean: undefined };
  // Only full ticks are counted, so that short intervals may seem to use a negative time.
  const otherCores = Math.max(0, (after.busy - before.busy - measured) / wall);
  return { ownCores: measured / wall, otherCores, clean: otherCores <= TOLERATED_CORES };
}

/** The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, in ticks of all cores. */
export function busyTicks(stat: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (stat.split('\n')[0] ?? '')
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return user + nice + system + irq + softirq + steal;
}

/** Fields 14 and 15 of /proc/<pid>/stat, all threads together; the name before them may hold anything. */
export function processTicks(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

function busySeconds(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  return busyTicks(readFileSync('/proc/stat', 'utf8')) / TICKS_PER_SECOND;
}

/** 0 for a process that has ended: its next repetition fails and says how it ended. */
function secondsOf(pid: number): number {
  const stat = fileOf(pid, 'stat');
  return stat === undefined ? 0 : processTicks(stat) / TICKS_PER_SECOND;
}

/** The most resident memory of a process so far, in bytes; undefined if it has ended, or if Linux does not say it. */
export function peakResidentBytes(pid: number): number | undefined {
  const kilobytes = /^VmHWM:\s*(\d+) kB$/m.exec(fileOf(pid, 'status') ?? '')?.[1];
  return kilobytes === undefined ? undefined : 1024 * Number(kilobytes);
}

/** A file of /proc about a process; undefined if the process has ended, and on other systems than Linux. */
function fileOf(pid: number, name: 'stat' | 'status'): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
