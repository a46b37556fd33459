import { byteText } from '../../base/host.js';
import type { RemoteFile } from './hub-client.js';

const BETWEEN_MESSAGES_MS = 5000;

/** Reports a download when it begins, and its progress every few seconds. */
export function progressOf(
  model: string,
  files: readonly RemoteFile[],
  tell: (message: string) => void,
): (file: RemoteFile, bytes: number) => void {
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (files.length > 0) tell(`Downloading ${model}: ${files.map(({ name }) => name).join(', ')} (${byteText(all)})`);
  const here = new Map<RemoteFile, number>();
  let lastMessage = performance.now();
  return (file, bytes) => {
    here.set(file, bytes);
    if (performance.now() - lastMessage < BETWEEN_MESSAGES_MS) return;
    lastMessage = performance.now();
    const sum = [...here.values()].reduce((a, b) => a + b, 0);
    tell(`Downloading ${model}: ${byteText(sum)} of ${byteText(all)} (${file.name})`);
  };
}
