/**
 * `npm run simulate`: the whole loop in thousands of worlds, each with its own order of things: how long every call
 * takes, which episodes fail and how, where the process is killed, interrupted or runs out of disk. After each the laws
 * are checked (laws.ts). A world follows from the seed and its number.
 */
import { parseArgs } from 'node:util';
import { messageOf } from '@drmas/engine/errors';
import { runProgram, UsageError } from '../../scripts/support/run-program.js';
import { stopwatch } from '../support/time-and-chance.js';
import { VirtualTime } from './virtual-time.js';
import { judge, worldOf } from './world.js';

const USAGE = `usage: npm run simulate -- [options]

  --worlds N   how many (default 10000)
  --seed N     chooses others (default 1)
  --only N     the world of this number alone
`;

await runProgram(USAGE, async () => {
  const { values } = parseArgs({
    options: {
      worlds: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
      only: { type: 'string' },
    },
  });
  const [worlds, seed, only] = [values.worlds, values.seed, values.only].map((text) =>
    text === undefined ? undefined : Number(text),
  );
  for (const number of [worlds, seed, only])
    if (number !== undefined && !(Number.isInteger(number) && number >= 0))
      throw new UsageError('expected whole numbers');
  const numbers = only === undefined ? Array.from({ length: worlds ?? 0 }, (_, number) => number) : [only];
  const seconds = stopwatch();
  const time = new VirtualTime();
  let [broken, killed, interrupted, full] = [0, 0, 0, 0];
  for (const number of numbers) {
    const world = worldOf(seed ?? 1, number);
    if (only !== undefined) console.log(JSON.stringify(world, undefined, 2));
    for (const { fault } of world.disturbances)
      if (fault === undefined) interrupted++;
      else if (fault.kind === 'kill') killed++;
      else full++;
    try {
      await judge(world, time);
    } catch (error) {
      broken++;
      time.forget();
      console.log(`world ${number} of seed ${seed}: ${only === undefined ? messageOf(error) : (error as Error).stack}`);
      console.log(`  again: npm run simulate -- --seed ${seed} --only ${number}`);
    }
  }
  console.log(
    `${numbers.length} worlds with ${killed} kills, ${interrupted} interruptions, ${full} full disks in ${seconds().toFixed(1)} s: ` +
      `${numbers.length - broken} keep the laws, ${broken} do not`,
  );
  return broken === 0 ? 0 : 1;
});
