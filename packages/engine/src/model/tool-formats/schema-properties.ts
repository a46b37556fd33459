import { isObject } from '../../errors.js';
import type { JsonSchema } from '../../nouns.js';

/** The schemas of an object's properties by name, in their order. */
export function propertiesOf({ properties }: JsonSchema): Readonly<Record<string, unknown>> {
  return isObject(properties) ? properties : {};
}
