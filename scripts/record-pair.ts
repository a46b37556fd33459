/**
 * `npx tsx scripts/record-pair.ts runs/repair-ablation-TIME`: records the two runs of `npm start` for the home page of
 * the site, which replays them, and for the README, whose table is theirs.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { formerNames, usualNames, variants } from '../apps/site/src/page/address.js';
import { isFound, newRun, type RunView, runAfter, successes, trailingMeans } from '../apps/site/src/page/run-view.js';
import { type ShownEpisode, shownEpisode, triesIn } from '../apps/site/src/run/protocol.js';
import { RunDirectory, readEpisodes } from '../src/method/store.js';
import { root } from './docs/pages.js';
import { runProgram, UsageError } from './support/run-program.js';

export const RECORDED_PAIR = 'docs/recorded-pair.json';

/** One run, as the home page replays it. */
interface RecordedRun {
  readonly name: string;
  /** For each step the mean success of it and of up to nine steps before it. */
  readonly success: readonly number[];
  /** For each step a mark for each name: `1` if the fixer has found it. */
  readonly found: readonly string[];
  /** The fixer's turn in an episode of every tenth step. */
  readonly turns: readonly {
    readonly step: number;
    readonly passed: boolean;
    readonly turn: ShownEpisode['turns'][0];
  }[];
}

export interface RecordedPair {
  readonly command: string;
  /** Held-out success of each run, by step. */
  readonly held: readonly { readonly step: number; readonly scores: readonly number[] }[];
  /** The former and the new names of the twelve commands. */
  readonly names: readonly (readonly [former: string, name: string])[];
  readonly runs: readonly RecordedRun[];
}

/** Steps between two recorded turns. */
const TURN_STEPS = 10;

/** The table that the README shows. */
export function heldOutTable({ held }: RecordedPair): string {
  const rows = held.map(({ step, scores }) => [
    `step ${step}`,
    ...scores.map((score) => `${(100 * score).toFixed(1)} %`),
  ]);
  return [['held out', ...variants.map(({ estimator }) => estimator)], ...rows]
    .map(([first = '', ...cells]) => first.padEnd(8) + cells.map((cell) => cell.padStart(9)).join(''))
    .join('\n');
}

async function recorded(path: string, name: string): Promise<{ run: RecordedRun; events: readonly RunEvent[] }> {
  const directory = await RunDirectory.open(path);
  const events = await directory.events();
  let view: RunView = newRun;
  const found: string[] = [];
  const turns: RecordedRun['turns'][number][] = [];
  for (const event of events) {
    if (event.type !== 'step') continue;
    view = runAfter(view, { type: 'event', event });
    const episodes = await readEpisodes(nodeFiles, directory.stepEpisodesPath(event.step));
    view = runAfter(view, { type: 'tries', tries: triesIn(episodes) });
    found.push(formerNames.map((former) => (isFound(view.names[former]) ? '1' : '0')).join(''));
    const repaired = episodes.find((episode) => triesIn([episode]).length > 0);
    if (repaired === undefined || event.step % TURN_STEPS !== 0) continue;
    const { reward, turns: shown } = shownEpisode(
      repaired,
      repaired.turns.map(({ advantage }) => advantage ?? 0),
    );
    const [, turn] = shown;
    if (turn === undefined) continue;
    const advantage = Number((turn.advantage ?? 0).toFixed(4));
    turns.push({ step: event.step, passed: reward > 0, turn: { ...turn, advantage } });
  }
  const success = trailingMeans(successes(view)).map((value) => Number(value.toFixed(4)));
  return { run: { name, success, found, turns }, events };
}

async function main(): Promise<number> {
  const folder = process.argv[2];
  if (folder === undefined) throw new UsageError('expected the directory of an ended `npm start`');
  const both = [];
  for (const { name, estimator } of variants) both.push(await recorded(join(folder, `${estimator}-seed-1`), name));
  const scores = both.map(
    ({ events }) =>
      new Map(events.flatMap((event) => (event.type === 'evaluation' ? [[event.step, event.averageAtK]] : []))),
  );
  const pair: RecordedPair = {
    command: 'npm start',
    held: [...(scores[0]?.keys() ?? [])].map((step) => ({
      step,
      scores: scores.map((of) => of.get(step) ?? Number.NaN),
    })),
    names: formerNames.map((former, i) => [former, usualNames[i] ?? '']),
    runs: both.map(({ run }) => run),
  };
  writeFileSync(join(root, RECORDED_PAIR), `${JSON.stringify(pair)}\n`);
  console.log(heldOutTable(pair));
  return 0;
}

if (process.argv[1] === import.meta.filename) await runProgram('npx tsx scripts/record-pair.ts RUNS\n', main);
