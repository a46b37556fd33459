/** Losses from modules of users, as plug-ins of a recipe. */
import { ArgumentError, isObject, messageOf, RecipeError } from '../errors.js';
import type { LossDeclaration } from './define-loss.js';
import { type KnownLoss, lossTypes } from './loss-spec.js';

/** The losses of a module, as a value for a recipe's `use`. */
export interface LossPlugin {
  readonly kind: 'loss';
  /** The absolute file URL of the module. */
  readonly module: string;
  /** The name of the one loss to take. Default: all losses of the module. */
  readonly type?: string;
}

/**
 * Names a module that exports losses made by `defineLoss`. The engine computes in a separate thread, which imports the
 * module too, so a loss is named by its module and not passed as a value.
 * @param module The absolute file URL, such as `import.meta.resolve('./my-loss.ts')`
 * @throws ArgumentError when it is no absolute file URL
 *
 * @example
 * ```ts
 * import { lossFrom } from 'drmas';
 *
 * lossFrom('file:///home/me/capped.ts', { type: 'capped' }); // for `use` of a recipe
 * ```
 */
export function lossFrom(module: string, { type }: { readonly type?: string } = {}): LossPlugin {
  if (typeof module !== 'string' || !/^file:\/\/\//.test(module))
    throw new ArgumentError(
      `lossFrom: expected an absolute file URL, such as import.meta.resolve('./my-loss.ts'), got ${JSON.stringify(module)}`,
    );
  return { kind: 'loss', module, ...(type === undefined ? {} : { type }) };
}

/**
 * Imports the losses of a plug-in.
 * @param importModule Imports a module of a user (platform/user-modules.ts)
 * @throws RecipeError with the path `use` when the module cannot be loaded, or exports no such loss, or one whose name
 *   drmas has itself
 */
export async function loadLosses(
  { module, type }: LossPlugin,
  importModule: (url: string) => Promise<Readonly<Record<string, unknown>>>,
): Promise<readonly KnownLoss[]> {
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = await importModule(module);
  } catch (error) {
    throw Object.assign(refused(module, `cannot be loaded: ${messageOf(error)}`), { cause: error });
  }
  const declared = [...new Set(Object.values(exported))].filter(isDeclaration);
  if (declared.length === 0) throw refused(module, 'exports no loss: it needs `export default defineLoss({ ... })`');
  const wanted = type === undefined ? declared : declared.filter((declaration) => declaration.type === type);
  if (wanted.length === 0)
    throw refused(
      module,
      `has no loss '${type}'; it has ${declared.map((declaration) => declaration.type).join(', ')}`,
    );
  const names = wanted.map((declaration) => declaration.type);
  const taken = names.find((name, i) => (lossTypes as readonly string[]).includes(name) || names.indexOf(name) !== i);
  if (taken !== undefined) throw refused(module, `exports a loss '${taken}', a name that another loss has`);
  return wanted.map((declaration) => ({ declaration, module }));
}

const refused = (module: string, problem: string) => new RecipeError(`${module} ${problem}`, 'use');

/** Whether `defineLoss` made a value. It may be the `defineLoss` of another copy of this package. */
const isDeclaration = (value: unknown): value is LossDeclaration =>
  isObject(value) && value.kind === 'loss' && typeof value.token === 'function' && isObject(value.schema);
