import type { StartThread } from './thread-pool.js';

/** The part of a browser's workers that is used here. */
interface Worker {
  onerror: (event: { readonly message: string }) => void;
  postMessage(message: unknown): void;
}
const { Worker } = globalThis as unknown as { readonly Worker: new (url: URL, options: { type: 'module' }) => Worker };

/** A Web Worker. Memory may be sent to it on pages that are `crossOriginIsolated` alone. */
export const startBrowserThread: StartThread = (settings, onFailure) => {
  const worker = new Worker(new URL('./browser-thread.js', import.meta.url), { type: 'module' });
  worker.onerror = ({ message }) => onFailure(message);
  worker.postMessage(settings);
};
