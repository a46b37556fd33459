/** Verifies a run: compares each file that has a digest with its digest. */
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { ChainedFile, damageOf, SEAL, sealState } from '@drmas/engine/disk';
import { messageOf } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import { commandText, nodeFiles, TEMPORARY } from '@drmas/engine/platform';
import { Checkpoints } from './checkpoint-files.js';
import { type DigestLine, readDigests } from './episode-files.js';
import { readEvents } from './event-log.js';
import { isAlive, lockHolder } from './run-lock.js';
import { CHECKPOINTS, DIGESTS, EPISODES, EVENTS, RECIPE, REFERENCES } from './run-path.js';
import { isAsWritten, parseRecord } from './run-record.js';

/** One part of a run. `unchecked`: it can be read, but there is no digest to compare it with. */
export interface Verified {
  /** The path in the run's directory. */
  readonly path: string;
  readonly state: 'whole' | 'unchecked' | 'damaged';
  /** The damage, or the reason why the part could not be checked. */
  readonly why?: string;
}

const OLDER = 'written by a version without digests';
const LEFT = 'was not written to its end; no command reads it, and resume removes it';

/** Checks each part of a run and changes nothing. A run that is being written may have incomplete parts. */
export async function verifyRun(run: string, files: Files = nodeFiles): Promise<readonly Verified[]> {
  const records = await recordStates(run, files);
  const older = records.some(({ path, why }) => path === RECIPE && why === OLDER);
  return [
    ...records,
    ...(await checkpointStates(files, run)),
    ...(await referenceStates(files, run, older)),
    ...(await leftoverStates(files, run)),
  ];
}

/**
 * One line about the records of a run (recipe, events, episodes) that differ from their digests. Undefined if none
 * differs, or if a process is writing the run: its files change while they are read. Weights are not compared.
 */
export async function changedRecords(run: string, files: Files = nodeFiles): Promise<string | undefined> {
  const changed = (await recordStates(run, files)).filter(({ state }) => state === 'damaged');
  const [first] = changed;
  if (first === undefined || (await isBeingWritten(run, files))) return undefined;
  const more = changed.length === 1 ? '' : ` and ${changed.length - 1} more`;
  const command = commandText(['npx', 'drmas', 'doctor', 'verify', run]);
  return `files of ${run} differ from what was written: ${first.path}${more} (${first.why}); ${command} lists them`;
}

/** Whether the last writer of an unfinished run, on this machine, is another process that lives. */
async function isBeingWritten(run: string, files: Files): Promise<boolean> {
  const holder = await lockHolder(files, run);
  if (holder === undefined || holder.host !== hostname() || holder.pid === process.pid) return false;
  const events = await readEvents(files, join(run, EVENTS)).catch(() => []);
  return events.at(-1)?.type !== 'run.finished' && isAlive(holder.pid);
}

async function recordStates(run: string, files: Files): Promise<readonly Verified[]> {
  const digests = await digestsOf(files, run);
  return [
    await part(RECIPE, () => recipeState(files, run)),
    await part(EVENTS, () =>
      eventsState(
        files,
        run,
        digests.lines.findLast(({ file }) => file === EVENTS),
      ),
    ),
    digests.state,
    ...(await episodeStates(files, run, digests.lines)),
  ];
}

type State = Omit<Verified, 'path'>;
const WHOLE: State = { state: 'whole' };
const damaged = (why: string): State => ({ state: 'damaged', why });

/** The state of a part. A part that cannot be read is damaged. */
async function part(path: string, look: () => Promise<State>): Promise<Verified> {
  try {
    return { path, ...(await look()) };
  } catch (error) {
    return { path, ...damaged(messageOf(error)) };
  }
}

async function recipeState(files: Files, run: string): Promise<State> {
  const path = join(run, RECIPE);
  const text = await files.readText(path);
  parseRecord(text, path);
  const asWritten = isAsWritten(text);
  if (asWritten === undefined) return { state: 'unchecked', why: OLDER };
  return asWritten ? WHOLE : damaged('is not what was written (its digest differs)');
}

