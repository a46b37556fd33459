/** The names of models on a hub. */
import { CheckpointError } from '../errors.js';

/** A model or a data set on a hub: `org/name`, and the branch, tag or commit. */
export interface ModelId {
  readonly name: string;
  readonly revision: string;
  /** Default: a model. */
  readonly type?: 'dataset';
}

const DEFAULT_REVISION = 'main';

/** A hub's names: letters, digits, `-`, `_` and `.`, never at either end and never `--` or `..`. */
const part = String.raw`(?!-|\.)(?:(?!--|\.\.)[\w.-]){1,96}(?<![-.])`;
const pattern = new RegExp(`^(${part}/${part})(?:@(.*))?$`);

/** Whether a text can only be meant as a path: it begins with `/`, `~`, `.` or `..`, or has a backslash. */
export function looksLikePath(text: string): boolean {
  return /^(?:\/|~|\.{1,2}(?:\/|$))|\\/.test(text);
}

/**
 * Reads `org/name[@revision]`; undefined if the text is no such name.
 * @throws CheckpointError when the revision cannot be one
 */
export function parseModelId(text: string): ModelId | undefined {
  if (looksLikePath(text)) return undefined;
  const [, name, revision = DEFAULT_REVISION] = pattern.exec(text) ?? [];
  if (name === undefined) return undefined;
  // It becomes a file below refs/.
  if (!/^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(revision) || revision.includes('..'))
    throw new CheckpointError(`${text}: expected a branch, a tag or a commit after "@", found "${revision}"`);
  return { name, revision };
}

/** Writes a model's name as users do: the default revision is left out. */
export function formatModelId({ name, revision }: ModelId): string {
  return revision === DEFAULT_REVISION ? name : `${name}@${revision}`;
}
