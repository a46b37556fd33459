/**
 * The spans of traces, together by trace. Files have them in any order, so spans that do not fit in memory go to
 * temporary files: each holds the whole traces of a part of the input.
 */
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exactJson, messageOf, parseExactly, RunError } from '@drmas/engine/errors';
import { nodeFiles, removeStale } from '@drmas/engine/platform';
import type { TraceSpan } from './span-fields.js';
import { linesOf } from './trace-files.js';

/** Characters of spans that stay in memory. Objects take several times the memory of their JSON. */
const HELD = 2 ** 22;
/** Characters of traces that are worked on at once. */
const BUCKET = 2 ** 21;

interface Bucket {
  size: number;
  spans: TraceSpan[];
}

export class TraceStore {
  /** The bucket of each trace. Traces come back in the order in which they began. */
  readonly #bucketOf = new Map<string, number>();
  readonly #buckets: Bucket[] = [];
  readonly #signal: AbortSignal | undefined;
  #held = 0;
  #folder: string | undefined;

  /** @param signal Ends the work on the traces, with its reason */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** @param size The characters of the span in its file @throws RunError if the temporary files cannot be written */
  async add(span: TraceSpan, size: number): Promise<void> {
    this.#signal?.throwIfAborted();
    const bucket = this.#bucket(span.trace);
    bucket.spans.push(span);
    bucket.size += size;
    this.#held += size;
    if (this.#held > HELD) await this.#flush();
  }

  #bucket(trace: string): Bucket {
    const last = this.#buckets.at(-1);
    const known = this.#bucketOf.get(trace);
    const bucket = known === undefined ? last : this.#buckets[known];
    if (bucket !== undefined && (known !== undefined || bucket.size < BUCKET)) {
      if (known === undefined) this.#bucketOf.set(trace, this.#buckets.length - 1);
      return bucket;
    }
    const begun = { size: 0, spans: [] };
    this.#bucketOf.set(trace, this.#buckets.push(begun) - 1);
    return begun;
  }

  async #flush(): Promise<void> {
    try {
      this.#folder ??= await newFolder();
      for (const [i, bucket] of this.#buckets.entries()) {
        if (bucket.spans.length === 0) continue;
        await appendFile(this.#path(i), bucket.spans.map((span) => `${exactJson(span)}\n`).join(''), { mode: 0o600 });
        bucket.spans = [];
      }
    } catch (error) {
      throw new RunError(
        `traces of more than ${HELD} characters need temporary files, which cannot be written (TMPDIR names another ` +
          `folder): ${messageOf(error)}`,
      );
    }
    this.#held = 0;
  }

  #path(bucket: number): string {
    return join(this.#folder ?? '', `${bucket}.jsonl`);
  }

  /** The spans of each trace, in the order of the input. */
  async *traces(): AsyncGenerator<readonly [string, readonly TraceSpan[]]> {
    if (this.#folder !== undefined) await this.#flush();
    for (const [i, bucket] of this.#buckets.entries()) {
      const traces = new Map<string, TraceSpan[]>();
      const add = (span: TraceSpan) => {
        const others = traces.get(span.trace);
        if (others === undefined) traces.set(span.trace, [span]);
        else others.push(span);
      };
      if (this.#folder === undefined) for (const span of bucket.spans) add(span);
      else
        for await (const line of linesOf(this.#path(i)))
          if (line !== undefined && line !== '') add(parseExactly(line) as TraceSpan);
      for (const trace of traces) {
        this.#signal?.throwIfAborted();
        yield trace;
      }
    }
  }

  async dispose(): Promise<void> {
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
  }
}

const FOLDER = 'drmas-traces-';

/** A new folder for spans, which are not masked yet. Folders that killed processes left go after a day. */
async function newFolder(): Promise<string> {
  await removeStale(nodeFiles, tmpdir(), FOLDER);
  return mkdtemp(join(tmpdir(), FOLDER));
}
