/**
 * The part of JavaScript's WebAssembly interface that is used here. TypeScript declares that interface only together
 * with the DOM.
 */

export interface Memory {
  readonly buffer: SharedArrayBuffer;
  /** Grows the memory by pages of 64 KiB and returns how many it had. @throws RangeError if there are no more. */
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
