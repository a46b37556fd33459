import { messageOf, reasonOf } from '@drmas/engine/errors';
import type { Failure, FailureReason } from '@drmas/engine/nouns';

/** The most characters of a message to keep: a server may reply with a page, a team may throw its data. */
const LONGEST_MESSAGE = 2_000;
const MOST_FRAMES = 12;
const LONGEST_FRAME = 500;
/** Frames of Node, and of the watchdog's question. */
const OUTSIDE = /[( ]node:|eval \(eval at|[\\/]watchdog\.[jt]s:/;
/** Frames of packages. Only the one that threw is shown: the others stand between it and the team's own lines. */
const PACKAGE = /[\\/]node_modules[\\/]/;
/** Stack frames in which the engine calls a team and its parsers. */
const ENGINE = /[\\/](play-episode|async-scopes|read-answer)\.[jt]s:/;

/** The error that ends an episode early. `playEpisode` catches it and records it as `Episode.failure`. */
export class EpisodeFailure extends Error {
  override readonly name = 'EpisodeFailure';
  readonly record: Failure;

  /** @param facts The place where the team's code threw, the agent whose call failed, and other facts, if known */
  constructor(
    reason: FailureReason,
    message: string,
    facts: Omit<Failure, 'reason' | 'message'> = {},
    options: ErrorOptions = {},
  ) {
    super(message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message, options);
    const known = Object.fromEntries(Object.entries(facts).filter(([, fact]) => fact !== undefined));
    this.record = { reason, message: this.message, ...known };
  }

  get reason(): FailureReason {
    return this.record.reason;
  }

  /** The failure for a value that a team threw. @param who the code that threw it, if the message needs a name */
  static of(reason: FailureReason, thrown: unknown, who = ''): EpisodeFailure {
    if (EpisodeFailure.is(thrown)) return thrown;
    const kind = reason === 'error' && isOverlong(thrown) ? 'overlong' : reason;
    const place = placeOf(thrown);
    const message = `${who === '' ? '' : `${who}: `}${causesOf(thrown)}`;
    return new EpisodeFailure(kind, message, place === undefined ? {} : { stack: place }, { cause: thrown });
  }

  /** Whether a thrown value is an EpisodeFailure. A revoked proxy, which throws when it is asked, is none. */
  static is(thrown: unknown): thrown is EpisodeFailure {
    try {
      return thrown instanceof EpisodeFailure;
    } catch {
      return false;
    }
  }

  with(facts: Partial<Failure>): EpisodeFailure {
    const { reason, message, ...known } = { ...this.record, ...facts };
    return new EpisodeFailure(reason, message, known, { cause: this.cause });
  }
}

/** The message of a thrown value with its causes: clients of HTTP say "fetch failed", and the cause says why. */
function causesOf(thrown: unknown): string {
  try {
    return reasonOf(thrown);
  } catch {
    return messageOf(thrown);
  }
}

/** Whether a call was refused for want of room, and the team did not catch it; OpenAI's clients keep the code. */
function isOverlong(thrown: unknown): boolean {
  try {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'context_length_exceeded';
  } catch {
    return false;
  }
}

/** The lines of an error's stack outside Node, packages and the engine; undefined if there is no stack. */
export function placeOf(thrown: unknown): string | undefined {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== 'string') return undefined;
    const frames = thrown.stack.split('\n').filter((line) => /^\s+at /.test(line) && !OUTSIDE.test(line));
    const engine = frames.findIndex((line) => ENGINE.test(line));
    const lines = frames
      .slice(0, engine > 0 ? engine : undefined)
      .filter((line, i) => i === 0 || !PACKAGE.test(line))
      .slice(0, MOST_FRAMES)
      .map((line) => line.slice(0, LONGEST_FRAME));
    return lines.length === 0 ? undefined : lines.join('\n');
  } catch {
    return undefined;
  }
}
