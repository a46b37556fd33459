/**
 * Whether a text belongs to the held-out share. It is a pure function of the text (FNV-1a, finished as in MurmurHash3),
 * so the splits of a family never overlap, for any number and order of draws.
 */
export function isHeldOut(text: string, share: number): boolean {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32 < share;
}
