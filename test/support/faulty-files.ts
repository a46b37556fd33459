import type { Files } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';

/** The calls that change a disk. */
const CHANGING = ['write', 'append', 'replace', 'makeDirectory', 'rename', 'remove', 'truncate'] as const;
type Changing = (typeof CHANGING)[number];

/** The changing calls that fail, counted from 1, and the work that a failing call has done before. */
export interface Fault {
  readonly at: number;
  /** Whether the disk is full from then on, or only that one call fails. */
  readonly lasting: boolean;
  /** Whether a failing `write` leaves half of the content behind. */
  readonly half: boolean;
}

export interface FaultyFiles {
  readonly files: Files;
  /** The changing calls so far, by name. */
  readonly calls: Changing[];
}

/** The files of this machine, with some calls that fail as on a full disk. Without a fault, it only counts calls. */
export function faultyFiles(fault?: Fault): FaultyFiles {
  const calls: Changing[] = [];
  const fails = (call: Changing) => {
    calls.push(call);
    if (fault === undefined) return false;
    return fault.lasting ? calls.length >= fault.at : calls.length === fault.at;
  };
  const full = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  const guarded = <Arguments extends unknown[], Result>(
    call: Changing,
    act: (...args: Arguments) => Promise<Result>,
    before: (...args: Arguments) => Promise<void> = async () => {},
  ) => {
    return async (...args: Arguments): Promise<Result> => {
      if (!fails(call)) return act(...args);
      await before(...args);
      throw full();
    };
  };
  const half: Files['write'] = async (path, content) => {
    if (fault?.half !== true) return;
    const parts = typeof content === 'string' || content instanceof Uint8Array ? [content] : [...content];
    const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)));
    await nodeFiles.write(path, bytes.subarray(0, bytes.length >> 1));
  };
  const files: Files = {
    ...nodeFiles,
    write: guarded('write', nodeFiles.write, half),
    replace: guarded('replace', nodeFiles.replace),
    makeDirectory: guarded('makeDirectory', nodeFiles.makeDirectory),
    rename: guarded('rename', nodeFiles.rename),
    remove: guarded('remove', nodeFiles.remove),
    truncate: guarded('truncate', nodeFiles.truncate),
    append(...args) {
      if (fails('append')) throw full();
      nodeFiles.append(...args);
    },
  };
  return { files, calls };
}
