import type { Secret } from '../../base/host.js';

/**
 * A text that is equal for equal descriptions of a backend or of a sampling engine. It holds the server's key: never
 * show it and never write it to a file.
 */
export function backendIdentity(spec: { readonly type: string; readonly apiKey?: Secret | undefined }): string {
  return JSON.stringify([spec, spec.apiKey?.reveal()]);
}
