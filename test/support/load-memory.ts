/**
 * Loads a model, saves it, and prints what that takes of memory: a JSON line with the bytes resident before, and the
 * most that ever were once it was loaded and once it was saved.
 *
 * usage: node --import tsx test/support/load-memory.ts DIRECTORY COPY
 */
import { readFileSync } from 'node:fs';
import { loadPolicy } from '@drmas/engine/node';

const resident = (what: 'VmRSS' | 'VmHWM') => {
  const [, kilobytes] = new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return 1024 * Number(kilobytes);
};

const before = resident('VmRSS');
const policy = await loadPolicy(process.argv[2] ?? '', { threads: 1 });
const loaded = resident('VmHWM');
await policy.save(process.argv[3] ?? '');
console.log(JSON.stringify({ before, loaded, saved: resident('VmHWM') }));
await policy.dispose();
