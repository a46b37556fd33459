/** Which samples a run has trained. */
import type { TrainingSample } from '../../src/base/core/sample.js';

/**
 * The samples of each update. An update that is made again, since the process ended before a checkpoint held it,
 * replaces the earlier note.
 */
export class Samples {
  readonly #updates = new Map<string, { readonly process: number; readonly left: string[] }>();

  note(process: number, policy: string, update: number, { tokens }: Pick<TrainingSample, 'tokens'>): void {
    const name = `${policy} ${update}`;
    const before = this.#updates.get(name);
    if (before?.process === process) before.left.push(`${tokens}`);
    else this.#updates.set(name, { process, left: [`${tokens}`] });
  }

  /** Strikes off a sample. False if the ledger has no equal one. */
  take(policy: string, update: number, tokens: readonly number[]): boolean {
    const left = this.#updates.get(`${policy} ${update}`)?.left ?? [];
    const at = left.indexOf(`${tokens}`);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }

  /** The samples that are not struck off. */
  left(): string[] {
    return [...this.#updates].flatMap(([name, { left }]) => left.map((tokens) => `${name}: ${tokens}`));
  }
}
