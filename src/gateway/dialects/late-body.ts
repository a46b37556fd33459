/** Bodies that come late: something harmless is sent meanwhile, so that no client and no proxy hangs up. */

/** Node's fetch gives up after 300 s without an answer; proxies often after 30 or 60. */
const KEEP_ALIVE_MS = 10_000;

/** Why an answer ends before its end: its connection is closed, which a server does too if a client does not read. */
export const clientGone = () => new Error('the client has gone, or has not read its answer');

/** The promise's value; undefined if it takes longer than the time between two keep-alive signs. */
export async function soon<T>(promise: Promise<T>): Promise<{ readonly value: T } | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), KEEP_ALIVE_MS);
  });
  try {
    return await Promise.race([promise.then((value) => ({ value })), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The parts as a body, with `filler` whenever none has come for a while. If the client goes away, or does not read, the
 * body calls `gone` with the reason and ends the iteration of the parts.
 */
export function lateBody(
  parts: AsyncIterable<string>,
  filler: string,
  gone: (reason: Error) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = parts[Symbol.asyncIterator]();
  let next: Promise<IteratorResult<string>> | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      next ??= iterator.next();
      const part = await soon(next);
      if (part !== undefined) next = undefined;
      if (part?.value.done) controller.close();
      else controller.enqueue(encoder.encode(part === undefined ? filler : part.value.value));
    },
    cancel() {
      gone(clientGone());
      // The stream does not wait for this: a part may be on its way, and the client that wanted it has gone.
      Promise.resolve(next)
        .then(() => iterator.return?.())
        .catch(() => {});
    },
  });
}
