/**
 * The part of JavaScript's WebAssembly interface that is used here; TypeScript's own types of it come only with the
 * DOM's.
 */

export interface Memory {
  readonly buffer: SharedArrayBuffer;
  /** By a number of pages of 64 KiB; returns how many there were. @throws RangeError where that cannot be had. */
  grow(pages: number): number;
}

/** Compiled code, which threads share. */
export type Module = object;

interface WebAssembly {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => Memory;
  readonly Module: new (bytes: Uint8Array) => Module;
  readonly Instance: new (module: Module, imports: object) => { readonly exports: unknown };
}

export const webAssembly: WebAssembly = (globalThis as unknown as { readonly WebAssembly: WebAssembly }).WebAssembly;
