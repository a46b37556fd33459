/**
 * Rules for all tests: no episode stays open, properties take their random values from one seed, and numbers that have
 * the same bits are equal without a look at each.
 */

import { join } from 'node:path';
import { messageOf } from '@drmas/engine/errors';
import fc from 'fast-check';
import { afterAll, expect, inject } from 'vitest';
import { callsOfCaller } from '../../src/gateway/agents/attribution.js';

// Files share their modules. An episode that a file leaves open would be one that calls of later files may belong to.
afterAll(() => {
  try {
    callsOfCaller();
  } catch (error) {
    throw new Error(`a test of this file leaves an episode open: ${messageOf(error)}`);
  }
});

// Addresses that tests type are not remembered in the configuration of the person who runs them. The folder goes with
// the compiled workers at the end of the tests.
process.env.XDG_CONFIG_HOME ??= join(inject('compiledWorkers'), `config-${process.pid}`);

// One seed gives one run of the properties too, so a change that breaks none of them is not refused by chance.
// `DRMAS_TEST_SEED=7 npm test` tries others.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.DRMAS_TEST_SEED ?? 1) });

// "toEqual" looks at each number of an array by itself: seconds for a file of weights. Files share their workers, and a
// worker keeps its testers.
const FAST = Symbol.for('drmas.tests.sameBits');
const worker = globalThis as { [FAST]?: true };
if (!worker[FAST]) {
  worker[FAST] = true;
  expect.addEqualityTesters([
    (a: unknown, b: unknown) => {
      if (!ArrayBuffer.isView(a) || !ArrayBuffer.isView(b) || a.constructor !== b.constructor) return undefined;
      const [one, other] = [a, b].map((each) => Buffer.from(each.buffer, each.byteOffset, each.byteLength));
      return one?.equals(other as Buffer) || undefined; // if not, the usual comparison says where they differ
    },
  ]);
}
