const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when the signal fires; returns a function that removes the callback. One listener serves all
 * callbacks of a signal, because thousands of episodes may wait for one signal and Node warns of a leak above ten
 * listeners.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const waiting = callbacks.get(signal) ?? listen(signal);
  waiting.add(callback);
  return () => waiting.delete(callback);
}

function listen(signal: AbortSignal): Set<() => void> {
  const waiting = new Set<() => void>();
  callbacks.set(signal, waiting);
  const callAll = () => {
    for (const callback of waiting) callback();
  };
  signal.addEventListener('abort', callAll, { once: true });
  return waiting;
}

/**
 * The promise's value. If the signal fires first, it rejects with the signal's reason, and the promise's own result is
 * ignored.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const stopListening = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(stopListening);
  });
}
