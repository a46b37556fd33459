import type { Files } from '@drmas/engine/host';
import { encodeSafetensors } from '@drmas/engine/internal/model/formats/safetensors';

/** Files in memory, for tests of models and formats. */
export function memoryFiles(content: Map<string, Uint8Array | string>): Files {
  const get = (path: string) => {
    const value = content.get(path);
    if (value === undefined) throw new Error(`ENOENT: ${path}`);
    return Buffer.from(value);
  };
  const unused = () => Promise.reject(new Error('not needed here'));
  return {
    readText: async (path) => get(path).toString(),
    size: async (path) => get(path).length,
    readBytes: async (path, from, length) => Uint8Array.from(get(path).subarray(from, from + length)),
    write: async (path, value) => {
      content.set(
        path,
        typeof value === 'string' || value instanceof Uint8Array
          ? value
          : Buffer.concat([...value].map((part) => Buffer.from(part))),
      );
    },
    exists: async (path) => content.has(path),
    append: () => undefined,
    flush: async () => undefined,
    makeDirectory: unused,
    modified: unused,
    rename: unused,
    remove: unused,
    list: unused,
    truncate: unused,
    replace: unused,
    lock: unused,
  };
}

/** A file of `encodeSafetensors` whole. */
export function safetensorsBytes(...content: Parameters<typeof encodeSafetensors>): Uint8Array {
  return Uint8Array.from(Buffer.concat([...encodeSafetensors(...content)]));
}
