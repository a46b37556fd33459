/**
 * Loads a model and prints what that takes of memory: a JSON line with the bytes resident before, and the most that ever were.
 *
 * usage: node --import tsx test/support/load-memory.ts DIRECTORY
 */
import { readFileSync } from 'node:fs';
import { loadPolicy } from '../../src/training/load.js';

const resident = (what: 'VmRSS' | 'VmHWM') => {
  const [, kilobytes] = new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return 1024 * Number(kilobytes);
};

const before = resident('VmRSS');
const policy = await loadPolicy(process.argv[2] ?? '', { threads: 1 });
console.log(JSON.stringify({ before, most: resident('VmHWM') }));
await policy.dispose();
