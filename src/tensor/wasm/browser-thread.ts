/** What a Web Worker runs (browser-threads.ts). */
import { type ThreadSettings, workOn } from './thread-work.js';

interface Scope {
  onmessage: (event: { readonly data: ThreadSettings }) => void;
  close(): void;
}
const scope = globalThis as unknown as Scope;

scope.onmessage = ({ data }) => {
  workOn(data);
  scope.close();
};
