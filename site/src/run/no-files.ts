import type { Files } from '../../../src/base/host.js';

const refuse = (): never => {
  throw new Error('a browser tab has no files');
};

/** The files of a browser tab: none. */
export const noFiles: Files = {
  readText: async () => refuse(),
  size: async () => refuse(),
  readBytes: async () => refuse(),
  write: async () => refuse(),
  append: refuse,
  replace: async () => refuse(),
  makeDirectory: async () => refuse(),
  rename: async () => refuse(),
  remove: async () => refuse(),
  list: async () => [],
  exists: async () => false,
  modified: async () => refuse(),
  truncate: async () => refuse(),
  lock: async () => refuse(),
};
