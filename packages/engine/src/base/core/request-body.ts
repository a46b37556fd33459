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

/** The bytes of a request's body. @throws DialectError when there are more than that */
export async function bodyBytes({ headers, body }: Request, most: number): Promise<Uint8Array> {
  if (Number(headers.get('content-length') ?? 0) > most) throw tooLong(most);
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.byteLength;
    if (length > most) {
      dropRest(reader).catch(() => {}); // the client may have disconnected already
      throw tooLong(most);
    }
    parts.push(part.value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** Bytes of a body that is too long which are read and dropped. */
const MOST_DROPPED = 64e6;

/**
 * Reads the rest of a body and keeps nothing. Many clients read the refusal when they have sent their body: if the
 * stream were cancelled, the server would close the connection before, or in the client's next request. Servers limit
 * the time.
 */
async function dropRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let dropped = 0;
  for (let part = await reader.read(); !part.done && dropped < MOST_DROPPED; part = await reader.read())
    dropped += part.value.byteLength;
  await reader.cancel();
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
