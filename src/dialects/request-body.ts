import { DialectError } from '../core/errors.js';
import { nestsTooDeep } from '../core/validation/nesting.js';

/** Far more than any model's context; a conversation of a million tokens has about 5 MB. */
const MOST_BYTES = 16e6;

/** The text of a request's body. @throws DialectError when it is too long, or no UTF-8 */
export async function bodyText({ headers, body }: Request): Promise<string> {
  if (Number(headers.get('content-length') ?? 0) > MOST_BYTES) throw tooLong();
  if (body === null) return '';
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const reader = body.getReader();
  let text = '';
  let bytes = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      bytes += part.value.byteLength;
      if (bytes > MOST_BYTES) throw tooLong();
      text += decoder.decode(part.value, { stream: true });
    }
    return text + decoder.decode();
  } catch (error) {
    reader.cancel().catch(() => {}); // the client may be gone already
    throw error instanceof DialectError ? error : new DialectError(400, 'invalid_json', 'the body is not UTF-8 text');
  }
}

/** @throws DialectError for what is no JSON, or is nested too deep to be walked through */
export function parsedBody(text: string): unknown {
  if (nestsTooDeep(text)) throw new DialectError(400, 'invalid_json', 'the body is nested too deep');
  try {
    return JSON.parse(text);
  } catch {
    throw new DialectError(400, 'invalid_json', 'the body is not JSON');
  }
}

const tooLong = () => new DialectError(413, 'too_long', `the body is longer than ${MOST_BYTES / 1e6} MB`);
