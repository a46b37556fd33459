/** Files of settings, each leaf as an override. */
import { readFileSync } from 'node:fs';
import { DEEPEST, isObject, messageOf, nestsTooDeep, RecipeError, shown } from '@drmas/engine/errors';
import type { Plain } from './overrides.js';

/** The overrides of a JSON file of settings, one for each leaf. @throws RecipeError with the file */
export function overridesOf(path: string): string[] {
  let tree: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)); // without a byte order mark
    if (nestsTooDeep(text)) throw new Error(`expected settings nested at most ${DEEPEST} deep`);
    tree = JSON.parse(text);
  } catch (error) {
    throw new RecipeError(`${path} holds no settings: ${messageOf(error)}`);
  }
  if (!isObject(tree)) throw new RecipeError(`${path} holds no settings: expected a JSON object, got ${shown(tree)}`);
  return leavesOf(tree, path);
}

function leavesOf(tree: Plain, file: string, path: readonly string[] = []): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    if (key.includes('.') || key.includes('='))
      throw new RecipeError(`${file}: the key '${key}' cannot be overridden: it has a dot or an equals sign`);
    const at = [...path, key];
    return isObject(value) ? leavesOf(value, file, at) : [`${at.join('.')}=${JSON.stringify(value)}`];
  });
}
