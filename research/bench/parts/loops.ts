/** Loops over tools: the time of a turn, trained and sampled, by how many turns a conversation has. */

import { normalizerOf } from '@drmas/engine/loss';
import { RandomStream } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { type Context, forShape, noteRows, noteSkipped, schedule } from '../context.js';
import { DrmasEngine, warmUp } from '../drmas-engine.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { DRMAS, type Row, rowsOf } from '../results.js';
import { type Shape, trainingFlops } from '../workload.js';

const PART = 'loops';
const TURNS = [1, 4, 16, 64] as const;
/** The conversations of a step. */
const LOOPS = 4;
/** The tokens of a turn: the text of a tool or a user, and the policy's reply. */
const TURN = { read: 24, written: 8 };
const CONTEXT = Math.max(...TURNS) * (TURN.read + TURN.written);
const SECONDS = 0.4;
/** The most operations of a repetition. Shapes that repeat each prefix soon need more; they are left out by name. */
const MOST_OPERATIONS = 1e12;
/** The seconds for all contestants of one shape and number of turns together. */
const BUDGET_SECONDS = 20;

const CHAINS = `${DRMAS}, trained as chains`;
const ROWS = `${DRMAS}, trained a row a turn`;
const SAMPLED = `${DRMAS}, sampled`;
const FORGETFUL = `${DRMAS}, sampled without a cache`;

/** The detail of a row: processor time, which other work on the machine does not change much. */
const PROCESSOR = 'processor ms a turn';

/** Measures on the smallest number of threads: the comparison is between numbers of turns. */
export async function benchLoops(context: Context): Promise<void> {
  for (const shape of context.options.shapes) await benchShape(forShape(context, PART, shape), shape);
}

async function benchShape(context: Context, shape: Shape): Promise<void> {
  const threads = Math.min(...context.options.threads);
  const engine = await DrmasEngine.start(shape, threads, CONTEXT);
  const all: Row[] = [];
  try {
    for (const turns of TURNS) {
      const name = `${shape.name}, ${turns} turn${turns === 1 ? '' : 's'}`;
      const loops = conversations(shape, turns);
      const [chains, rows] = [loops.map(chainOf), loops.flatMap(rowsOfTurns)];
      await warmUp('alone', () => train(engine, chains));
      const work: [string, () => Promise<unknown>][] = [
        [CHAINS, () => train(engine, chains)],
        [ROWS, () => train(engine, rows)],
        [SAMPLED, () => sample(engine, loops, turns, false)],
        [FORGETFUL, () => sample(engine, loops, turns, true)],
      ];
      const repeated = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
      const long = repeated * trainingFlops(shape, engine.parameters) > MOST_OPERATIONS;
      if (long) {
        const reason = 'prefixes that are computed again take too long';
        for (const what of [ROWS, FORGETFUL])
          context.results.skipped.push({ what: `${PART} ${name}: ${what}`, reason });
      }
      const measurable = work.filter(([what]) => !long || (what !== ROWS && what !== FORGETFUL));
      const contestants = measurable.map(([what, repeat]) => timed(what, threads, turns * LOOPS, repeat));
      const series = await interleave(contestants, schedule(context, `${PART} ${name}`, BUDGET_SECONDS));
      noteSkipped(context, PART, name, series);
      const measured = rowsOf(PART, name, series);
      all.push(...measured);
      noteRows(context, shape, measured);
      if (long) continue;
      note(context, name, [CHAINS, ROWS], measured);
      note(context, name, [SAMPLED, FORGETFUL], measured);
    }
    for (const contestant of new Set(all.map((row) => row.engine))) noteGrowth(context, shape, contestant, all);
  } finally {
    await engine.dispose();
  }
}

const timeOf = (rows: readonly Row[], engine: string) =>
  rows.find((row) => row.engine === engine)?.details[PROCESSOR] ?? Number.NaN;

/** Notes how much less time the first contestant takes than the second. */
function note({ results }: Context, shape: string, [one, other]: readonly [string, string], rows: readonly Row[]) {
  const value = timeOf(rows, other) / timeOf(rows, one);
  const clean = rows.every((row) => row.clean !== false);
  results.ratios.push({ part: PART, shape, what: `time: ${other} / ${one}`, value, clean });
}

