/** Users' losses in messages to the engine's thread: the message names the loss's module, the thread imports it. */
import { BackendError } from '../../errors.js';
import { loadLosses } from '../../loss/loss-from.js';
import { type KnownLoss, lossNamed } from '../../loss/loss-spec.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-sums.js';

/** The exports of a module, from its absolute file URL. */
export type ImportModule = (url: string) => Promise<Readonly<Record<string, unknown>>>;

type Loss = ForwardBackwardOptions['loss'];

/**
 * The loss as a message can carry it: functions do not cross to another thread.
 * @throws BackendError for a user's loss without a module
 */
export function lossForThread(loss: Loss): Loss {
  if (loss.type !== 'own') return loss;
  const { settings, module } = loss;
  if (module === undefined)
    throw new BackendError(
      `the loss '${settings.type}' is in no module, and the engine's thread has to import it: name its file with lossFrom`,
    );
  return { type: 'own', settings, module };
}

export class LossModules {
  readonly #importModule: ImportModule | undefined;
  readonly #modules = new Map<string, Promise<readonly KnownLoss[]>>();

  constructor(importModule: ImportModule | undefined) {
    this.#importModule = importModule;
  }

  /**
   * @throws RecipeError when its module cannot be loaded; ArgumentError when it lacks the loss; BackendError when this
   *   engine imports no modules
   */
  async open(loss: Loss): Promise<Loss> {
    if (loss.type !== 'own' || loss.declaration !== undefined) return loss;
    const { settings, module } = loss;
    if (module === undefined || this.#importModule === undefined)
      throw new BackendError(`this engine imports no modules, so it has no loss '${settings.type}'`);
    const loading = this.#modules.get(module) ?? loadLosses({ kind: 'loss', module }, this.#importModule);
    this.#modules.set(module, loading);
    return lossNamed(settings, await loading);
  }
}
