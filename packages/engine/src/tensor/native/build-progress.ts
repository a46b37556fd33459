/** Lines about a build, for people: one at once, then one every few seconds. */

/** Seconds between two lines. */
const INTERVAL_SECONDS = 15;

export interface CompileProgress {
  done(): void;
  end(): void;
}

/** Begins to report the compilation of a set's files. */
export function compileProgress(
  set: string,
  files: number,
  onProgress: ((message: string) => void) | undefined,
): CompileProgress {
  let done = 0;
  const long = 'about 10 to 20 s, longer on a busy machine (DRMAS_KERNELS=wasm goes without them)';
  onProgress?.(`compiling the kernels for this processor (${set}): ${files} files, once; ${long}`);
  const end = repeated((seconds) =>
    onProgress?.(`compiling the kernels: ${done} of ${files} files after ${seconds} s`),
  );
  return { done: () => void done++, end };
}

/**
 * Begins to report that another process compiles, unless it is this one: the thread that compiles reports its progress.
 * Returns the function that ends the reports.
 */
export function waitingProgress(holder: string, onProgress: ((message: string) => void) | undefined): () => void {
  if (holder === `process ${process.pid}`) return () => {};
  const who = `another process${holder === '' ? '' : ` (${holder})`} compiles the kernels`;
  onProgress?.(`${who}; waiting for it`);
  return repeated((seconds) => onProgress?.(`${who}; waiting for ${seconds} s`));
}

function repeated(report: (seconds: number) => void): () => void {
  const began = performance.now();
  const timer = setInterval(() => report(Math.round((performance.now() - began) / 1000)), INTERVAL_SECONDS * 1000);
  return () => clearInterval(timer);
}