/** Notes the time per turn of the longest loop over the time per turn of four turns: 1 if time is linear. */
function noteGrowth({ results }: Context, { name }: Shape, contestant: string, all: readonly Row[]) {
  const at = (turns: number) =>
    timeOf(
      all.filter((row) => row.shape === `${name}, ${turns} turns`),
      contestant,
    );
  const longest = TURNS.findLast((turns) => !Number.isNaN(at(turns))) ?? 4;
  const clean = all.every((row) => row.clean !== false);
  const what = `time of a turn, ${longest} turns / 4 turns: ${contestant}`;
  results.ratios.push({ part: PART, shape: name, what, value: at(longest) / at(4), clean });
}

function timed(name: string, threads: number, turns: number, work: () => Promise<unknown>): Contestant {
  return {
    name,
    threads,
    unit: 'turn',
    async repeat() {
      const started = performance.now();
      const before = process.cpuUsage();
      let amount = 0;
      let seconds = 0;
      while (seconds < SECONDS) {
        await work();
        amount += turns;
        seconds = (performance.now() - started) / 1e3;
      }
      const { user, system } = process.cpuUsage(before); // microseconds
      return { amount, seconds, details: { [PROCESSOR]: (user + system) / 1e3 / amount } };
    },
  };
}

/** One update on samples, without advantages that could make one of them be left out. */
function train(engine: DrmasEngine, samples: readonly TrainingSample[]): Promise<void> {
  const loss = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' } as const;
  return engine.update(samples, { loss, normalizer: normalizerOf(samples, loss, TURN.written) });
}

/**
 * Plays all loops together, turn by turn. Tools and users reply with the given texts.
 * @param forget Drops keys and values between the turns
 */
async function sample(engine: DrmasEngine, loops: readonly Int32Array[], turns: number, forget: boolean) {
  const length = TURN.read + TURN.written;
  const histories = loops.map((): number[] => []);
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, said] of loops.entries())
      histories[i]?.push(...said.subarray(turn * length, turn * length + TURN.read));
    const responses = await engine.sample(histories.map((prompt) => ({ prompt: [...prompt], length: TURN.written })));
    for (const [i, history] of histories.entries()) history.push(...(responses[i] as number[]));
    if (forget || turn + 1 === turns) await engine.publish();
  }
}

/** Random conversations that begin differently. */
function conversations({ vocabSize }: Shape, turns: number): Int32Array[] {
  const random = new RandomStream('bench loops', vocabSize, turns);
  return Array.from({ length: LOOPS }, () =>
    Int32Array.from({ length: turns * (TURN.read + TURN.written) }, () => random.integer(3, vocabSize - 1)),
  );
}

function chainOf(tokens: Int32Array): TrainingSample {
  const length = TURN.read + TURN.written;
  const starts = Array.from({ length: tokens.length / length }, (_, turn) => turn * length + TURN.read);
  const mask = Uint8Array.from(tokens, (_, t) => (t % length < TURN.read ? 0 : 1));
  return {
    tokens,
    mask,
    temperature: 1,
    policyVersion: 0,
    agent: 'bench',
    ...(starts.length === 1 ? {} : { spans: starts.map((start) => ({ start, end: start + TURN.written })) }),
    behaviourLogprobs: Float32Array.from(mask, (written) => -4 * written),
    advantages: Float32Array.from(mask, (written) => 0.1 * written),
  };
}

/** The same turns, each with all that was before it. */
function rowsOfTurns(tokens: Int32Array): TrainingSample[] {
  const { spans = [{ start: TURN.read, end: tokens.length }], mask, ...chain } = chainOf(tokens);
  return spans.map(({ start, end }) => ({
    ...chain,
    tokens: tokens.subarray(0, end),
    mask: Uint8Array.from(mask.subarray(0, end), (written, t) => (t < start ? 0 : written)),
    behaviourLogprobs: chain.behaviourLogprobs.subarray(0, end),
    advantages: chain.advantages.subarray(0, end),
  }));
}
