/** Tasks that wait for their turn in a browser, in order. */
const waiting: (() => void)[] = [];
let channel: ReturnType<typeof openChannel> | undefined;

/**
 * Runs a task after all pending microtasks and waiting events: with `setImmediate` if it exists (Node). Browsers send a
 * message to themselves instead, because nested timers wait for 4 ms there.
 */
export function macrotask(task: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (run: () => void) => unknown };
  if (setImmediate !== undefined) {
    setImmediate(task);
    return;
  }
  waiting.push(task);
  channel ??= openChannel();
  channel.port2.postMessage(undefined);
}

/** Settles after all pending microtasks and waiting events. */
export const nextMacrotask = (): Promise<void> => new Promise((resolve) => macrotask(resolve));

function openChannel() {
  const opened = new MessageChannel();
  const onmessage = () => {
    waiting.shift()?.();
    if (waiting.length > 0) return;
    opened.port1.close();
    channel = undefined;
  };
  Object.assign(opened.port1, { onmessage }); // Node's types do not have it, its ports do
  return opened;
}
