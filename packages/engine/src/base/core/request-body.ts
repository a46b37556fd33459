import { DialectError } from './errors.js';
import { parseWithSources } from './exact-json.js';
import { nestsTooDeep } from './validation/objects.js';

/** Far more than any model's context; a conversation of a million tokens has about 5 MB. */
export const MOST_BYTES = 16e6;

/** The text of a request's body. @throws DialectError when it is too long, or no UTF-8 */
export async function bodyText(request: Request, most = MOST_BYTES): Promise<string> {
  const bytes = await bodyBytes(request, most);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new DialectError(400, 'invalid_json', 'the body is not UTF-8 text');
  }
}

/** Bytes of a body that is too long which are read and dropped. */
const MOST_DROPPED = 64e6;

/**
 * The bytes of a request's body. Many clients read the refusal when they have sent their body, and lose it if the
 * server closes the connection before. So the rest of a body that is too long is read first, and nothing of it kept.
 * Servers limit the time.
 * @throws DialectError when there are more than `most` bytes
 */
export async function bodyBytes({ headers, body }: Request, most: number): Promise<Uint8Array> {
  const mostRead = Math.max(most, MOST_DROPPED);
  if (Number(headers.get('content-length') ?? 0) > mostRead) throw tooLong(most);
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done && length <= mostRead; part = await reader.read()) {
    length += part.value.byteLength;
    if (length <= most) parts.push(part.value);
    else parts.length = 0;
  }
  if (length > most) throw tooLong(most);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** Keys of objects that models read as they were written: arguments of calls, and schemas of tools and answers. */
const EXACT = new Set(['input', 'input_schema', 'parameters', 'schema']);

/** @throws DialectError if the body is not JSON, or is nested too deep for recursion */
export function parsedBody(text: string): unknown {
  if (nestsTooDeep(text)) throw new DialectError(400, 'invalid_json', 'the body is nested too deep');
  try {
    return parseWithSources(text, EXACT);
  } catch {
    throw new DialectError(400, 'invalid_json', 'the body is not JSON');
  }
}

const tooLong = (most: number) => new DialectError(413, 'too_long', `the body is longer than ${most / 1e6} MB`);