/** The log is checked up to its last digest: the digest at the run's end, else at the last checkpoint. */
async function eventsState(files: Files, run: string, end: DigestLine | undefined): Promise<State> {
  const path = join(run, EVENTS);
  const checkpoints = new Checkpoints(files, join(run, CHECKPOINTS));
  const latest = await checkpoints.latest();
  const past =
    end?.lines === undefined ? latest && (await checkpoints.cursor(latest)).events : { ...end, lines: end.lines };
  await ChainedFile.at(files, path, past);
  if (!(await files.exists(path))) return { state: 'unchecked', why: 'the run has no events yet' };
  const { length } = await readEvents(files, path);
  if (past?.sha256 === undefined)
    return { state: 'unchecked', why: latest === undefined ? 'no checkpoint yet' : OLDER };
  if ((await files.size(path)) === past.bytes) return WHOLE;
  if (end !== undefined) return damaged(`has ${length} lines, the run ended with ${past.lines}`);
  return { state: 'unchecked', why: `after the last checkpoint, from line ${past.lines + 1} on` };
}

/** The list of episode files must begin with the lines that the last checkpoint recorded. */
async function digestsOf(files: Files, run: string): Promise<{ state: Verified; lines: readonly DigestLine[] }> {
  let lines: readonly DigestLine[] = [];
  const state = await part(DIGESTS, async () => {
    const checkpoints = new Checkpoints(files, join(run, CHECKPOINTS));
    const latest = await checkpoints.latest();
    const place = latest && (await checkpoints.cursor(latest)).episodes;
    await ChainedFile.at(files, join(run, DIGESTS), place);
    if (!(await files.exists(join(run, DIGESTS))))
      return { state: 'unchecked', why: latest === undefined ? 'nothing was written yet' : OLDER };
    lines = await readDigests(files, run);
    const size = await files.size(join(run, DIGESTS));
    return (await endsWithLine(files, join(run, DIGESTS), size)) ? WHOLE : damaged('ends in the middle of a line');
  });
  return { state, lines };
}

async function endsWithLine(files: Files, path: string, size: number): Promise<boolean> {
  return size === 0 || (await files.readBytes(path, size - 1, 1))[0] === 10;
}

async function episodeStates(files: Files, run: string, lines: readonly DigestLine[]): Promise<Verified[]> {
  const expected = new Map(lines.filter(({ file }) => file !== EVENTS).map((line) => [line.file, line]));
  const there = (await files.list(join(run, EPISODES))).map((name) => `${EPISODES}/${name}`);
  const names = [...new Set([...expected.keys(), ...there])].sort();
  // One after another: a run has a file for each step, and together they need too much memory, or too many handles.
  const states: Verified[] = [];
  for (const name of names)
    states.push(
      await part(name, async () => {
        const digest = expected.get(name);
        if (digest === undefined) return { state: 'unchecked', why: 'no digest of it was kept' };
        const why = await damageOf(files, join(run, name), digest);
        return why === undefined ? WHOLE : damaged(why);
      }),
    );
  return states;
}

async function checkpointStates(files: Files, run: string): Promise<Verified[]> {
  const checkpoints = new Checkpoints(files, join(run, CHECKPOINTS));
  const states: Verified[] = [];
  for (const checkpoint of await checkpoints.list())
    states.push(
      await part(`${CHECKPOINTS}/${basename(checkpoint.directory)}`, async () => {
        await checkpoints.cursor(checkpoint);
        return directoryState(files, checkpoint.directory);
      }),
    );
  return states;
}

async function referenceStates(files: Files, run: string, older: boolean): Promise<Verified[]> {
  const states: Verified[] = [];
  for (const name of await files.list(join(run, REFERENCES))) {
    if (name.startsWith(TEMPORARY)) continue;
    states.push(
      await part(`${REFERENCES}/${name}`, async () => {
        const state = await directoryState(files, join(run, REFERENCES, name));
        return state.why === OLDER && !older ? damaged(`${SEAL} is missing`) : state;
      }),
    );
  }
  return states;
}

/** Temporary files and directories: of a process that was killed, or of one that is writing the run. */
async function leftoverStates(files: Files, run: string): Promise<Verified[]> {
  const places = ['', EPISODES, CHECKPOINTS, REFERENCES];
  const leftovers = places.map(async (place) => {
    const names = (await files.list(join(run, place))).filter((name) => name.startsWith(TEMPORARY));
    return names.map(
      (name) => ({ path: place === '' ? name : `${place}/${name}`, state: 'unchecked', why: LEFT }) as const,
    );
  });
  return (await Promise.all(leftovers)).flat();
}

async function directoryState(files: Files, directory: string): Promise<State> {
  const state = await sealState(files, directory);
  if (state.type === 'damaged') return damaged(state.why);
  return state.type === 'whole' ? WHOLE : { state: 'unchecked', why: OLDER };
}
