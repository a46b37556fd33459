/** The key that a run and its workers share: it signs what lies in Redis, and nothing of it lies there. */
import { createHmac, randomBytes } from 'node:crypto';
import { link, mkdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { jsonObject, messageOf, RecipeError } from '@drmas/engine/errors';
import { Secret } from '@drmas/engine/host';
import { codeOf, configDirectory, type Environment, isEqual, temporaryName } from '@drmas/engine/platform';
import { type Announcement, announcement } from './wire.js';

export const KEY_VARIABLE = 'DRMAS_QUEUE_KEY';
/** A shorter text could be guessed from one signature. */
const SHORTEST = 32;
/** Rights of others to a file, as bits of its mode. */
const OTHERS = 0o077;

/** The value in Redis is not an announcement that was signed with this key. */
export class AnnouncementError extends Error {
  /** Whether the value has the form of an announcement: another key may have signed it. */
  readonly isSigned: boolean;

  constructor(message: string, isSigned: boolean) {
    super(message);
    this.isSigned = isSigned;
  }
}

/** A key with its place, for messages. It is never shown, and derived values do not reveal it. */
export class QueueKey {
  readonly #key: Secret;
  /** The variable or the file that holds the key. */
  readonly place: string;

  constructor(text: string, place: string) {
    this.#key = new Secret(text);
    this.place = place;
  }

  /** The announcement as text for Redis: readable by everybody, signed for this queue. */
  sign(queue: string, announced: Announcement): string {
    const body = JSON.stringify(announced);
    return JSON.stringify({ body, signature: this.#code('announcement', queue, body) });
  }

  /** The announcement in a text of Redis. @throws AnnouncementError if a holder of this key did not sign it */
  read(queue: string, text: string): Announcement {
    const { body, signature } = signed(text);
    if (!isEqual(signature, this.#code('announcement', queue, body)))
      throw new AnnouncementError(`it was not signed with the key in ${this.place}; expected the key of the run`, true);
    const read = announcement.safeParse(JSON.parse(body));
    if (!read.success) throw new AnnouncementError('the run that signed it has another version of drmas', true);
    return read.data;
  }

  /** The secret that workers of a run register with. */
  door(run: string): string {
    return this.#code('door', run);
  }

  /** Shows a worker, which chose the nonce, that the holder of the key has answered. */
  proof(run: string, nonce: string): string {
    return this.#code('run', run, nonce);
  }

  #code(...parts: readonly string[]): string {
    return createHmac('sha256', this.#key.reveal()).update(JSON.stringify(parts)).digest('hex');
  }
}

/** @throws AnnouncementError for a text without a body and a signature */
function signed(text: string): { readonly body: string; readonly signature: string } {
  const { body, signature } = jsonObject(text) ?? {};
  if (typeof body === 'string' && typeof signature === 'string') return { body, signature };
  throw new AnnouncementError('it is not the announcement of a run', false);
}

const keyFile = () => join(configDirectory(), 'queue-key');

/**
 * The key of runs and workers: `DRMAS_QUEUE_KEY`, or the key in this user's configuration directory, which is made at
 * the first use. So a run and workers of one user on one machine have the same key without any setting.
 * @throws RecipeError for a key that is too short, a file that others can read, or a place that cannot be written
 */
export async function queueKey(environment: Environment = process.env, file = keyFile()): Promise<QueueKey> {
  const { [KEY_VARIABLE]: given } = environment;
  if (given !== undefined && given !== '') return checked(given, KEY_VARIABLE);
  try {
    return checked(await textOf(file), file);
  } catch (error) {
    if (error instanceof RecipeError) throw error;
    throw new RecipeError(`the key of queues cannot be kept in ${file}: ${messageOf(error)}; set ${KEY_VARIABLE}`);
  }
}

function checked(text: string, place: string): QueueKey {
  const key = text.trim();
  if (key.length >= SHORTEST) return new QueueKey(key, place);
  throw new RecipeError(
    `the key in ${place} has ${key.length} characters; expected at least ${SHORTEST}, as \`openssl rand -hex 32\` prints`,
  );
}

/** The text of the key's file; makes the file if it does not exist. */
async function textOf(file: string): Promise<string> {
  const there = () => readFile(file, 'utf8');
  const text = await there().catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  if (text === undefined) await makeKey(file);
  const { mode } = await stat(file);
  if (process.platform !== 'win32' && (mode & OTHERS) !== 0)
    throw new RecipeError(`other users can read the key in ${file}; expected \`chmod 600\``);
  return text ?? there();
}

/** Makes the file whole or not at all. If another process is faster, its key counts. */
async function makeKey(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const temporary = join(dirname(file), temporaryName('queue-key'));
  await writeFile(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  try {
    await link(temporary, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    await unlink(temporary);
  }
}
