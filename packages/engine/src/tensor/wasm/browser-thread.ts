/** The entry of a Web Worker that works on kernels; browser-threads.ts starts it. */
import { type ThreadSettings, workOn } from './thread-work.js';

interface WorkerScope {
  onmessage: (event: { readonly data: ThreadSettings }) => void;
  close(): void;
}
const scope = globalThis as unknown as WorkerScope;

scope.onmessage = ({ data }) => {
  workOn(data);
  scope.close();
};
