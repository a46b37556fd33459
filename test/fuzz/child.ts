/**
 * The process that takes inputs, so that another process can see a crash. Before each input it writes target and number
 * into a file. It sends the problem of an input as a message.
 */
import { openSync, writeSync } from 'node:fs';
import { stopwatch } from '../support/time-and-chance.js';
import { inputOf } from './mutate.js';
import { complaintAbout, MOST_MEMORY } from './target.js';
import { targets } from './targets/index.js';

/** Inputs of one target. */
export interface Job {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** The messages of the process: the fault of an input, or that a target has taken all of its inputs. */
export type Report =
  | { readonly name: string; readonly number: number; readonly complaint: string }
  | { readonly name: string; readonly seconds: number };

/** After this many failures of one target, its further inputs are skipped. */
const MOST_FAILURES = 5;

const [jobs = '[]', seed = '', marker = ''] = process.argv.slice(2);
const file = openSync(marker, 'r+');
const report = (message: Report) => process.send?.(message);
process.on('unhandledRejection', (reason) => {
  throw reason;
});

for (const { name, from, to } of JSON.parse(jobs) as Job[]) {
  const target = targets.find((each) => each.name === name);
  if (target === undefined) throw new Error(`no target ${name}`);
  const seconds = stopwatch();
  let failures = 0;
  for (let number = from; number < to && failures < MOST_FAILURES; number++) {
    writeSync(file, `${name} ${number} `.padEnd(60), 0);
    let complaint = await complaintAbout(target, inputOf(target, Number(seed), number));
    const memory = number % 100 === 0 ? process.memoryUsage.rss() : 0;
    if (memory > MOST_MEMORY) complaint ??= `left the process with ${memory} bytes`;
    if (complaint === undefined) continue;
    failures++;
    report({ name, number, complaint });
  }
  report({ name, seconds: seconds() });
}
process.disconnect?.();
