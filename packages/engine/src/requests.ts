/** Addresses and bodies of HTTP requests, checked and read within limits; it needs nothing of Node. */
export { bodyBytes, bodyText, MOST_BYTES, parsedBody } from './base/core/request-body.js';
export { serverUrl } from './base/core/validation/server-url.js';
