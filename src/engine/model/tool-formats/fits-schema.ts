import { isObject, ownValue } from '../../../base/errors.js';
import type { JsonSchema } from '../../../base/nouns.js';

/**
 * Whether a call's arguments fit their schema at its top level: required properties are present, each property has an
 * allowed type and value, and there are no further properties if the schema forbids them.
 */
export function fitsSchema(values: Readonly<Record<string, unknown>>, schema: JsonSchema): boolean {
  const { required, additionalProperties } = schema;
  const properties = propertiesOf(schema);
  const isThere = (name: unknown) => typeof name === 'string' && Object.hasOwn(values, name);
  if (Array.isArray(required) && !required.every(isThere)) return false;
  return Object.entries(values).every(([name, value]) => {
    const property = ownValue(properties, name);
    if (property === undefined) return additionalProperties !== false;
    return !isObject(property) || hasTypeAndValue(value, property);
  });
}

/** The schemas of an object's properties by name, in their order. */
export function propertiesOf({ properties }: JsonSchema): Readonly<Record<string, unknown>> {
  return isObject(properties) ? properties : {};
}

function hasTypeAndValue(value: unknown, { type, enum: values, const: only }: Record<string, unknown>): boolean {
  const types = Array.isArray(type) ? type : [type];
  if (type !== undefined && !types.some((name) => isOfType(value, name))) return false;
  const text = JSON.stringify(value);
  if (Array.isArray(values) && !values.some((each) => JSON.stringify(each) === text)) return false;
  return only === undefined || JSON.stringify(only) === text;
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
    default:
      return true; // an unknown type restricts nothing
  }
}
