/** Bodies of HTTP requests, read within limits; it needs nothing of Node. */
export { bodyBytes, bodyText, MOST_BYTES, parsedBody } from './base/core/request-body.js';
