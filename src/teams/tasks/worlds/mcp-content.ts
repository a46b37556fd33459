import { isObject } from '@drmas/engine/errors';

/**
 * The text of the parts of a tool's result. Servers return the text of a file as a resource. What has no text is only
 * named, a link by its address.
 */
export const contentTexts = (parts: readonly unknown[]): string[] =>
  parts.filter(isObject).map((part) => {
    const resource = isObject(part.resource) ? part.resource : {};
    const text = part.text ?? resource.text;
    const names = [part.type, part.uri ?? resource.uri].filter((name) => typeof name === 'string');
    return typeof text === 'string' ? text : `[${names.join(' ')}]`;
  });
